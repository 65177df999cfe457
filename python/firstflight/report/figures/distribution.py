"""How the PLTs of a cell are distributed: every load beside the median without TFO of its cell.

On a scale of seconds the loads of a cell would fall on one point; relative to its median both can be seen,
what TFO does and what noise does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from firstflight.analysis import MODES, CellPair, words
from firstflight.plural import plural
from firstflight.report.figures.theme import INK, MODE_COLORS, Spec, styled, title

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
    layers = alt.layer(*_marks(with_dots=len(dots) <= MOST_DOTS))
    rows = len({box["row"] for box in boxes})
    chart = layers.properties(width=_WIDTH, height=_ROW_HEIGHT * rows).facet(
        alt.Facet("panel:N", title=None, sort=None),
        columns=min(_COLUMNS, len({box["panel"] for box in boxes})),
        data=alt.NamedData("loads"),
        title=title("Every load relative to the median without TFO", _small_print(cells, len(dots))),
    )
    data = [*boxes, *(dots if len(dots) <= MOST_DOTS else [])]
    return styled(chart.resolve_axis(x="independent", y="independent"), {"loads": data})


def _marks(*, with_dots: bool) -> Iterator[alt.Chart]:
    names = [words.MODE_NAMES[mode] for mode in MODES]
    axis = alt.Axis(ticks=False, domain=False, grid=False, labelFontSize=11, labelPadding=6)
    y = alt.Y("row:N", title=None, sort=None, axis=axis)
    color = alt.Color("mode:N", sort=None, legend=alt.Legend(symbolOpacity=1)).scale(
        domain=names, range=list(MODE_COLORS.values())
    )
    x = alt.X("low:Q", title="PLT against the median without TFO (%)").axis(grid=True, tickCount=7)
    base = alt.Chart().encode(x=x, y=y, color=color)
    boxes = base.transform_filter("isValid(datum.quarter)")
    yield alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(x=alt.datum(0))
    yield boxes.mark_rule(strokeWidth=1).encode(x2="high:Q")
    yield boxes.mark_bar(height={"band": 0.55}, opacity=0.4).encode(x="quarter:Q", x2="three_quarters:Q")
    if with_dots:
        yield base.transform_filter("isValid(datum.plt)").mark_circle(size=22, opacity=0.6)
    yield boxes.mark_tick(thickness=2, height={"band": 0.8}).encode(x="median:Q")


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
