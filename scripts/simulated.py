"""Loads of a plan on the virtual clock, for studies that hold many plans beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import vl_convert

from firstflight.engines.simulate import Simulator
from firstflight.experiment.plan_file import read_plan_file, resolve
from firstflight.experiment.schedule import Schedule
from firstflight.model.plan import Plan
from firstflight.pages import LoadedPage
from firstflight.report.figures.theme import Spec
from firstflight.results import write_whole

Place = tuple[str, float]
"""A page and an RTT, ms."""


@dataclass(frozen=True)
class Found:
    """What came of the loads of one page on one path in one mode: means over the loads.

    Attributes:
        plt_ms: Page load time, ms; infinite where one failed.
        counts: `connections`, `tfo_offered`, `tfo_accepted`, `bytes_up`, `bytes_down`, `retransmits`.
    """

    plt_ms: float
    counts: Mapping[str, float]


@dataclass(frozen=True)
class Pair:
    """Both modes of one place."""

    tcp: Found
    tfo: Found

    @property
    def saved_ms(self) -> float:
        """How much sooner the page loads with TFO, ms."""
        return self.tcp.plt_ms - self.tfo.plt_ms

    @property
    def improvement(self) -> float:
        """The same as a fraction of the PLT without."""
        return self.saved_ms / self.tcp.plt_ms


_COUNTS = ("connections", "tfo_offered", "tfo_accepted", "bytes_up", "bytes_down", "retransmits")


def study_plan(file: str, **keys: object) -> Plan:
    """The plan in a file, simulated, with `keys` instead of its own."""
    return resolve({"engine": "simulate", "keep": "loads", **keys}, read_plan_file(Path(file)))


def simulate(plan: Plan, pages: Mapping[str, LoadedPage]) -> dict[Place, Pair]:
    """Makes every load of a plan that has one rate and both modes, by page and RTT."""
    found = {key: _found(rows) for key, rows in _rows(plan, pages).items()}
    places = dict.fromkeys(place for place, _ in found)
    return {place: Pair(found[place, "tcp"], found[place, "tfo"]) for place in places}


def write_svg(file: Path, spec: Spec) -> None:
    """Draws a figure."""
    write_whole(file, vl_convert.vegalite_to_svg(spec).encode())


def _rows(plan: Plan, pages: Mapping[str, LoadedPage]) -> dict[tuple[Place, str], list[dict[str, Any]]]:
    rows: dict[tuple[Place, str], list[dict[str, Any]]] = {}
    simulator = Simulator("loads")
    for load in _loads(plan):
        row = dict(simulator.load(load, pages[load.page])["load"])
        rows.setdefault(((load.page, load.path.rtt_ms), load.mode), []).append(row)
    return rows


def _loads(plan: Plan) -> Iterator[Any]:
    return (load for block in Schedule(plan, plan.pages) for load in block.loads)


def _found(rows: list[dict[str, Any]]) -> Found:
    times = [row["plt_ms"] if row["status"] == "ok" else float("inf") for row in rows]
    return Found(fmean(times), {name: fmean(row[name] or 0 for row in rows) for name in _COUNTS})
