"""Curves over the RTT or the rate, a panel per page: improvement beside the paper's, and load times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstflight.analysis import SIDES, words
from firstflight.analysis.records import Cell, plt_of, value_of
from firstflight.model.treatment import phrase
from firstflight.published import PAPER, published_table
from firstflight.report.figures.theme import (
    INK,
    SOFT,
    Rows,
    Spec,
    colours,
    faceted,
    field,
    layer,
    named,
    title,
    treatment_colors,
)

_COLUMNS = 4
_SIZE = {"width": 200, "height": 230}
_MEASURED, _PAPER = "measured", "the paper, Table 1"


@dataclass(frozen=True)
class _Against:
    """What a curve goes over: a column of the summary, and its name."""

    column: str
    title: str


_RTT = _Against("rtt_ms", "RTT (ms)")
_RATE = _Against("down_mbps", "rate towards the client (Mbit/s)")


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
    measured = treatment_colors([], _sources(cells))
    printed = [_PAPER] if all(map(words.is_of_modes, cells)) else []
    strokes, fills = ([*measured.values(), *[paper for _ in printed]] for paper in (SOFT, "white"))
    color = named("source", scale=colours([*measured, *printed], strokes))
    fill = named("source", scale=colours([*measured, *printed], fills))
    y = field("point", title="improvement of the PLT (%)", axis={"grid": True}, scale={"nice": True})
    point = {"x": _x(data, against), "y": y, "color": color}
    layers = [
        layer("rule", {"y": {"datum": 0}}, color=INK, strokeWidth=1),
        layer("line", point, f"datum.source == '{_PAPER}'", strokeDash=[4, 3]),
        layer("line", point, f"datum.source != '{_PAPER}'"),
        *_intervals(point, data),
        layer("point", {**point, "fill": fill}, size=60, strokeWidth=1.6, opacity=1),
    ]
    subtitle = [
        f"Medians over {words.blocks(cells)} per point; bars: 95 % interval. Above 0: {words.faster(cells)}.",
        *words.caption_lines(*cells),
    ]
    if any(row["source"] == _PAPER for row in data):
        subtitle.append(f"Paper: {PAPER}; 4 Mbit/s down, 256 kbit/s up, the pages and the Chrome of 2011.")
    return _faceted(layers, title(f"How much sooner the page loads {words.treated(cells)}", subtitle), data)


def plt_by_rtt(cells: Sequence[Cell]) -> Spec:
    """Median PLT against RTT, a line per treatment, with intervals.

    Args:
        cells: Cells of the summary; at least one with a median.
    """
    data = _medians(cells)
    baselines, treatments = (
        dict.fromkeys(phrase(cell[side]) for cell in cells if cell[side]) for side in SIDES
    )
    colors = treatment_colors([*baselines], [*treatments])
    color = named("source", scale=colours([*colors], [*colors.values()]))
    y = field("point", title="page load time (s)", scale={"zero": True, "nice": True})
    point = {"x": _x(data, _RTT), "y": y, "color": color}
    layers = [
        layer("line", point),
        *_intervals(point, data),
        layer("point", point, size=50, filled=True, opacity=1),
    ]
    subtitle = [
        f"Medians over {words.blocks(cells)} per point; bars: 95 % interval of the median.",
        *words.caption_lines(*cells),
    ]
    return _faceted(
        layers, title(f"Page load time {words.listed([*baselines, *treatments])}", subtitle), data
    )


def _faceted(layers: Sequence[Spec], heading: Spec, data: Rows) -> Spec:
    """A panel per page."""
    return faceted(layers, data, heading, columns=_COLUMNS, size=_SIZE, axes="x")


def _x(data: Rows, against: _Against) -> Spec:
    values = sorted({float(row["at"]) for row in data})
    scale = {"domain": [0, (values[-1] or 1) * 1.06], "nice": False}
    axis = {"values": values, "labelOverlap": True, "grid": False, "format": "~f"}
    return field("at", title=against.title, scale=scale, axis=axis)


def _intervals(point: Mapping[str, object], data: Rows) -> list[Spec]:
    """A bar per interval; no layer where there are none, of which Vega would warn."""
    ends = {**point, "y": field("low"), "y2": {"field": "high"}}
    drawn = layer("rule", ends, "isValid(datum.low)", strokeWidth=2.2)
    return [drawn] if any(row["low"] is not None for row in data) else []


def _improvements(cells: Sequence[Cell], against: _Against) -> Rows:
    paper = {(found.page, found.rtt_ms): found for found in published_table("paper").cells}
    rows = []
    names = _sources(cells)
    for cell, panel in zip(cells, words.panels(cells, against.column), strict=True):
        source = cell["treatment"] if cell["treatment"] in names else _MEASURED
        effect = cell["improvement"]
        shown = (effect["point"], effect["low"], effect["high"])
        rows.append(_row(panel, value_of(cell, against.column), source, shown, 100))
        found = paper.get((cell["page"], cell["rtt_ms"]))
        if found and against is _RTT and words.is_of_modes(cell):
            rows.append(_row(panel, found.rtt_ms, _PAPER, (found.improvement, None, None), 100))
    return rows


def _medians(cells: Sequence[Cell]) -> Rows:
    panels = words.panels(cells)
    found = []
    for place, side in words.sides_once(cells, panels):
        cell = cells[place]
        estimate = plt_of(cell, side)
        if estimate["median"] is not None:
            ends = (estimate["median"], estimate["low"], estimate["high"])
            found.append(_row(panels[place], cell["rtt_ms"], phrase(cell[side]), ends, 1 / 1000))
    return found


def _sources(cells: Sequence[Cell]) -> list[str]:
    """How measured curves are called: after their treatments, if there are several."""
    names = list(dict.fromkeys(str(cell["treatment"]) for cell in cells))
    return names if len(names) > 1 else [_MEASURED]


def _row(
    panel: str, at: float, source: str, estimate: Iterable[float | None], scale: float
) -> dict[str, object]:
    """One point with its interval."""
    scaled = (None if value is None else value * scale for value in estimate)
    return {
        "panel": panel,
        "at": at,
        "source": source,
        **dict(zip(("point", "low", "high"), scaled, strict=True)),
    }
