"""One panel of the interactive waterfall: a Vega-Lite document whose data the report's script sets.

The panel knows seconds and rows, nothing else: what is drawn in which colour, the script decides.
"""

from __future__ import annotations

from typing import Any

from firstflight.report.figures.theme import FONT, SCHEMA, Spec, field, layer

DATASETS = ("rects", "links", "lines", "crosses")
"""Phases and the critical path; its way from row to row; load events; requests that broke off."""

_INK, _SOFT, _GRID = "var(--ink)", "var(--soft)", "var(--line)"
"""Colours of the page's style sheet, so that a panel is light or dark as the page is."""

_LOOK: Spec = {"clip": True, "aria": False}
_LABEL = "format(datum.value, '~f') + ' s'"


def panel() -> Spec:
    """The bars. Signals: `from_s`, `to_s` (what is seen of the time), `row_count`."""
    x = _time({"labels": False, "ticks": False, "domain": False, "title": None, "tickCount": 6})
    y, bottom = _rows(), {"field": "bottom"}
    fill, dash = _as_it_is("fill"), _as_it_is("dash")
    opacity = field("opacity", scale=None)
    rects = {"x": x, "x2": {"field": "end"}, "y": y, "y2": bottom, "fill": fill, "opacity": opacity}
    cross: Spec = {"shape": "cross", "angle": 45, "filled": True, "opacity": 1}
    layers = (
        _of("rects", layer("rect", rects, **_LOOK)),
        _of("links", layer("rule", {"x": x, "y": y, "y2": bottom}, color=_INK, **_LOOK)),
        _of("lines", layer("rule", {"x": x, "stroke": fill, "strokeDash": dash}, strokeWidth=1.5, **_LOOK)),
        _of("crosses", layer("point", {"x": x, "y": y, "fill": fill}, **cross, **_LOOK)),
    )
    return _document({"layer": layers}, {name: [] for name in DATASETS}, {})


def axis() -> Spec:
    """The axis above the bars, which stays in sight while they scroll."""
    look = {"orient": "top", "title": None, "tickCount": 6, "grid": False, "labelFlush": True}
    nothing = layer("point", {"x": _time({**look, "labelExpr": _LABEL})}, aria=False)
    return _document({"layer": [_of("nothing", nothing)]}, {"nothing": []}, {"top": 22})


def _of(name: str, marks: Spec) -> Spec:
    return {"data": {"name": name}, **marks}


def _as_it_is(name: str) -> Spec:
    """A channel whose values are in the data: colours, dashes."""
    return {"field": name, "type": "nominal", "scale": None}


def _time(look: Spec) -> Spec:
    scale = {"domain": [{"expr": "from_s"}, {"expr": "to_s"}], "nice": False, "zero": False}
    return field("start", axis=look, scale=scale)


def _rows() -> Spec:
    return field(
        "top", axis=None, scale={"domain": [0, {"expr": "row_count"}], "nice": False, "reverse": True}
    )


def _document(figure: Spec, data: dict[str, list[Any]], padding: dict[str, int]) -> Spec:
    sides = dict.fromkeys(("left", "right", "top", "bottom"), 0)
    return {
        "$schema": SCHEMA,
        **figure,
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
