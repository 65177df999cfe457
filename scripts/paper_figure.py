"""The paper's improvements beside ours under each explanation: a panel per page, a colour per variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
from paper_tables import PAPER, Table

from firstflight.report.figures.theme import INK, Spec, styled, title

COLORS = ["#0072b2", "#d55e00", "#e69f00", "#cc79a7", "#009e73", "#56b4e9", "#8a94a0"]
"""After Okabe and Ito, as the other figures."""
_PAPER = "the paper, 2011"


def figure(tables: Mapping[str, tuple[Table | None, Table]]) -> Spec:
    """Improvement against RTT, measured where it was, else simulated.

    Args:
        tables: Measured and simulated cells, by variant.
    """
    shown = {_PAPER: PAPER, **{name: found or guessed for name, (found, guessed) in tables.items()}}
    data = [_point(name, key, table) for name, table in shown.items() for key in PAPER if key in table]
    rtts_ms = sorted({rtt_ms for _, rtt_ms in PAPER})
    x = alt.X("x:Q", title="RTT (ms)", axis=alt.Axis(values=rtts_ms, grid=False))
    y = alt.Y("y:Q", title="improvement of the PLT (%)")
    color = alt.Color("variant:N", sort=None).scale(domain=list(shown), range=[INK, *COLORS[: len(tables)]])
    width = alt.condition(f"datum.variant == '{_PAPER}'", alt.value(3.5), alt.value(1.5))
    base = alt.Chart().encode(x=x, y=y, color=color)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.mark_line().encode(strokeWidth=width),
        base.mark_point(filled=True, size=40, opacity=1),
    ).properties(width=210, height=230)
    heading = title(
        "Which factor brings our table nearer to the paper's",
        [
            "4 Mbit/s down, 256 kbit/s up; the loader on the real kernel; what was not measured: simulated.",
            "Above 0, TFO is faster.",
        ],
    )
    facet = alt.Facet("panel:N", title=None, sort=None)
    chart = layers.facet(facet, columns=4, data=alt.NamedData("cells"), title=heading)
    return styled(chart.resolve_axis(x="independent").to_dict(validate=False), {"cells": data})


def _point(name: str, key: tuple[str, float], table: Table) -> dict[str, Any]:
    return {"variant": name, "panel": key[0], "x": key[1], "y": 100 * table[key].improvement}
