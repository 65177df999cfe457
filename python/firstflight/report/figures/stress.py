"""A server under load: CPU time and latency over the rate of clients, and the effect of floods on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from firstflight.deferred import altair as alt
from firstflight.model.treatment import FAST_OPEN, PLAIN
from firstflight.report.figures.theme import SIDE_COLORS, Rows, Spec, styled, title
from firstflight.stress.rows import by_cell, middle_latency, mostly

_WIDTH, _HEIGHT = 330, 240
_PERCENTILES = {"p50_ms": "median", "p99_ms": "99th percentile"}
_FLOODS = {"none": "no flood", "plain": "no cookie", "forged": "forged cookies", "valid": "valid cookies"}


def cost_by_rate(rows: Rows) -> Spec:
    """CPU time per request against the rate, a panel per server.

    Args:
        rows: Rows without a flood.
    """
    points = [
        {**_cell(cell), **_spread([row["cpu_us"] for row in cell])}
        for cell in by_cell(rows)
        if mostly(cell, "keeps_up")
    ]
    subtitle = [
        f"{_setting(rows)} Up to the highest rate that the server kept up with.",
        "Its threads and system calls, and its kernel's receiving; dots: medians, bars: all repeats.",
    ]
    layers = _spread_layers("processor time per request (us)")
    return _panels(layers, points, title("What a request costs the server", subtitle))


def latency_by_rate(rows: Rows) -> Spec:
    """Percentiles of the latency against the rate, a panel per server.

    Args:
        rows: Rows without a flood.
    """
    points = [
        {**_cell(cell), "percentile": label, "middle": middle_latency(latencies)}
        for cell in by_cell(rows)
        for name, label in _PERCENTILES.items()
        if middle_latency(latencies := [row[name] for row in cell])
    ]
    subtitle = [
        f"{_setting(rows)} From the planned arrival to the last byte.",
        "Full: median. Dashed: 99th percentile; where it ends, such requests were never answered.",
    ]
    base = alt.Chart().encode(
        x=_rate(),
        color=_mode(),
        strokeDash=alt.StrokeDash("percentile:N", sort=None, legend=None),
    )
    y = _latency("middle")
    layers = alt.layer(base.mark_line(), base.mark_point(filled=True, size=26, opacity=1)).encode(y=y)
    return _panels(layers, points, title("How long a client waits", subtitle))


def flood_by_kind(rows: Rows) -> Spec:
    """Share of clients served and the 99th percentile of their latency, by flood and setting."""
    points = [
        {
            **_cell(cell),
            "flood": _FLOODS[cell[0]["flood"]],
            "panel": _panel(cell[0]),
            "served": 100 * median(row["success"] for row in cell),
            "median": middle_latency([row["p50_ms"] for row in cell]),
            "p99": middle_latency([row["p99_ms"] for row in cell]),
        }
        for cell in by_cell(rows)
    ]
    flooded = next(row for row in rows if row["flood"] != "none")
    rates = ", ".join(f"{rate:g}" for rate in sorted({row["rate"] for row in rows}))
    subtitle = [
        f"{_setting(rows)} {rates} clients and {flooded['flood_rate']:g} SYNs of the flood per second.",
        "Left: clients served. Right: their latency, median (full) and 99th percentile (hollow).",
    ]
    x = alt.X("flood:N", title=None, sort=list(_FLOODS.values()), axis=alt.Axis(labelAngle=0))
    base = alt.Chart().encode(x=x, xOffset=alt.XOffset("mode:N", sort=None), color=_mode())
    served = base.mark_bar().encode(
        y=alt.Y("served:Q", title="clients served (%)", scale=alt.Scale(domain=[0, 100]))
    )
    points_of = (("p99", False, 110), ("median", True, 45))
    waits = alt.layer(
        *(
            base.mark_point(filled=full, size=size, opacity=1).encode(y=_latency(name))
            for name, full, size in points_of
        )
    )
    facet = alt.Facet("panel:N", title=None, sort=None)
    data = alt.NamedData("points")
    columns = [
        chart.properties(width=_WIDTH, height=150).facet(facet, columns=1, data=data)
        for chart in (served, waits)
    ]
    chart = alt.hconcat(*columns).properties(title=title("Clients served during floods of SYNs", subtitle))
    return styled(chart.to_dict(validate=False), {"points": points})


def _panels(layers: alt.LayerChart | alt.FacetChart, points: list[dict[str, object]], heading: Spec) -> Spec:
    facet = alt.Facet("server:N", title=None, sort=None)
    chart = layers.properties(width=_WIDTH, height=_HEIGHT).facet(
        facet, columns=2, data=alt.NamedData("points"), title=heading
    )
    return styled(chart.to_dict(validate=False), {"points": points})


def _spread_layers(name: str) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart().encode(x=_rate(), color=_mode())
    y = alt.Y("middle:Q", title=name)
    return alt.layer(
        base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=alt.Y("low:Q", title=name), y2="high:Q"),
        base.mark_line().encode(y=y),
        base.mark_point(filled=True, size=30, opacity=1).encode(y=y),
    )


def _rate() -> alt.X:
    return alt.X("rate:Q", title="clients per second", axis=alt.Axis(grid=False))


def _latency(field: str) -> alt.Y:
    axis = alt.Axis(values=[step * ten for ten in (1, 10, 100, 1_000) for step in (1, 2, 5)])
    return alt.Y(f"{field}:Q", title="latency (ms)", scale=alt.Scale(type="log"), axis=axis)


def _mode() -> alt.Color:
    return alt.Color("mode:N", sort=None).scale(domain=[PLAIN, FAST_OPEN], range=list(SIDE_COLORS.values()))


def _cell(cell: Rows) -> dict[str, object]:
    return {name: cell[0][name] for name in ("server", "rate", "mode", "flood")}


def _panel(row: Mapping[str, Any]) -> str:
    waiting = f"qlen {row['qlen']}, backlog {row['backlog']}"
    return f"{row['server']}: {waiting}, SYN cookies {row['syn_cookies']}"


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"low": min(values), "middle": median(values), "high": max(values)}


def _setting(rows: Rows) -> str:
    size, rtt = rows[0]["size_bytes"], rows[0]["rtt_ms"]
    return f"{size:,} bytes over HTTP/1.0, RTT {rtt:g} ms."


FIGURES: Mapping[str, Callable[[Rows], Spec]] = {
    "cost-by-rate": cost_by_rate,
    "latency-by-rate": latency_by_rate,
    "floods": flood_by_kind,
}
"""Functions that make each figure, by the name of its files."""
