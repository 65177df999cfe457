"""Curves over the RTT or the rate, a panel per page: improvement beside the paper's, and load times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from firstflight.analysis import words
from firstflight.published import PAPER, published_table
from firstflight.report.figures.theme import INK, MODE_COLORS, SOFT, Rows, Spec, styled, title

_COLUMNS = 4
_WIDTH, _HEIGHT = 200, 230
_MEASURED, _PAPER = "measured", "the paper, Table 1"
_SOURCES = (_MEASURED, _PAPER)

Cell = Mapping[str, Any]


@dataclass(frozen=True)
class _Against:
    """What a curve goes over: a column of the summary, its name, and what else a panel's name then needs."""

    column: str
    title: str
    beside: tuple[str, ...] = ()


_RTT = _Against("rtt_ms", "RTT (ms)")
_RATE = _Against("down_mbps", "rate towards the client (Mbit/s)", beside=("rtt_ms",))


def improvement_by_rtt(cells: Sequence[Cell]) -> Spec:
    """Improvement against RTT with intervals, and the paper's Table 1 for the pages it has.

    Args:
        cells: Cells of the summary that have an improvement; at least one.
    """
    return _improvement(cells, _RTT)


def improvement_by_rate(cells: Sequence[Cell]) -> Spec:
    """Improvement against the rate towards the client, with intervals.

    Args:
        cells: Cells of the summary that have an improvement and a limited rate; at least one.
    """
    return _improvement(cells, _RATE)


def _improvement(cells: Sequence[Cell], against: _Against) -> Spec:
    data = _improvements(cells, against)
    color = alt.Color("source:N", sort=None).scale(domain=list(_SOURCES), range=[MODE_COLORS["tfo"], SOFT])
    fill = alt.Fill("source:N", sort=None).scale(domain=list(_SOURCES), range=[MODE_COLORS["tfo"], "white"])
    base = alt.Chart().encode(x=_x(data, against), color=color)
    y = alt.Y("point:Q", title="improvement of the PLT (%)", axis=alt.Axis(grid=True)).scale(nice=True)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.transform_filter(f"datum.source == '{_PAPER}'").mark_line(strokeDash=[4, 3]).encode(y=y),
        base.transform_filter(f"datum.source == '{_MEASURED}'").mark_line().encode(y=y),
        _interval(base),
        base.mark_point(size=60, strokeWidth=1.6, opacity=1).encode(y=y, fill=fill),
    )
    subtitle = [
        f"Medians over {words.blocks(cells)} per point; bars: 95 % interval. Above 0, TFO is faster.",
        *words.caption_lines(*cells),
    ]
    if any(row["source"] == _PAPER for row in data):
        subtitle.append(f"Paper: {PAPER}; 4 Mbit/s down, 256 kbit/s up, the pages and the Chrome of 2011.")
    return _faceted(layers, title("How much sooner the page loads with TFO", subtitle), data)


def plt_by_rtt(cells: Sequence[Cell]) -> Spec:
    """Median PLT against RTT, a line per mode, with intervals.

    Args:
        cells: Cells of the summary; at least one with a median.
    """
    data = _medians(cells)
    names = list(words.MODE_NAMES.values())
    color = alt.Color("source:N", sort=None).scale(domain=names, range=list(MODE_COLORS.values()))
    base = alt.Chart().encode(x=_x(data, _RTT), color=color)
    y = alt.Y("point:Q", title="page load time (s)").scale(zero=True, nice=True)
    layers = alt.layer(
        base.mark_line().encode(y=y),
        _interval(base),
        base.mark_point(size=50, filled=True, opacity=1).encode(y=y),
    )
    subtitle = [
        f"Medians over {words.blocks(cells)} per point; bars: 95 % interval of the median.",
        *words.caption_lines(*cells),
    ]
    return _faceted(layers, title("Page load time without and with TFO", subtitle), data)


def _faceted(layers: alt.LayerChart | alt.FacetChart, heading: alt.TitleParams, data: Rows) -> Spec:
    """A panel per page. The layers hold no data of their own: only so does each panel get its part."""
    panels = len({row["panel"] for row in data})
    layers = layers.properties(width=_WIDTH, height=_HEIGHT)
    facet = alt.Facet("panel:N", title=None, sort=None)
    chart = layers.facet(facet, columns=min(_COLUMNS, panels), data=alt.NamedData("cells"), title=heading)
    return styled(chart.resolve_axis(x="independent"), {"cells": data})


def _x(data: Rows, against: _Against) -> alt.X:
    values = sorted({float(row["at"]) for row in data})
    scale = alt.Scale(domain=[0, (values[-1] or 1) * 1.06], nice=False)
    axis = alt.Axis(values=values, labelOverlap=True, grid=False, format="~f")
    return alt.X("at:Q", title=against.title, scale=scale, axis=axis)


def _interval(base: alt.Chart) -> alt.Chart:
    rules: alt.Chart = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2.2)
    return rules.encode(y="low:Q", y2="high:Q")


def _improvements(cells: Sequence[Cell], against: _Against) -> Rows:
    paper = {(found.page, found.rtt_ms): found for found in published_table("paper").cells}
    rows = []
    for cell, panel in zip(cells, _panels(cells, against), strict=True):
        rows.append(_row(panel, cell[against.column], _MEASURED, cell["improvement"].values(), 100))
        found = paper.get((cell["page"], cell["rtt_ms"]))
        if found and against is _RTT:
            rows.append(_row(panel, found.rtt_ms, _PAPER, (found.improvement, None, None), 100))
    return rows


def _medians(cells: Sequence[Cell]) -> Rows:
    panels = _panels(cells, _RTT)
    estimates = (
        (cell["rtt_ms"], panel, mode, cell[f"{mode}_ms"])
        for cell, panel in zip(cells, panels, strict=True)
        for mode in words.MODE_NAMES
    )
    return [
        _row(panel, rtt_ms, words.MODE_NAMES[mode], found.values(), 1 / 1000)
        for rtt_ms, panel, mode, found in estimates
        if found["median"] is not None
    ]


def _panels(cells: Sequence[Cell], against: _Against) -> list[str]:
    """The panel of each cell: its page, and what else tells it apart but for what the curve goes over."""
    varying = [name for name in words.varying(cells) if name != against.column]
    beside = [name for name in against.beside if len({cell[name] for cell in cells}) > 1]
    variants = [[words.variant(cell, varying), *(f"{cell[name]:g} ms" for name in beside)] for cell in cells]
    names = [" ".join(filter(None, variant)) for variant in variants]
    return [
        f"{cell['page']} ({name})" if name else cell["page"] for cell, name in zip(cells, names, strict=True)
    ]


def _row(
    panel: str, at: float, source: str, estimate: Iterable[float | None], scale: float
) -> dict[str, Any]:
    """One point with its interval."""
    scaled = (None if value is None else value * scale for value in estimate)
    return {
        "panel": panel,
        "at": at,
        "source": source,
        **dict(zip(("point", "low", "high"), scaled, strict=True)),
    }
