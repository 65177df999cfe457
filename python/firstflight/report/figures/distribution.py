"""How the PLTs of a cell are distributed: every load beside the median without TFO of its cell.

On a scale of seconds the loads of a cell would fall on one point; relative to its median both can be seen,
what TFO does and what noise does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from firstflight.analysis import MODES, CellPair, words
from firstflight.plural import plural
from firstflight.report.figures.theme import (
    INK,
    MODE_COLORS,
    Spec,
    colours,
    faceted,
    field,
    layer,
    named,
    title,
)

MOST_DOTS = 3000
"""With more loads than this, only their quartiles and ends are drawn."""

_COLUMNS = 2
_WIDTH, _ROW_HEIGHT = 360, 19


def plt_distribution(pairs: Sequence[CellPair], cells: Sequence[Mapping[str, Any]]) -> Spec:
    """A panel per page, a row per RTT and mode.

    Args:
        pairs: Cell pairs; at least one of them has a paired block.
        cells: Their entries in the summary, in the same order.
    """
    varying = words.varying(cells)
    known = [
        (pair, words.variant(cell, varying)) for pair, cell in zip(pairs, cells, strict=True) if cell["n"]
    ]
    dots = [dot for pair, variant in known for dot in _dots(pair, variant)]
    boxes = [box for pair, variant in known for box in _boxes(pair, variant)]
    rows = len({box["row"] for box in boxes})
    return faceted(
        [*_marks(with_dots=len(dots) <= MOST_DOTS)],
        [*boxes, *(dots if len(dots) <= MOST_DOTS else [])],
        title("Every load relative to the median without TFO", _small_print(cells, len(dots))),
        columns=_COLUMNS,
        size={"width": _WIDTH, "height": _ROW_HEIGHT * rows},
        axes="xy",
    )


def _marks(*, with_dots: bool) -> Iterator[Spec]:
    names = [words.MODE_NAMES[mode] for mode in MODES]
    axis = {"ticks": False, "domain": False, "grid": False, "labelFontSize": 11, "labelPadding": 6}
    scale, legend = colours(names, [*MODE_COLORS.values()]), {"symbolOpacity": 1}
    title_of_x = "PLT against the median without TFO (%)"
    base = {
        "x": field("low", title=title_of_x, axis={"grid": True, "tickCount": 7}),
        "y": named("row", title=None, axis=axis),
        "color": named("mode", scale=scale, legend=legend),
    }
    box, half = "isValid(datum.quarter)", {"x": field("quarter"), "x2": {"field": "three_quarters"}}
    yield layer("rule", {"x": {"datum": 0}}, color=INK, strokeWidth=1)
    yield layer("rule", {**base, "x2": {"field": "high"}}, box, strokeWidth=1)
    yield layer("bar", {**base, **half}, box, height={"band": 0.55}, opacity=0.4)
    if with_dots:
        yield layer("circle", base, "isValid(datum.plt)", size=22, opacity=0.6)
    yield layer("tick", {**base, "x": field("median")}, box, thickness=2, height={"band": 0.8})


def _dots(pair: CellPair, variant: str) -> Iterator[dict[str, Any]]:
    for mode in MODES:
        for plt_ms, change in zip(pair.plt_ms(mode), _changes(pair, mode), strict=True):
            yield {**_where(pair, mode, variant), "low": change, "plt": f"{plt_ms / 1000:.3f} s"}


def _boxes(pair: CellPair, variant: str) -> Iterator[dict[str, Any]]:
    names = ("low", "quarter", "median", "three_quarters", "high")
    for mode in MODES:
        ends = np.quantile(_changes(pair, mode), (0, 0.25, 0.5, 0.75, 1))
        yield {**_where(pair, mode, variant), **dict(zip(names, map(float, ends), strict=True))}


def _changes(pair: CellPair, mode: str) -> list[float]:
    """PLT of each load of a mode against the median without TFO, percent."""
    middle = float(np.median(pair.plt_ms("tcp")))
    return [100 * (plt_ms / middle - 1) for plt_ms in pair.plt_ms(mode)]


def _where(pair: CellPair, mode: str, variant: str) -> dict[str, Any]:
    page = f"{pair.key.page} ({variant})" if variant else pair.key.page
    row = f"{words.rtt(pair.key.rtt_ms)} ms {words.MODE_NAMES[mode]}"
    return {"panel": page, "row": row, "mode": words.MODE_NAMES[mode]}


def _small_print(cells: Sequence[Mapping[str, Any]], loads: int) -> list[str]:
    shown = "A dot is a load, a box" if loads <= MOST_DOTS else "A box is"
    return [
        f"{plural(loads, 'load')}. {shown} the middle half, a thin line all, a tick the median.",
        *words.caption_lines(*cells),
    ]
