"""Two results against each other: a point per cell; points on the diagonal agree."""

from __future__ import annotations

from textwrap import wrap

from firstflight.analysis import words
from firstflight.analysis.compare import Comparison, Pair, SideCell
from firstflight.deferred import altair as alt
from firstflight.report.figures.theme import CATEGORY_COLORS, SOFT, Spec, styled, title

_SIZE = 420
_WRAPPED = 90
"""Characters per line below the title."""
_ROOM = 3.0
"""Space around the points, percentage points."""
_MANY = 30
"""With more points than this none is labelled."""


def agreement(found: Comparison) -> Spec:
    """Improvement of one side against the other, with the intervals that exist.

    Args:
        found: The comparison; at least one pair.
    """
    sides = [{**_side("a", pair.a), **_side("b", pair.b)} for pair in found.pairs]
    rows = [{**_names(pair), **side} for pair, side in zip(found.pairs, sides, strict=True)]
    values = [value for side in sides for value in side.values()]
    span = [min([0.0, *values]) - _ROOM, max(values) + _ROOM]
    scale = alt.Scale(domain=span, nice=False)
    x = alt.X("a:Q", title=f"improvement, {found.a.name} (%)", scale=scale)
    y = alt.Y("b:Q", title=f"improvement, {found.b.name} (%)", scale=scale)
    base = alt.Chart().encode(x=x, y=y, color=_by_page([str(row["page"]) for row in rows]))
    low, high = (alt.datum(end) for end in span)
    bars = base.mark_rule(strokeOpacity=0.6)
    layers = [
        alt.Chart().mark_rule(color=SOFT, strokeDash=[4, 3]).encode(x=low, y=low, x2=high, y2=high),
        base.mark_line(strokeWidth=1, strokeOpacity=0.35).encode(order="rtt_ms:Q", detail="page:N"),
        bars.encode(x="a_low:Q", x2="a_high:Q"),
        bars.encode(y="b_low:Q", y2="b_high:Q"),
        base.mark_point(filled=True, size=60, opacity=1),
    ]
    if len(rows) <= _MANY:
        layers.append(base.mark_text(align="left", dx=7, dy=-6, fontSize=10).encode(text="label:N"))
    chart = alt.layer(*layers).properties(width=_SIZE, height=_SIZE)
    rank = found.rank_correlation
    subtitle = [
        f"A point per page and RTT, {len(rows)} of them; on the dashed line both agree. Bars: 95 % intervals",
        f"Rank correlation {words.DASH if rank is None else f'{rank:+.2f}'}; "
        f"same sign in {found.same_sign} of {len(rows)}.",
        *(line for side in (found.a, found.b) for line in wrap(f"{side.name}: {side.caption}", _WRAPPED)),
    ]
    heading = title("What TFO saves: two results compared", subtitle)
    return styled(
        alt.hconcat(chart, title=heading, data=alt.NamedData("cells")).to_dict(validate=False),
        {"cells": rows},
    )


def _names(pair: Pair) -> dict[str, object]:
    rtt_ms = pair.key["rtt_ms"]
    return {"page": pair.key["page"], "rtt_ms": rtt_ms, "label": f"{words.rtt(rtt_ms)} ms"}


def _by_page(names: list[str]) -> alt.Color | alt.ColorValue:
    """A colour per page, if there are enough colours."""
    pages = list(dict.fromkeys(names))
    if len(pages) > len(CATEGORY_COLORS):
        return alt.ColorValue(CATEGORY_COLORS[0])
    return alt.Color("page:N", sort=None).scale(domain=pages, range=list(CATEGORY_COLORS[: len(pages)]))


def _side(name: str, cell: SideCell) -> dict[str, float]:
    low, high = (cell.improvement if end is None else end for end in (cell.low, cell.high))
    return {name: 100 * cell.improvement, f"{name}_low": 100 * low, f"{name}_high": 100 * high}
