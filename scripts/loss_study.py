"""What loss makes of Fast Open's gain: whole distributions of the page load time.

    python scripts/loss_study.py DIR ... [--figure FILE.svg]

Each DIR is a results folder of studies/loss/plan.toml: of either engine, with keep-alive or with
servers that close.
Prints a Markdown table; the figure has the distributions, a panel per page and kind of server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from firstflight.analysis import words
from firstflight.analysis.cells import SIDES, CellPair, cell_pairs
from firstflight.experiment.folder import stored_plan
from firstflight.report.figures.theme import Spec, styled, title
from firstflight.results import Journal, write_whole
from firstflight.results.files import journal_path

ENGINES = {"simulate": "simulated", "emulate": "real kernel"}
_COLORS = {"without TFO": "#d55e00", "with TFO": "#0072b2"}
_UP_TO_S = 9.0


@dataclass(frozen=True)
class Cell:
    """The loads of one page with one kind of server on one engine."""

    servers: str
    pair: CellPair

    @property
    def engine(self) -> str:
        """Which clock."""
        return ENGINES[self.pair.key.engine]

    def quartiles_s(self, side: str) -> list[float]:
        """Lower quartile, median and upper quartile of the PLT."""
        return [ms / 1000 for ms in statistics.quantiles(self.pair.plt_ms(side), n=4, method="inclusive")]

    def slower_share(self) -> float:
        """Of all pairs of a load without and one with Fast Open, the share in which the latter is slower."""
        tcp, tfo = (self.pair.plt_ms(side) for side in SIDES)
        return sum(b > a for a in tcp for b in tfo) / (len(tcp) * len(tfo))


def main() -> int:
    """Prints the table; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="Distributions of the page load time under loss.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    cells = [cell for folder in options.folders for cell in read(folder)]
    sys.stdout.writelines(table(cells))
    if options.figure:
        write_whole(options.figure, vl_convert.vegalite_to_svg(figure(cells)).encode())
    return 0


def read(folder: Path) -> list[Cell]:
    """The cells of a results folder."""
    plan = stored_plan(folder)
    servers = "keep-alive" if plan and plan.keep_alive else "a connection per request"
    return [Cell(servers, pair) for pair in cell_pairs(Journal(journal_path(folder)))]


def table(cells: list[Cell]) -> Iterator[str]:
    """Quartiles of both modes, a row per cell."""
    yield "| servers | page | clock | pairs | without TFO, s | with TFO, s "
    yield "| median | upper quartile | slower |\n|---|---|---|---:|---|---|---:|---:|---:|\n"
    for cell in cells:
        tcp, tfo = (cell.quartiles_s(side) for side in SIDES)
        quartiles = [", ".join(f"{value:.2f}" for value in values) for values in (tcp, tfo)]
        gains = [words.percent((before - after) / before) for before, after in zip(tcp, tfo, strict=True)]
        slower = f"{100 * cell.slower_share():.0f} %"
        columns = (cell.servers, cell.pair.key.page, cell.engine, str(len(cell.pair.plt_ms("treatment"))))
        yield f"| {' | '.join((*columns, *quartiles, *gains[1:], slower))} |\n"


def figure(cells: list[Cell]) -> Spec:
    """The share of loads that are done by a time."""
    data = [row for cell in cells for row in _steps(cell)]
    base = alt.Chart().encode(
        x=alt.X("plt:Q", title="PLT (s)", scale=alt.Scale(domain=[1.5, _UP_TO_S])),
        y=alt.Y("share:Q", title="share of loads", axis=alt.Axis(format="%")),
        color=alt.Color("mode:N", title=None).scale(domain=list(_COLORS), range=list(_COLORS.values())),
    )
    simulated = base.transform_filter(alt.datum.engine == "simulated")
    measured = base.transform_filter(alt.datum.engine == "real kernel")
    layers = alt.layer(
        simulated.mark_line(interpolate="step-after", strokeWidth=1.8, clip=True),
        measured.mark_point(filled=True, size=22, opacity=1, clip=True),
    ).properties(width=170, height=150)
    heading = title("Page load times at 1 % loss", ["Lines: simulated. Points: the real kernel. RTT 100 ms."])
    chart = layers.facet(
        column=alt.Column("page:N", title=None, sort=None),
        row=alt.Row("servers:N", title=None, sort=None),
        data=alt.NamedData("loads"),
        title=heading,
    )
    return styled(chart.to_dict(validate=False), {"loads": data})


def _steps(cell: Cell) -> Iterator[dict[str, Any]]:
    for side in SIDES:
        times = sorted(cell.pair.plt_ms(side))
        for index, ms in enumerate(times):
            yield {
                "servers": cell.servers,
                "page": cell.pair.key.page,
                "engine": cell.engine,
                "mode": cell.pair.phrases[side],
                "plt": ms / 1000,
                "share": (index + 0.5) / len(times),
            }


if __name__ == "__main__":
    raise SystemExit(main())
