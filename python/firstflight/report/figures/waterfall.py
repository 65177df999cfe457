"""The waterfall as a figure: every request of a page on both sides, with the same rows."""

from __future__ import annotations

from typing import Literal

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.critical_path.explanation import median_load
from firstflight.analysis.records import Cell, Side
from firstflight.deferred import altair as alt
from firstflight.report.figures.theme import (
    FAILED_COLOR,
    INK,
    PHASE_COLORS,
    SOFT,
    Rows,
    Spec,
    styled,
    title,
)
from firstflight.report.waterfalls import (
    PHASES,
    RowKey,
    bars,
    broke_off,
    row_order,
)
from firstflight.results import LoadRecord
from firstflight.results.records import plt_ms
from firstflight.text import plural

LABELLED_ROWS = 80
"""With more requests than this, rows have numbers instead of URLs."""

_PANEL_WIDTH = 430
_SHEET_HEIGHT = 760


def waterfall(pair: CellPair, cell: Cell, variant: str = "") -> Spec:
    """The waterfall of a cell pair, as a Vega-Lite document.

    Args:
        pair: The cell pair, with at least one paired block.
        cell: Its entry in the summary.
        variant: What distinguishes it from other cells of the same page and RTT.
    """
    loads = {side: median_load(pair.loads(side)) for side in SIDES}
    order = row_order(*(loads[side]["requests"] for side in SIDES))
    names = _row_names(order)
    plts_ms = {side: plt_ms(loads[side]) for side in SIDES}
    end_ms = max([*plts_ms.values(), *map(_end_ms, loads.values())])
    phrases = pair.phrases
    panels = [_panel(side, phrases, names, plts_ms, end_ms) for side in SIDES]
    small_print = _small_print(pair, cell, loads)
    chart = alt.hconcat(*panels, spacing=24, title=title(_headline(cell, variant), small_print))
    data = {name: rows for side in SIDES for name, rows in _data(side, loads[side], names, plts_ms).items()}
    return styled(chart.to_dict(validate=False), data)


def _data(
    side: Side, load: LoadRecord, names: dict[RowKey, str], plt_ms: dict[Side, float]
) -> dict[str, Rows]:
    requests = load["requests"]
    return {
        f"{side} phases": [
            {
                "row": names[bar.row],
                "phase": bar.phase,
                "start": bar.start_ms / 1000,
                "end": bar.end_ms / 1000,
            }
            for bar in bars(requests)
        ],
        f"{side} broken": [{"row": names[row], "start": ms / 1000} for row, ms in broke_off(requests)],
        f"{side} plt": [{"start": plt_ms[side] / 1000}],
    }


def _panel(
    side: Side, phrases: dict[str, str], names: dict[RowKey, str], plt_ms: dict[Side, float], end_ms: float
) -> alt.LayerChart | alt.FacetChart:
    height = max(120.0, min(len(names) * 17.0, _SHEET_HEIGHT))
    step = height / len(names)
    x = alt.X("start:Q", title="time since navigation start (s)").axis(tickCount=7)
    x = x.scale(domain=[0, end_ms / 1000], nice=False)
    y = alt.Y("row:N", sort=None, title=None, axis=_row_axis(side, phrases[side], names, step))
    y = y.scale(domain=list(names.values()), paddingInner=0.22 if step > 8 else 0.1)
    color = alt.Color("phase:N", sort=None).scale(domain=list(PHASES), range=list(PHASE_COLORS.values()))
    phases = alt.Chart(alt.NamedData(f"{side} phases")).mark_bar()
    broken = alt.Chart(alt.NamedData(f"{side} broken"))
    broken = broken.mark_point(shape="cross", angle=45, color=FAILED_COLOR, filled=True, opacity=1)
    layers = [
        phases.encode(x=x, x2="end:Q", y=y, color=color),
        broken.encode(x=x, y=y),
        *_plt_lines(side, plt_ms, end_ms),
    ]
    heading = alt.TitleParams(phrases[side], fontSize=13, offset=2, anchor="start")
    return alt.layer(*layers).properties(width=_PANEL_WIDTH, height=height, title=heading)


def _plt_lines(side: Side, plt_ms: dict[Side, float], end_ms: float) -> list[alt.Chart]:
    """The load event of this load and, dashed, that of the other side's load."""
    other = next(name for name in SIDES if name != side)
    here, there = (alt.Chart(alt.NamedData(f"{name} plt")).encode(x="start:Q") for name in (side, other))
    align: Literal["left", "right"] = "right" if plt_ms[side] > 0.5 * end_ms else "left"
    label = here.mark_text(
        text=f"PLT {words.seconds(plt_ms[side])}",
        align=align,
        y=-9,
        color=INK,
        fontSize=12,
        fontWeight="bold",
    )
    return [
        there.mark_rule(color=SOFT, strokeDash=[4, 3]),
        here.mark_rule(color=INK, strokeWidth=1.5),
        label,
    ]


def _row_axis(side: Side, phrase: str, names: dict[RowKey, str], step: float) -> alt.Axis | None:
    if side != SIDES[0]:
        return None
    if len(names) <= LABELLED_ROWS:
        size = max(7.0, min(10.0, step * 0.85))
        return alt.Axis(ticks=False, domain=False, labelLimit=0, labelFontSize=size, labelPadding=6)
    tens = [name for number, name in enumerate(names.values(), start=1) if number % 10 == 0 or number == 1]
    return alt.Axis(values=tens, title=f"request, in order of start {phrase}", domain=False, labelFontSize=10)


def _row_names(order: list[RowKey]) -> dict[RowKey, str]:
    """Distinct row names: numbers, and URLs if there is space for them."""
    if len(order) > LABELLED_ROWS:
        return {row: str(number) for number, row in enumerate(order, start=1)}
    return {row: f"{words.short_url(row[0], 40)}  {number}" for number, row in enumerate(order, start=1)}


def _end_ms(load: LoadRecord) -> float:
    return max((float(request["end_ms"] or 0) for request in load["requests"]), default=0.0)


def _headline(cell: Cell, variant: str) -> str:
    page = words.short_url(cell["url"] or cell["page"], 60)
    where = f"{page} at {words.rtt(cell['rtt_ms'])} ms RTT" + (f" ({variant})" if variant else "")
    return f"{where}: {words.medians(cell)} ({words.effect(cell)})"


def _small_print(pair: CellPair, cell: Cell, loads: dict[Side, LoadRecord]) -> list[str]:
    blocks = ", ".join(f"{pair.names[side]} of block {loads[side]['load']['block']}" for side in SIDES)
    count = plural(cell["n"], "paired block")
    return [
        f"Medians of {count}; drawn is the load nearest the median of its side ({blocks}).",
        *words.caption_lines(cell),
        f"{cell['proof']['text']}. Dashed: PLT of the other side.",
    ]
