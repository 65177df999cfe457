"""``output-figures/``: the figure of the course's ``plot.py``, with the loads that stand for their medians.

Names, title, axes and colours are the original's: every request as a bar from its start to its end, in order
of their ends, which each side has for itself; so a bar is not the same request as the bar behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.critical_path_load import started_ms, times
from firstflight.analysis.explanation import median_load
from firstflight.report.course import sanitize_file
from firstflight.report.figures.theme import Spec
from firstflight.results import LoadRecord, write_whole

FOLDER = "output-figures"
"""Name of the folder in a results folder."""

_LONGEST_NAME = 150
_LEGEND = {"treatment": ("TFO Enabled", "red", 0.5), "baseline": ("TFO Disabled", "green", 1.0)}
"""Words, colour and thickness of a side; the bars in front are thin, so that those behind show."""


def draw_course_figures(
    folder: Path,
    pairs: Sequence[CellPair],
    cells: Sequence[Mapping[str, Any]],
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Draws ``output-figures/timing-<page>-<RTT>.png`` for every cell that has a result.

    Args:
        folder: The results folder.
        pairs: Its cell pairs.
        cells: Their entries in the summary, in the same order.
        progress: Told the name of each figure before it is drawn.

    Returns:
        The files.

    Raises:
        UsageError: The folder cannot be written to.
    """
    paths = []
    for name, pair, page in _named(pairs, cells):
        if progress:
            progress(f"figure {name}")
        png = vl_convert.vegalite_to_png(timing(pair, page), scale=2)
        paths.append(write_whole(folder / FOLDER / f"{name}.png", png))
    return paths


def timing(pair: CellPair, page: str) -> Spec:
    """The figure of a cell pair, as a Vega-Lite document.

    Args:
        pair: Its loads; at least one paired block.
        page: The page's name as the original has it.
    """
    bars = [bar for side in SIDES for bar in _bars(side, median_load(pair.loads(side)))]
    names, colors, _ = zip(*_LEGEND.values(), strict=True)
    color = alt.Color("mode:N", sort=None).scale(domain=list(names), range=list(colors))
    chart = (
        alt.Chart(alt.InlineData(bars))
        .mark_rect()
        .encode(
            x=alt.X("start:Q", title="Time (ms)"),
            x2="end:Q",
            y=alt.Y("low:Q", title="Request Index"),
            y2="high:Q",
            color=color.legend(orient="bottom-right", title=None, fillColor="white", strokeColor="black"),
        )
    )
    heading = f"TFO Timing Breakdown: {words.short_url(page, 60)} at {words.rtt(pair.key.rtt_ms)} ms RTT"
    title = alt.TitleParams(heading, subtitle=words.caption_lines(pair.setting))
    spec: Spec = chart.properties(
        width=500, height=370, title=title, background="white", padding=12
    ).to_dict()
    return spec


def course_page(cell: Mapping[str, Any]) -> str:
    """A page's name in the original's figures: its URL, sanitised, without the scheme."""
    name = sanitize_file(cell["url"] or cell["page"])
    return name.removeprefix("https" if (cell["url"] or "").startswith("https:") else "http")


def _named(
    pairs: Sequence[CellPair], cells: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, CellPair, str]]:
    """File names without their ending, all different: sanitising makes one name of several URLs."""
    taken: set[str] = set()
    varying = words.varying(cells)
    for pair, cell in zip(pairs, cells, strict=True):
        if cell["n"] and cell["proof"]["ok"] and words.is_of_modes(cell):
            page = course_page(cell)
            parts = ["timing", page[:_LONGEST_NAME], words.rtt(cell["rtt_ms"])]
            name = base = "-".join([*parts, *words.variant(cell, varying).split()])
            number = 1
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
            yield name, pair, page


def _bars(side: str, load: LoadRecord) -> list[dict[str, Any]]:
    ended = [row for row in load["requests"] if row["end_ms"] is not None and times(row)]
    name, _, height = _LEGEND[side]
    return [
        {
            "mode": name,
            "start": started_ms(row),
            "end": float(row["end_ms"]),
            "low": index + 0.5 - height / 2,
            "high": index + 0.5 + height / 2,
        }
        for index, row in enumerate(sorted(ended, key=lambda row: float(row["end_ms"])))
    ]
