"""Where gains drown: what Fast Open saves beside how much two loads differ anyway, by page and RTT.

    python scripts/short_rtt_study.py DIR ... [--figure FILE.svg]

Each DIR is a results folder of studies/short_rtt/plan.toml. Prints a Markdown table a folder. The figure has
what is saved against the RTT, a panel per page, and the spread of a single pair of loads about it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from firstflight.analysis.cells import CellPair, cell_pairs
from firstflight.report.figures.theme import INK, Spec, styled, title
from firstflight.results import Journal, write_whole
from firstflight.results.files import journal_path

_COLORS = ["#0072b2", "#d55e00", "#009e73"]
_SURE = 1.96
"""Standard errors that an effect must be away from nothing: 95 %."""


@dataclass(frozen=True)
class Cell:
    """A page on a path: its load times in pairs, ms."""

    pair: CellPair
    run: str

    @property
    def tcp_ms(self) -> float:
        """Median load time without Fast Open."""
        return statistics.median(self.pair.plt_ms("baseline"))

    @property
    def saved_ms(self) -> list[float]:
        """What Fast Open saved in each pair."""
        sides = (self.pair.plt_ms("baseline"), self.pair.plt_ms("treatment"))
        return [tcp - tfo for tcp, tfo in zip(*sides, strict=True)]

    @property
    def median_ms(self) -> float:
        """What it saved in the median."""
        return statistics.median(self.saved_ms)

    @property
    def spread_ms(self) -> float:
        """Standard deviation of what a single pair shows."""
        return statistics.stdev(self.saved_ms)

    @property
    def slower(self) -> int:
        """Pairs in which Fast Open looks slower."""
        return sum(saved < 0 for saved in self.saved_ms)

    @property
    def enough(self) -> float:
        """Pairs whose mean would show the saving at 95 %, if pairs are independent."""
        mean = statistics.fmean(self.saved_ms)
        return math.ceil(max(1.0, (_SURE * self.spread_ms / mean) ** 2)) if mean > 0 else math.inf


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="What Fast Open saves beside the noise, by RTT.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    runs = {folder: read(folder) for folder in options.folders}
    for folder, cells in runs.items():
        sys.stdout.writelines(table(folder.name, cells))
    if options.figure:
        spec = figure([cell for cells in runs.values() for cell in cells])
        write_whole(options.figure, vl_convert.vegalite_to_svg(spec).encode())
    return 0


def read(folder: Path) -> list[Cell]:
    """The cells of a results folder."""
    pairs = cell_pairs(Journal(journal_path(folder)))
    return [Cell(pair, f"{pair.key.client}, {pair.key.engine}d") for pair in pairs]


def table(name: str, cells: list[Cell]) -> Iterator[str]:
    """A row per cell."""
    yield f"\n{name}\n\n"
    yield (
        "| page | RTT, ms | PLT, TCP | improvement | saved, ms | saved, RTT | spread of a pair, ms "
        "| looks slower | pairs needed |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    for cell in cells:
        key, saved = cell.pair.key, cell.median_ms
        yield (
            f"| {key.page} | {key.rtt_ms:g} | {cell.tcp_ms / 1000:.3f} s "
            f"| {100 * saved / cell.tcp_ms:+.1f} % | {saved:.1f} | {saved / key.rtt_ms:.1f} "
            f"| {cell.spread_ms:.1f} | {cell.slower} of {len(cell.saved_ms)} | {cell.enough:g} |\n"
        )


def figure(cells: list[Cell]) -> Spec:
    """Saved time against the RTT; bars are where a single pair lies, two times in three."""
    data = [_point(cell) for cell in cells]
    runs = list(dict.fromkeys(point["run"] for point in data))
    color = alt.Color("run:N", title=None, sort=runs).scale(domain=runs, range=_COLORS[: len(runs)])
    axis = alt.Axis(values=sorted({point["rtt"] for point in data}), grid=False)
    base = alt.Chart().encode(x=alt.X("rtt:Q", title="RTT (ms)", axis=axis), color=color)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="saved by Fast Open (ms)"), y2="high:Q"),
        base.mark_line(strokeWidth=1.5).encode(y="saved:Q"),
        base.mark_point(filled=True, size=35, opacity=1).encode(y="saved:Q"),
    ).properties(width=210, height=210)
    heading = title(
        "What Fast Open saves, and where a single pair of loads lies",
        ["Medians of pairs; bars: one standard deviation of a single pair about it. Above 0, TFO is faster."],
    )
    chart = layers.facet(
        alt.Facet("page:N", title=None, sort=None), columns=2, data=alt.NamedData("cells"), title=heading
    )
    return styled(chart.resolve_axis(x="independent").to_dict(validate=False), {"cells": data})


def _point(cell: Cell) -> dict[str, Any]:
    saved, spread = cell.median_ms, cell.spread_ms
    place = {"page": cell.pair.key.page, "rtt": cell.pair.key.rtt_ms, "run": cell.run}
    return {**place, "saved": saved, "low": saved - spread, "high": saved + spread}


if __name__ == "__main__":
    sys.exit(main())
