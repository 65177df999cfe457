"""What the PLTs were spent on: for each cell the critical path of baseline and treatment, as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firstflight.analysis import words
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.critical_path.walk import COMPONENTS
from firstflight.analysis.records import Side
from firstflight.report.figures.theme import (
    COMPONENT_COLORS,
    INK,
    Spec,
    colours,
    faceted,
    field,
    layer,
    named,
    title,
)

_COLUMNS = 2
_SHORT = 11
"""Longer names of treatments need more room behind their bars, in characters."""
_WIDTH, _BAR_HEIGHT = 400, 21


def critical_paths(explanations: Sequence[Explanation]) -> Spec:
    """The bars of all cells on one scale, a panel per page.

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
        title("What the page load time was spent on", _small_print(explanations)),
        columns=_COLUMNS,
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
    """The row of a bar: its RTT, and within it the treatment."""
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


def _small_print(explanations: Sequence[Explanation]) -> list[str]:
    return [
        "Critical path from navigation start to load event, of the load nearest the median of its side.",
        *words.caption_lines(*(found.pair.setting for found in explanations)),
    ]
