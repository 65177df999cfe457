"""What is measured one by one: cells, their names, and the job of each."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from firstflight.stress.plan import SYN_COOKIES, StressPlan
from firstflight.stress.servers import describe_server


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    server: str
    flood: str
    qlen: int
    backlog: int
    syn_cookies: str
    rate: float
    repeat: int
    mode: str

    @property
    def name(self) -> str:
        """What tells it from all others of a plan."""
        return "/".join(
            (
                self.server,
                self.flood,
                f"qlen{self.qlen}",
                f"backlog{self.backlog}",
                self.syn_cookies,
                f"{self.rate:g}",
                str(self.repeat),
                self.mode,
            )
        )


def cells(plan: StressPlan, rates: Sequence[float]) -> Iterator[Cell]:
    """Every cell at these rates; the modes of a repeat follow each other, in random order."""
    for same in product(
        plan.server, plan.flood, plan.qlen, plan.backlog, plan.syn_cookies, rates, range(plan.repeats)
    ):
        modes = list(plan.mode)
        random.Random(f"{plan.seed}/{same}").shuffle(modes)
        yield from (Cell(*same, mode) for mode in modes)


def job(plan: StressPlan, cell: Cell) -> dict[str, Any]:
    """The laboratory's job of a cell."""
    flood = {"kind": cell.flood, "rate": plan.flood_rate, "addresses": plan.addresses}
    return {
        "server": describe_server(cell.server, size=plan.size, backlog=cell.backlog, qlen=cell.qlen),
        "mode": cell.mode,
        "rate": cell.rate,
        "seconds": plan.seconds,
        "warm_up": plan.warm_up,
        "timeout_ms": 1000 * plan.timeout,
        "rtt_ms": plan.rtt,
        "body_bytes": plan.size,
        "backlog": cell.backlog,
        "qlen": cell.qlen,
        "syn_cookies": SYN_COOKIES.index(cell.syn_cookies),
        "flood": None if cell.flood == "none" else flood,
    }
