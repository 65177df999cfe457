"""Table 1 of the paper, and the improvement it prints recomputed from its load times."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PAPER = "Radhakrishnan et al., CoNEXT 2011, Table 1"
"""How a figure names the source."""


@dataclass(frozen=True)
class PaperCell:
    """One cell of the table.

    Args:
        page: Name of the page, as the embedded profiles have it.
        rtt_ms: Emulated round-trip time, ms.
        tcp_ms: PLT without TFO, ms.
        tfo_ms: PLT with TFO, ms.
    """

    page: str
    rtt_ms: float
    tcp_ms: float
    tfo_ms: float

    @property
    def improvement(self) -> float:
        """(PLT_tcp - PLT_tfo) / PLT_tcp, a signed fraction."""
        return (self.tcp_ms - self.tfo_ms) / self.tcp_ms


@cache
def paper_table() -> tuple[PaperCell, ...]:
    """All twelve cells, in the paper's order."""
    text = files(__package__).joinpath("paper_table1.csv").read_text("utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        PaperCell(row["page"], float(row["rtt_ms"]), 1000 * float(row["tcp_s"]), 1000 * float(row["tfo_s"]))
        for row in rows
    )
