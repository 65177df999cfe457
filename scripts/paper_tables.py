"""Tables of twelve cells: the paper's, a results folder's, the simulator's; and how far from the paper."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from scipy.stats import spearmanr  # type: ignore[import-untyped]

from firstflight.analysis.compare import Side, open_side
from firstflight.engines.simulate import Simulator
from firstflight.experiment.schedule import Schedule
from firstflight.model.plan import PAPER_PAGES, Plan
from firstflight.pages import LoadedPage
from firstflight.results.records import plt_ms

Pages = Mapping[str, LoadedPage]
"""What is loaded in place of each of the paper's pages."""

Key = tuple[str, float]
"""Page, as the paper names it, and RTT, ms."""


@dataclass(frozen=True)
class Cell:
    """Median PLT without TFO, ms, and the improvement of the medians with its interval, fractions."""

    tcp_ms: float
    improvement: float
    low: float | None = None
    high: float | None = None


Table = Mapping[Key, Cell]


def _table(side: Side, names: Mapping[str, str]) -> Table:
    """The cells of a side, its pages under `names`; those that have none are left out."""
    return {
        (names[cell.key["page"]], cell.key["rtt_ms"]): Cell(
            cell.baseline_ms, cell.improvement, cell.low, cell.high
        )
        for cell in side.cells
        if cell.key["page"] in names
    }


PAPER = _table(open_side("paper"), {name: name for name in PAPER_PAGES})


@dataclass(frozen=True)
class Distance:
    """How far a table's improvements are from the paper's; a mean difference above 0: ours are larger.

    Attributes:
        cells: How many both have.
        same_sign: In how many of them both are faster, or both are not.
        rank: Spearman's correlation.
        size: Mean size of the differences, a fraction.
        mean: Mean difference, a fraction.
        plt_ratio: Mean of PLT without TFO over the paper's.
    """

    cells: int
    same_sign: int
    rank: float
    size: float
    mean: float
    plt_ratio: float


def distance(table: Table) -> Distance:
    """Compares `table` with the paper, over the cells that both have."""
    pairs = [(table[key], PAPER[key]) for key in PAPER if key in table]
    differences = [ours.improvement - theirs.improvement for ours, theirs in pairs]
    return Distance(
        len(pairs),
        sum((ours.improvement > 0) == (theirs.improvement > 0) for ours, theirs in pairs),
        float(spearmanr(*zip(*((a.improvement, b.improvement) for a, b in pairs), strict=True)).statistic),
        statistics.mean(map(abs, differences)),
        statistics.mean(differences),
        statistics.mean(ours.tcp_ms / theirs.tcp_ms for ours, theirs in pairs),
    )


def measured(folder: Path, pages: Pages) -> Table:
    """The cells of a results folder.

    Raises:
        UsageError: It is none.
    """
    return _table(open_side(str(folder)), {loaded.page.name: name for name, loaded in pages.items()})


def simulated(plan: Plan, pages: Pages) -> Table:
    """The cells of `plan` on the virtual clock: medians over repeats; seeds shift the kernel's ticks."""
    plan = plan.model_copy(update={"engine": "simulate"})
    loads = [load for block in Schedule(plan, list(pages)) for load in block.loads]
    simulator = Simulator("loads")
    table = {}
    for key, group in groupby(loads, lambda load: (load.page, load.path.rtt_ms)):
        plts_ms: dict[str, list[float]] = {"tcp": [], "tfo": []}
        for load in group:
            plts_ms[load.mode].append(plt_ms(simulator.load(load, pages[key[0]])))
        tcp_ms, tfo_ms = (statistics.median(plts_ms[mode]) for mode in ("tcp", "tfo"))
        table[key] = Cell(tcp_ms, 1 - tfo_ms / tcp_ms)
    return table
