"""The grid: conditions drawn at random from pages, paths and servers. No person selects easy ones.

The seed is fixed.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeVar

from accuracy_baseline import read as read_measured
from accuracy_pages import SEED, file

from firstflight import _core
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path, Queue
from firstflight.model.plan import PAPER_PAGES
from firstflight.pages import LoadedPage, Page, load_page

_T = TypeVar("_T")

CONDITIONS = 300
"""Each is loaded in both modes: 600 cells."""
MODES = ("tcp", "tfo")

RTTS_MS = (10.0, 20.0, 50.0, 100.0, 200.0)
RATES_BPS = (1_500_000, 4_000_000, 10_000_000, 50_000_000)
UPLINK = 4
"""The downlink of an access link is this many times as fast as its uplink."""
LOSSES = (0.0, 0.005, 0.02)
REPEATS = {0.0: 3, 0.005: 14, 0.02: 15}
"""Loads of a cell, by loss. Where chance decides which packets are lost, a median needs more loads."""


@dataclass(frozen=True)
class Condition:
    """A page on a path, loaded in both modes.

    Attributes:
        keys: Other fields of `PlannedLoad` that differ from those that `planned` sets.
    """

    number: int
    page: str
    path: Path
    keep_alive: bool
    keys: tuple[tuple[str, Any], ...] = ()

    def planned(self, mode: str, repeat: int, engine: str) -> PlannedLoad:
        """One load of the condition.

        Both modes of a repeat have the same seed, and so the same random losses.
        """
        load = PlannedLoad(
            load_id=f"{self.number}-{mode}-{repeat}",
            block=self.number,
            order=0,
            repeat=repeat,
            page=self.page,
            path=self.path,
            mode=mode,
            seed=1000 * self.number + repeat,
            engine=engine,
            keep_alive=self.keep_alive,
            scheme="http",
        )
        return replace(load, **dict(self.keys))


def conditions(recorded: list[str]) -> list[Condition]:
    """The conditions of the grid.

    Args:
        recorded: Its pages other than the paper's, by the names of their recordings.
    """
    generator = random.Random(SEED)
    pages = [*PAPER_PAGES, *recorded]
    settings = list(product(RTTS_MS, RATES_BPS, LOSSES, ("access", "star"), (True, False)))
    return [
        Condition(number, page, _path(*setting[:4]), setting[4])
        for number, (page, setting) in enumerate(
            zip(_cycle(pages, generator), _cycle(settings, generator), strict=True)
        )
    ]


def measured_pages() -> list[str]:
    """The pages of the committed baseline other than the paper's, by the names of their recordings."""
    return sorted({row.page for row in read_measured()} - set(PAPER_PAGES))


@cache
def open_page(name: str) -> LoadedPage:
    """A page of the grid as both clocks load it, without TLS. Each page is opened once."""
    (recorded,) = load_page(name if name in PAPER_PAGES else str(file(name)))
    fields = json.loads(_core.in_the_clear(recorded.page.to_json()))
    return replace(recorded, page=Page.from_fields(fields))


def _path(rtt_ms: float, rate_bps: int, loss: float, topology: str) -> Path:
    up_bps = rate_bps if topology == "star" else rate_bps // UPLINK
    return Path(topology, rtt_ms, rate_bps, up_bps, Queue(packets=1000), loss)


def _cycle(values: Sequence[_T], generator: random.Random) -> list[_T]:
    """`CONDITIONS` values in random order; each occurs equally often, as far as the number divides."""
    drawn: list[_T] = []
    while len(drawn) < CONDITIONS:
        drawn += generator.sample(values, len(values))
    return drawn[:CONDITIONS]
