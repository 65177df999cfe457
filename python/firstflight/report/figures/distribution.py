"""How the PLTs of a cell are distributed: every load beside the median of the baseline of its cell.

On a scale of seconds the loads of a cell would fall on one point; relative to its median both can be seen,
what the treatment does and what noise does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.records import Cell, Side
from firstflight.plural import plural
from firstflight.report.figures.theme import (
    INK,
    Spec,
    colours,
    faceted,
    field,
    layer,
    named,
    title,
    treatment_colors,
)

MOST_DOTS = 3000
"""With more loads than this, only their quartiles and ends are drawn."""

_COLUMNS = 2
_WIDTH, _ROW_HEIGHT = 360, 19


def plt_distribution(pairs: Sequence[CellPair], cells: Sequence[Cell]) -> Spec:
    """A panel per page, a row per RTT and side.

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
        title("Every load relative to the median of the baseline", _small_print(cells, len(dots))),
        columns=_COLUMNS,
        size={"width": _WIDTH, "height": _ROW_HEIGHT * rows},
        axes="xy",
    )


def _colors(pairs: Sequence[CellPair]) -> dict[str, str]:
    """A colour for each side, by how it is named."""
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
    """PLT of each load of a side against the median of the baseline, percent."""
    middle = float(np.median(pair.plt_ms("baseline")))
    return [100 * (plt_ms / middle - 1) for plt_ms in pair.plt_ms(side)]


def _where(pair: CellPair, side: Side, panel: str) -> dict[str, object]:
    row = f"{words.rtt(pair.key.rtt_ms)} ms {pair.phrases[side]}"
    return {"panel": panel, "row": row, "side": pair.phrases[side]}


def _small_print(cells: Sequence[Cell], loads: int) -> list[str]:
    shown = "A dot is a load, a box" if loads <= MOST_DOTS else "A box is"
    return [
        f"{plural(loads, 'load')}. {shown} the middle half, a thin line all, a tick the median.",
        *words.caption_lines(*cells),
    ]
