"""What the PLTs were spent on: for each cell the critical path without and with TFO, as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from firstflight.analysis import MODES, words
from firstflight.analysis.critical_path import COMPONENTS
from firstflight.analysis.explanation import Explanation
from firstflight.report.figures.theme import COMPONENT_COLORS, INK, Spec, styled, title

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
    layers = alt.layer(_bars(shown, longest_s), _labels(longest_s))
    panels = len({row["panel"] for row in data})
    rtts = len({row["rtt"] for row in data})
    chart = layers.properties(width=_WIDTH, height=_PAIR_HEIGHT * rtts).facet(
        alt.Facet("panel:N", title=None, sort=None),
        columns=min(_COLUMNS, panels),
        data=alt.NamedData("cells"),
        title=title("What the page load time was spent on", _small_print(explanations)),
    )
    return styled(chart.resolve_axis(x="independent", y="independent"), {"cells": data})


def _bars(shown: Sequence[Any], longest_s: float) -> alt.Chart:
    names = [words.COMPONENT_NAMES[name] for name in shown]
    colors = [COMPONENT_COLORS[name] for name in shown]
    x = alt.X("seconds:Q", title="time on the critical path (s)", stack="zero")
    x = x.scale(domain=[0, longest_s * 1.22], nice=False).axis(tickCount=6, grid=True)
    color = alt.Color("component:N", sort=None, legend=alt.Legend(columns=5))
    color = color.scale(domain=names, range=colors)
    bars: alt.Chart = alt.Chart().mark_bar(height={"band": 0.86})
    return bars.encode(x=x, y=_rtt(), yOffset=_mode(), color=color, order=alt.Order("order:Q"))


def _labels(longest_s: float) -> alt.Chart:
    x = alt.X("total:Q").scale(domain=[0, longest_s * 1.22], nice=False)
    labels: alt.Chart = alt.Chart().transform_filter("isValid(datum.label)")
    labels = labels.mark_text(align="left", dx=4, color=INK, fontSize=10.5)
    return labels.encode(x=x, y=_rtt(), yOffset=_mode(), text="label:N")


def _rtt() -> alt.Y:
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelFontSize=11, labelPadding=6)
    return alt.Y("rtt:N", title="RTT", sort=None, axis=axis).scale(paddingInner=0.22, paddingOuter=0.1)


def _mode() -> alt.YOffset:
    return alt.YOffset("mode:N", sort=None).scale(domain=[words.MODE_NAMES[mode] for mode in MODES])


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
