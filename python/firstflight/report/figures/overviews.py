"""The figures of a whole run. The report's script draws them as well, so they need no library there.

They are: improvement, with the paper's, and load times over the RTT or the rate, a panel per page; the
distribution of PLTs, with every load relative to the median of its cell's baseline; and what PLTs were spent
on, as stacked bars of the critical paths of baseline and treatment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.critical_path.walk import COMPONENTS
from firstflight.analysis.records import Cell, Side, plt_of, value_of
from firstflight.analysis.summary import Evidence
from firstflight.deferred import numpy as np
from firstflight.model.treatment import phrase
from firstflight.published import PAPER, published_table
from firstflight.report.figures.theme import (
    COMPONENT_COLORS,
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
from firstflight.text import plural

CRITICAL_PATH = "critical-path"
"""Name of the figure that shows what page load times were spent on."""


def overviews(evidence: Evidence) -> Iterator[tuple[str, Spec]]:
    """Name and Vega-Lite document of each figure that this run has.

    Args:
        evidence: The cell pairs, their summary, and the explanations of those that can be explained.
    """
    cells = evidence.summary["cells"]
    compared = words.proved([cell for cell in cells if cell["n"]])
    loaded = [cell for cell in cells if cell["baseline_ms"]["median"] or cell["treatment_ms"]["median"]]
    limited = [cell for cell in compared if cell["down_mbps"] is not None]
    if compared:
        yield "improvement-by-rtt", improvement_by_rtt(compared)
    if len({cell["down_mbps"] for cell in limited}) > 1:
        yield "improvement-by-rate", improvement_by_rate(limited)
    if loaded:
        yield "plt-by-rtt", plt_by_rtt(loaded)
    if any(cell["n"] for cell in cells):
        yield "plt-distribution", plt_distribution(evidence.pairs, cells)
    if evidence.explanations:
        yield CRITICAL_PATH, critical_paths(evidence.explanations)


_CURVES_A_ROW = 4
_SIZE = {"width": 200, "height": 230}
_MEASURED, _PAPER = "measured", "the paper, Table 1"


@dataclass(frozen=True)
class _Against:
    """The horizontal axis of a curve: a column of the summary, and its title."""

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
    printed = [_PAPER] if all(map(words.is_of_fast_open, cells)) else []
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
    return faceted(layers, data, heading, columns=_CURVES_A_ROW, size=_SIZE, axes="x")


def _x(data: Rows, against: _Against) -> Spec:
    values = sorted({float(row["at"]) for row in data})
    scale = {"domain": [0, (values[-1] or 1) * 1.06], "nice": False}
    axis = {"values": values, "labelOverlap": True, "grid": False, "format": "~f"}
    return field("at", title=against.title, scale=scale, axis=axis)


def _intervals(point: Mapping[str, object], data: Rows) -> list[Spec]:
    """A bar per interval; no layer if there are no intervals, since Vega would warn of it."""
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
        if found and against is _RTT and words.is_of_fast_open(cell):
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
    """Names of the measured curves: their treatments, if there are several."""
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


MOST_DOTS = 3000
"""With more loads than this only quartiles and extremes are drawn."""

_DISTRIBUTIONS_A_ROW = 2
_WIDTH, _ROW_HEIGHT = 360, 19


def plt_distribution(pairs: Sequence[CellPair], cells: Sequence[Cell]) -> Spec:
    """The distribution of PLTs: a panel per page, a row per RTT and side.

    Args:
        pairs: Cell pairs; at least one of them has a paired block.
        cells: Their entries in the summary, in the same order.
    """
    known = [(pair, cell) for pair, cell in zip(pairs, cells, strict=True) if cell["n"]]
    shown = [cell for _, cell in known]
    panels = words.panels(shown)
    places = [(known[at][0], side, panels[at]) for at, side in words.sides_once(shown, panels)]
    dots = [dot for place in places for dot in _dots(*place)]
    boxes = [_box(*place) for place in places]
    rows = len({box["row"] for box in boxes})
    return faceted(
        [*_marks(_colors([pair for pair, _ in known]), with_dots=len(dots) <= MOST_DOTS)],
        [*boxes, *(dots if len(dots) <= MOST_DOTS else [])],
        title("Every load relative to the median of the baseline", _distribution_notes(cells, len(dots))),
        columns=_DISTRIBUTIONS_A_ROW,
        size={"width": _WIDTH, "height": _ROW_HEIGHT * rows},
        axes="xy",
    )


def _colors(pairs: Sequence[CellPair]) -> dict[str, str]:
    """A colour for each side, by its name."""
    baselines, treatments = (list(dict.fromkeys(pair.phrases[side] for pair in pairs)) for side in SIDES)
    return treatment_colors(baselines, treatments)


def _marks(colors: Mapping[str, str], *, with_dots: bool) -> Iterator[Spec]:
    axis = {"ticks": False, "domain": False, "grid": False, "labelFontSize": 11, "labelPadding": 6}
    scale, legend = colours([*colors], [*colors.values()]), {"symbolOpacity": 1}
    title_of_x = "PLT against the median of the baseline (%)"
    base = {
        "x": field("low", title=title_of_x, axis={"grid": True, "tickCount": 7}),
        "y": named("row", title=None, axis=axis),
        "color": named("side", scale=scale, legend=legend),
    }
    box, half = "isValid(datum.quarter)", {"x": field("quarter"), "x2": {"field": "three_quarters"}}
    yield layer("rule", {"x": {"datum": 0}}, color=INK, strokeWidth=1)
    yield layer("rule", {**base, "x2": {"field": "high"}}, box, strokeWidth=1)
    yield layer("bar", {**base, **half}, box, height={"band": 0.55}, opacity=0.4)
    if with_dots:
        yield layer("circle", base, "isValid(datum.plt)", size=22, opacity=0.6)
    yield layer("tick", {**base, "x": field("median")}, box, thickness=2, height={"band": 0.8})


def _dots(pair: CellPair, side: Side, panel: str) -> Iterator[dict[str, object]]:
    for plt_ms, change in zip(pair.plt_ms(side), _changes(pair, side), strict=True):
        yield {**_where(pair, side, panel), "low": change, "plt": f"{plt_ms / 1000:.3f} s"}


def _box(pair: CellPair, side: Side, panel: str) -> dict[str, object]:
    names = ("low", "quarter", "median", "three_quarters", "high")
    ends = np.quantile(_changes(pair, side), (0, 0.25, 0.5, 0.75, 1))
    return {**_where(pair, side, panel), **dict(zip(names, map(float, ends), strict=True))}


def _changes(pair: CellPair, side: Side) -> list[float]:
    """PLT of each load of a side relative to the median of the baseline, percent."""
    middle = float(np.median(pair.plt_ms("baseline")))
    return [100 * (plt_ms / middle - 1) for plt_ms in pair.plt_ms(side)]


def _where(pair: CellPair, side: Side, panel: str) -> dict[str, object]:
    row = f"{words.rtt(pair.key.rtt_ms)} ms {pair.phrases[side]}"
    return {"panel": panel, "row": row, "side": pair.phrases[side]}


def _distribution_notes(cells: Sequence[Cell], loads: int) -> list[str]:
    shown = "A dot is a load, a box" if loads <= MOST_DOTS else "A box is"
    return [
        f"{plural(loads, 'load')}. {shown} the middle half, a thin line all, a tick the median.",
        *words.caption_lines(*cells),
    ]


_PATHS_A_ROW = 2
_SHORT = 11
"""Treatments with longer names need more space beside their bars, characters."""
_WIDTH, _BAR_HEIGHT = 400, 21


def critical_paths(explanations: Sequence[Explanation]) -> Spec:
    """What PLTs were spent on: the bars of all cells on one scale, a panel per page.

    Args:
        explanations: At least one.
    """
    data = list(_rows(explanations))
    shown = [
        name for name in COMPONENTS if any(row["component"] == words.COMPONENT_NAMES[name] for row in data)
    ]
    longest_s = max(load.path.plt_ms for found in explanations for load in found.loads.values()) / 1000
    names = list(
        dict.fromkeys(phrase for found in explanations for phrase in found.pair.phrases.values() if phrase)
    )
    end_s = longest_s * (1.22 + 0.015 * max(0, max(map(len, names)) - _SHORT))
    rtts = len({row["rtt"] for row in data})
    return faceted(
        [_bars(shown, end_s, names), _labels(end_s, names)],
        data,
        title("What the page load time was spent on", _path_notes(explanations)),
        columns=_PATHS_A_ROW,
        size={"width": _WIDTH, "height": _BAR_HEIGHT * len(names) * rtts},
        axes="xy",
    )


def _bars(shown: Sequence[Any], end_s: float, sides: Sequence[str]) -> Spec:
    scale = colours(
        [words.COMPONENT_NAMES[name] for name in shown], [COMPONENT_COLORS[name] for name in shown]
    )
    axis = {"tickCount": 6, "grid": True}
    x = field(
        "seconds", title="time on the critical path (s)", stack="zero", scale=_seconds(end_s), axis=axis
    )
    color = named("component", legend={"columns": 5}, scale=scale)
    place = _place(sides)
    return layer("bar", {"x": x, **place, "color": color, "order": field("order")}, height={"band": 0.86})


def _labels(end_s: float, sides: Sequence[str]) -> Spec:
    encoding = {
        "x": field("total", scale=_seconds(end_s)),
        **_place(sides),
        "text": {"field": "label", "type": "nominal"},
    }
    look: Spec = {"align": "left", "dx": 4, "color": INK, "fontSize": 10.5}
    return layer("text", encoding, "isValid(datum.label)", **look)


def _seconds(longest_s: float) -> Spec:
    return {"domain": [0, longest_s * 1.22], "nice": False}


def _place(sides: Sequence[str]) -> Spec:
    """The row of a bar: its RTT, and within it its treatment."""
    axis = {"ticks": False, "domain": False, "grid": False, "labelFontSize": 11, "labelPadding": 6}
    padding = {"paddingInner": 0.22, "paddingOuter": 0.1}
    offset = named("side", scale={"domain": list(sides)})
    return {"y": named("rtt", title="RTT", axis=axis, scale=padding), "yOffset": offset}


def _rows(explanations: Sequence[Explanation]) -> Iterator[dict[str, object]]:
    cells = [found.pair.setting for found in explanations]
    panels = words.panels(cells)
    for place, side in words.sides_once(cells, panels):
        found = explanations[place]
        if side in found.loads:
            rtt = f"{words.rtt(found.pair.key.rtt_ms)} ms"
            yield from _bar(
                {"panel": panels[place], "rtt": rtt, "side": found.pair.phrases[side]}, found, side
            )


def _bar(row: dict[str, object], found: Explanation, side: Side) -> Iterator[dict[str, object]]:
    path = found.loads[side].path
    spent = path.spent_ms()
    for order, name in enumerate(spent):
        yield {
            **row,
            "component": words.COMPONENT_NAMES[name],
            "order": COMPONENTS.index(name),
            "seconds": spent[name] / 1000,
            "total": path.plt_ms / 1000,
            "label": f"{words.seconds(path.plt_ms)} {found.pair.phrases[side]}" if order == 0 else None,
        }


def _path_notes(explanations: Sequence[Explanation]) -> list[str]:
    return [
        "Critical path from navigation start to load event, of the load nearest the median of its side.",
        *words.caption_lines(*(found.pair.setting for found in explanations)),
    ]
