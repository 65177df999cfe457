"""Published tables of page load times, with their sources and how they were made."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAPER = "Radhakrishnan et al., CoNEXT 2011, Table 1"
"""The name of the source in figures."""

__all__ = ["PAPER", "PublishedCell", "PublishedTable", "published_names", "published_table"]


_TABLES = Path(__file__).parent / "tables"
_FACTS = "# "


@dataclass(frozen=True)
class PublishedCell:
    """One cell of a table.

    Args:
        page: The page, as the table names it.
        rtt_ms: Round-trip time, as printed, ms.
        down_mbps: Rate towards the client, Mbit/s; None: unlimited.
        up_mbps: Rate towards the servers, Mbit/s; None: unlimited.
        tcp_ms: PLT without TFO, ms.
        tfo_ms: PLT with TFO, ms.
        note: A known error of the row.
    """

    page: str
    rtt_ms: float
    down_mbps: float | None
    up_mbps: float | None
    tcp_ms: float
    tfo_ms: float
    note: str = ""

    @property
    def improvement(self) -> float:
        """(PLT_tcp - PLT_tfo) / PLT_tcp, a signed fraction, computed from the table's times."""
        return (self.tcp_ms - self.tfo_ms) / self.tcp_ms


@dataclass(frozen=True)
class PublishedTable:
    """A table and facts about it.

    Args:
        name: Its name on the command line.
        facts: `source`, `year`, `client`, `path`, `servers`, `spread`, in words.
        cells: Its rows, in its order.
    """

    name: str
    facts: dict[str, str]
    cells: tuple[PublishedCell, ...]


def published_names() -> list[str]:
    """Names of all tables."""
    return sorted(file.stem for file in _TABLES.glob("*.csv"))


@cache
def published_table(name: str) -> PublishedTable:
    """One table.

    Args:
        name: One of `published_names`.
    """
    lines = (_TABLES / f"{name}.csv").read_text("utf-8").splitlines()
    facts = dict(line.removeprefix(_FACTS).split(": ", 1) for line in lines if line.startswith(_FACTS))
    rows = csv.DictReader(line for line in lines if not line.startswith(_FACTS))
    return PublishedTable(name, facts, tuple(_cell(row) for row in rows))


def _cell(row: dict[str, str]) -> PublishedCell:
    return PublishedCell(
        page=row["page"],
        rtt_ms=float(row["rtt_ms"]),
        down_mbps=float(row["down_mbps"]) if row["down_mbps"] else None,
        up_mbps=float(row["up_mbps"]) if row["up_mbps"] else None,
        tcp_ms=float(row["tcp_ms"]),
        tfo_ms=float(row["tfo_ms"]),
        note=row["note"],
    )
