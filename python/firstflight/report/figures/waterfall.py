"""The waterfall: every request of a page without and with TFO, on one sheet and on common rows."""

from __future__ import annotations

from typing import Any, Literal

import altair as alt

from firstflight.analysis import MODES, CellPair, words
from firstflight.analysis.explanation import median_load
from firstflight.plural import plural
from firstflight.report.figures.phases import PHASES, RowKey, bars, broke_off, row_order
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
from firstflight.results import LoadRecord

LABELLED_ROWS = 80
"""With more requests than this, rows carry numbers instead of URLs."""

_PANEL_WIDTH = 430
_SHEET_HEIGHT = 760


def waterfall(pair: CellPair, cell: dict[str, Any], variant: str = "") -> Spec:
    """The waterfall of a cell pair, as a Vega-Lite document.

    Args:
        pair: Its loads; at least one paired block.
        cell: Its entry in the summary.
        variant: What tells it from other cells of the same page and RTT.
    """
    loads = {mode: median_load(pair.loads(mode)) for mode in MODES}
    order = row_order(*(loads[mode]["requests"] for mode in MODES))
    names = _row_names(order)
    plt_ms = {mode: float(loads[mode]["load"]["plt_ms"]) for mode in MODES}
    end_ms = max([*plt_ms.values(), *map(_end_ms, loads.values())])
    panels = [_panel(mode, names, plt_ms, end_ms) for mode in MODES]
    chart = alt.hconcat(*panels, spacing=24, title=title(_headline(cell, variant), _small_print(cell, loads)))
    data = {name: rows for mode in MODES for name, rows in _data(mode, loads[mode], names, plt_ms).items()}
    return styled(chart.to_dict(validate=False), data)


def _data(mode: str, load: LoadRecord, names: dict[RowKey, str], plt_ms: dict[str, float]) -> dict[str, Rows]:
    requests = load["requests"]
    return {
        f"{mode} phases": [
            {
                "row": names[bar.row],
                "phase": bar.phase,
                "start": bar.start_ms / 1000,
                "end": bar.end_ms / 1000,
            }
            for bar in bars(requests)
        ],
        f"{mode} broken": [{"row": names[row], "start": ms / 1000} for row, ms in broke_off(requests)],
        f"{mode} plt": [{"start": plt_ms[mode] / 1000}],
    }


def _panel(
    mode: str, names: dict[RowKey, str], plt_ms: dict[str, float], end_ms: float
) -> alt.LayerChart | alt.FacetChart:
    height = max(120.0, min(len(names) * 17.0, _SHEET_HEIGHT))
    step = height / len(names)
    x = alt.X("start:Q", title="time since navigation start (s)").axis(tickCount=7)
    x = x.scale(domain=[0, end_ms / 1000], nice=False)
    y = alt.Y("row:N", sort=None, title=None, axis=_row_axis(mode, names, step))
    y = y.scale(domain=list(names.values()), paddingInner=0.22 if step > 8 else 0.1)
    color = alt.Color("phase:N", sort=None).scale(domain=list(PHASES), range=list(PHASE_COLORS.values()))
    phases = alt.Chart(alt.NamedData(f"{mode} phases")).mark_bar()
    broken = alt.Chart(alt.NamedData(f"{mode} broken"))
    broken = broken.mark_point(shape="cross", angle=45, color=FAILED_COLOR, filled=True, opacity=1)
    layers = [
        phases.encode(x=x, x2="end:Q", y=y, color=color),
        broken.encode(x=x, y=y),
        *_plt_lines(mode, plt_ms, end_ms),
    ]
    heading = alt.TitleParams(words.MODE_NAMES[mode], fontSize=13, offset=2, anchor="start")
    return alt.layer(*layers).properties(width=_PANEL_WIDTH, height=height, title=heading)


def _plt_lines(mode: str, plt_ms: dict[str, float], end_ms: float) -> list[alt.Chart]:
    """The load event of this load, and, dashed, that of the other."""
    other = next(name for name in MODES if name != mode)
    here, there = (alt.Chart(alt.NamedData(f"{name} plt")).encode(x="start:Q") for name in (mode, other))
    align: Literal["left", "right"] = "right" if plt_ms[mode] > 0.5 * end_ms else "left"
    label = here.mark_text(
        text=f"PLT {words.seconds(plt_ms[mode])}",
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


def _row_axis(mode: str, names: dict[RowKey, str], step: float) -> alt.Axis | None:
    if mode != MODES[0]:
        return None
    if len(names) <= LABELLED_ROWS:
        size = max(7.0, min(10.0, step * 0.85))
        return alt.Axis(ticks=False, domain=False, labelLimit=0, labelFontSize=size, labelPadding=6)
    tens = [name for number, name in enumerate(names.values(), start=1) if number % 10 == 0 or number == 1]
    return alt.Axis(
        values=tens, title="request, in order of start without TFO", domain=False, labelFontSize=10
    )


def _row_names(order: list[RowKey]) -> dict[RowKey, str]:
    """Row names, all different: numbers, and URLs where there is room for them."""
    if len(order) > LABELLED_ROWS:
        return {row: str(number) for number, row in enumerate(order, start=1)}
    return {row: f"{words.short_url(row[0], 40)}  {number}" for number, row in enumerate(order, start=1)}


def _end_ms(load: LoadRecord) -> float:
    return max((float(request["end_ms"] or 0) for request in load["requests"]), default=0.0)


def _headline(cell: dict[str, Any], variant: str) -> str:
    page = words.short_url(cell["url"] or cell["page"], 60)
    without, with_tfo = (words.seconds(cell[mode]["median"]) for mode in ("tcp_ms", "tfo_ms"))
    where = f"{page} at {words.rtt(cell['rtt_ms'])} ms RTT" + (f" ({variant})" if variant else "")
    effect = words.effect(cell)
    return f"{where}: {without} without, {with_tfo} with TFO ({effect})"


def _small_print(cell: dict[str, Any], loads: dict[str, LoadRecord]) -> list[str]:
    blocks = ", ".join(f"{mode} of block {loads[mode]['load']['block']}" for mode in MODES)
    count = plural(cell["n"], "paired block")
    return [
        f"Medians of {count}; drawn is the load nearest the median of its mode ({blocks}).",
        *words.caption_lines(cell),
        f"{cell['proof']['text']}. Dashed: PLT of the other mode.",
    ]
