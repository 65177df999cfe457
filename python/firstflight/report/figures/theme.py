"""The common style of figures: type, grid, and colours that colour-blind readers can distinguish.

Colours are after Okabe and Ito, "Color universal design", 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
INK, SOFT, GRID = "#1f2933", "#5f6b76", "#e4e7eb"

SIDE_COLORS = {"baseline": "#8a94a0", "treatment": "#0072b2"}
"""A colour per side; that of the treatment is more prominent."""

CATEGORY_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Colours of treatments, pages or other categories."""


def treatment_colors(baselines: Sequence[str], treatments: Sequence[str]) -> dict[str, str]:
    """A colour for each treatment, by name. Baselines are grey; the colours of the others repeat."""
    grey = dict.fromkeys(baselines, SIDE_COLORS["baseline"])
    return {**grey, **dict(zip(treatments, cycle(CATEGORY_COLORS), strict=False))}


PHASE_COLORS = {"queued": "#d9dde1", "connect": "#d55e00", "wait": "#79bfe8", "receive": "#00598c"}
"""A colour per phase of a request; the handshake, which TFO saves, has the warm one."""

COMPONENT_COLORS = {
    "tcp": "#d55e00",
    "tls": "#e69f00",
    "quic": "#f0c94a",
    "connection": "#f2d0b5",
    "request": "#c9e4f5",
    "propagation": "#79bfe8",
    "server": "#009e73",
    "queueing": "#cc79a7",
    "window": "#3a8fc7",
    "transfer": "#00598c",
    "processing": "#b3bac1",
}
"""A colour per component of a critical path: handshakes are warm, packets on their way are blue."""

FAILED_COLOR = "#b00020"
"""The colour of the point at which a request broke off."""

CONNECTION_COLORS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8c6bb1",
    "#7f9a1e",
    "#a6611a",
    "#5f6b76",
)
"""Colours that distinguish neighbouring connections; they repeat."""

DARK = {
    "white": "#15191e",
    INK: "#e8ebee",
    SOFT: "#a3adb7",
    GRID: "#303842",
    FAILED_COLOR: "#ff7a85",
    "#0072b2": "#4aa6e0",
    "#00598c": "#1b6fae",
    "#d9dde1": "#4a5560",
}
"""Colours on a dark page, by the colour of the figure that they replace."""


Rows = Sequence[Mapping[str, Any]]
"""Rows of a figure's data."""

Spec = dict[str, Any]
"""A Vega-Lite document, or a part of one."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_AXIS = {"labelColor": SOFT, "titleColor": INK, "gridColor": GRID, "domainColor": GRID, "tickColor": GRID}

_CONFIG = {
    "font": FONT,
    "background": "white",
    "padding": 14,
    "view": {"stroke": None},
    "axis": {
        **_AXIS,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titlePadding": 8,
    },
    "title": {
        "anchor": "start",
        "frame": "group",
        "color": INK,
        "fontSize": 16,
        "fontWeight": "bold",
        "subtitleColor": SOFT,
        "subtitleFontSize": 12,
        "subtitlePadding": 5,
        "subtitleLineHeight": 16,
        "offset": 16,
    },
    "header": {"labelFontSize": 13, "labelFontWeight": "bold", "labelColor": INK, "labelAnchor": "start"},
    "legend": {
        "orient": "top",
        "title": None,
        "symbolType": "square",
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 0,
        "offset": 10,
    },
}


def title(text: str, subtitle: list[str]) -> Spec:
    """A figure's title: its message, and below it how it was measured."""
    return {"text": text, "subtitle": subtitle}


def field(name: str, **more: object) -> Spec:
    """A channel for a quantity of the data."""
    return {"field": name, "type": "quantitative", **more}


def named(name: str, **more: object) -> Spec:
    """A channel for names of the data, in the order of the rows."""
    return {"field": name, "type": "nominal", "sort": None, **more}


def colours(names: Sequence[str], shown: Sequence[str]) -> Spec:
    """A scale that gives each name its colour."""
    return {"domain": list(names), "range": list(shown)}


def layer(mark: str, encoding: Mapping[str, object], where: str = "", **look: object) -> Spec:
    """A layer of marks of one kind.

    Args:
        mark: The kind of mark.
        encoding: The field of each channel.
        where: The rows that are drawn, as a Vega expression; empty: all.
        look: Properties of all marks.
    """
    chosen = {"transform": [{"filter": where}]} if where else {}
    return {**chosen, "mark": {"type": mark, **look}, "encoding": dict(encoding)}


def faceted(
    layers: Sequence[Spec], data: Rows, heading: Spec, *, columns: int, size: Spec, axes: str
) -> Spec:
    """A panel per value of `panel` in the data, in the common style.

    Args:
        layers: The layers of each panel.
        data: The rows.
        heading: From `title`.
        columns: The most panels side by side.
        size: `width` and `height` of a panel.
        axes: The axes that each panel has of its own, of `x` and `y`.
    """
    panels = len({row["panel"] for row in data})
    figure = {
        "title": heading,
        "data": {"name": "rows"},
        "facet": named("panel", title=None),
        "columns": min(columns, panels),
        "resolve": {"axis": dict.fromkeys(axes, "independent")},
        "spec": {**size, "layer": list(layers)},
    }
    return styled(figure, {"rows": data})


def styled(figure: Spec, data: Mapping[str, Rows]) -> Spec:
    """A whole Vega-Lite document in the common style.

    Args:
        figure: The figure. It refers to its data by name: altair checks every value inside a figure, which
            takes a second for a page of a hundred requests.
        data: The rows by that name.
    """
    return {"$schema": SCHEMA, **figure, "config": _CONFIG, "datasets": dict(data)}
