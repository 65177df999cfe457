"""One panel of the interactive waterfall: a Vega-Lite document whose data the report's script sets.

The panel knows seconds and rows, nothing else: what is drawn in which colour, the script decides.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from firstflight.report.figures.theme import FONT, Spec

DATASETS = ("rects", "links", "lines", "crosses")
"""Phases and the critical path; its way from row to row; load events; requests that broke off."""

_INK, _SOFT, _GRID = "var(--ink)", "var(--soft)", "var(--line)"
"""Colours of the page's style sheet, so that a panel is light or dark as the page is."""

_LABEL = "format(datum.value, '~f') + ' s'"


def panel() -> Spec:
    """The bars. Signals: `from_s`, `to_s` (what is seen of the time), `row_count`."""
    rects, links, lines, crosses = (alt.Chart(alt.NamedData(name)) for name in DATASETS)
    x, y = _time(alt.Axis(labels=False, ticks=False, domain=False, title=None, tickCount=6)), _rows()
    fill, stroke = alt.Fill("fill:N", scale=None), alt.Stroke("fill:N", scale=None)
    dash: Any = {"field": "dash", "type": "nominal", "scale": None}
    layers = (
        rects.mark_rect(clip=True, aria=False).encode(
            x=x, x2="end:Q", y=y, y2="bottom:Q", fill=fill, opacity=alt.Opacity("opacity:Q", scale=None)
        ),
        links.mark_rule(clip=True, aria=False, color=_INK).encode(x=x, y=y, y2="bottom:Q"),
        lines.mark_rule(clip=True, aria=False, strokeWidth=1.5).encode(x=x, stroke=stroke, strokeDash=dash),
        crosses.mark_point(clip=True, aria=False, shape="cross", angle=45, filled=True, opacity=1).encode(
            x=x, y=y, fill=fill
        ),
    )
    return _document(alt.layer(*layers), {name: [] for name in DATASETS}, {})


def axis() -> Spec:
    """The axis above the bars, which stays in sight while they scroll."""
    x = _time(alt.Axis(orient="top", title=None, tickCount=6, grid=False, labelFlush=True, labelExpr=_LABEL))
    nothing = alt.Chart(alt.NamedData("nothing")).mark_point(aria=False).encode(x=x)
    return _document(alt.layer(nothing), {"nothing": []}, {"top": 22})


def _time(look: alt.Axis) -> alt.X:
    scale: Any = {"domain": [{"expr": "from_s"}, {"expr": "to_s"}], "nice": False, "zero": False}
    return alt.X("start:Q", axis=look, scale=scale)


def _rows() -> alt.Y:
    scale: Any = {"domain": [0, {"expr": "row_count"}], "nice": False, "reverse": True}
    return alt.Y("top:Q", axis=None, scale=scale)


def _document(
    chart: alt.LayerChart | alt.FacetChart, data: dict[str, list[Any]], padding: dict[str, int]
) -> Spec:
    sides = dict.fromkeys(("left", "right", "top", "bottom"), 0)
    return {
        **chart.to_dict(validate=False),
        "params": [
            {"name": "from_s", "value": 0},
            {"name": "to_s", "value": 1},
            {"name": "row_count", "value": 1},
        ],
        "datasets": data,
        "autosize": {"type": "none"},
        "padding": {**sides, **padding},
        "background": "transparent",
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {
                "aria": False,
                "domainColor": _GRID,
                "gridColor": _GRID,
                "tickColor": _GRID,
                "labelColor": _SOFT,
                "labelFontSize": 11,
            },
        },
    }
