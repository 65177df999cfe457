"""What the PLTs were spent on: for each cell the critical path without and with TFO, as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firstflight.analysis import MODES, words
from firstflight.analysis.critical_path import COMPONENTS
from firstflight.analysis.explanation import Explanation
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
_WIDTH, _PAIR_HEIGHT = 400, 42


def critical_paths(explanations: Sequence[Explanation]) -> Spec:
    """The bars of all cells on one scale, a panel per page.

    Args:
        explanations: At least one.
    """
    data = list(_rows(explanations))
    shown = [
        name for name in COMPONENTS if any(row["component"] == words.COMPONENT_NAMES[name] for row in data)
    ]
    longest_s = max(row["total"] for row in data)
    rtts = len({row["rtt"] for row in data})
    return faceted(
        [_bars(shown, longest_s), _labels(longest_s)],
        data,
        title("What the page load time was spent on", _small_print(explanations)),
        columns=_COLUMNS,
        size={"width": _WIDTH, "height": _PAIR_HEIGHT * rtts},
        axes="xy",
    )


def _bars(shown: Sequence[Any], longest_s: float) -> Spec:
    scale = colours(
        [words.COMPONENT_NAMES[name] for name in shown], [COMPONENT_COLORS[name] for name in shown]
    )
    axis = {"tickCount": 6, "grid": True}
    x = field(
        "seconds", title="time on the critical path (s)", stack="zero", scale=_seconds(longest_s), axis=axis
    )
    color = named("component", legend={"columns": 5}, scale=scale)
    return layer("bar", {"x": x, **_place(), "color": color, "order": field("order")}, height={"band": 0.86})


def _labels(longest_s: float) -> Spec:
    encoding = {
        "x": field("total", scale=_seconds(longest_s)),
        **_place(),
        "text": {"field": "label", "type": "nominal"},
    }
    look: Spec = {"align": "left", "dx": 4, "color": INK, "fontSize": 10.5}
    return layer("text", encoding, "isValid(datum.label)", **look)


def _seconds(longest_s: float) -> Spec:
    return {"domain": [0, longest_s * 1.22], "nice": False}


def _place() -> Spec:
    """The row of a bar: its RTT, and within it the mode."""
    axis = {"ticks": False, "domain": False, "grid": False, "labelFontSize": 11, "labelPadding": 6}
    padding = {"paddingInner": 0.22, "paddingOuter": 0.1}
    modes = {"domain": [words.MODE_NAMES[mode] for mode in MODES]}
    return {"y": named("rtt", title="RTT", axis=axis, scale=padding), "yOffset": named("mode", scale=modes)}


def _rows(explanations: Sequence[Explanation]) -> Iterator[dict[str, Any]]:
    cells = [_cell(found) for found in explanations]
    varying = words.varying(cells)
    for found, cell in zip(explanations, cells, strict=True):
        variant = words.variant(cell, varying)
        for mode in (mode for mode in MODES if mode in found.loads):
            row = {
                "panel": f"{found.page.name} ({variant})" if variant else found.page.name,
                "rtt": f"{words.rtt(found.pair.key.rtt_ms)} ms",
                "mode": words.MODE_NAMES[mode],
            }
            yield from _bar(row, found, mode)


def _bar(row: dict[str, Any], found: Explanation, mode: str) -> Iterator[dict[str, Any]]:
    path = found.loads[mode].path
    spent = path.spent_ms()
    for order, name in enumerate(spent):
        yield {
            **row,
            "component": words.COMPONENT_NAMES[name],
            "order": COMPONENTS.index(name),
            "seconds": spent[name] / 1000,
            "total": path.plt_ms / 1000,
            "label": f"{words.seconds(path.plt_ms)} {words.MODE_NAMES[mode]}" if order == 0 else None,
        }


def _cell(found: Explanation) -> dict[str, Any]:
    return found.pair.treatment


def _small_print(explanations: Sequence[Explanation]) -> list[str]:
    return [
        "Critical path from navigation start to load event, of the load nearest the median of its mode.",
        *words.caption_lines(*map(_cell, explanations)),
    ]
