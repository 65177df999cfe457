"""The figure of a sweep: the distribution of the improvement over pages, by RTT and rate, and by origins."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.analysis import words
from firstflight.analysis.records import Distribution, OriginsGroup, Sweep, SweepPath, known
from firstflight.deferred import altair as alt
from firstflight.report.figures.theme import INK, SIDE_COLORS, Rows, Spec, styled, title
from firstflight.text import plural

_HEIGHT, _WIDTH, _STEP = 230, 170, 18
_COLORS = ("#79bfe8", "#0072b2", "#1f2933")
"""Colours of the shortest, the middle and the longest RTT."""


def improvement_of_sweep(sweep: Sweep) -> Spec:
    """Quantiles of the improvement against RTT, a panel per rate, and against the number of origins of pages.

    Args:
        sweep: From `firstflight.analysis.sweep.summarize_sweep`, with at least one path.
    """
    pages = max(path["n"] for path in sweep["paths"])
    clock = "simulated" if sweep["engines"] == ["simulate"] else "emulated"
    treated = words.treated(sweep["paths"])
    several = len({path["treatment"] for path in sweep["paths"]}) > 1
    fans, groups = _fans(sweep["paths"], several=several), _groups(sweep["origins"])
    subtitle = [
        f"{plural(pages, 'page')} on {plural(len(sweep['paths']), 'path')}, {clock}. "
        f"Above 0: {words.faster(sweep['paths'])}.",
        "Bands: median, half and nine tenths of the pages."
        + (" Right: median and half of the cells by origins." if groups else ""),
        *words.caption_lines(*sweep["paths"]),
    ]
    heading = title(f"How much sooner pages load {treated}", subtitle)
    left = _by_rtt(fans)
    chart = alt.hconcat(left, _by_origins(groups)) if groups else alt.hconcat(left)
    chart = chart.properties(title=heading, spacing=36).resolve_scale(y="shared", color="independent")
    return styled(chart.to_dict(validate=False), {"fans": fans, "groups": groups})


def _by_rtt(fans: Rows) -> alt.FacetChart:
    x = alt.X("rtt:Q", title="RTT (ms)", axis=alt.Axis(grid=False))
    color = SIDE_COLORS["treatment"]
    base = alt.Chart().encode(x=x)
    layers = alt.layer(
        base.mark_area(opacity=0.14, color=color).encode(y=_improvement("p05"), y2="p95:Q"),
        base.mark_area(opacity=0.28, color=color).encode(y=_improvement("p25"), y2="p75:Q"),
        base.mark_line(color=color, point=alt.OverlayMarkDef(color=color, size=28)).encode(
            y=_improvement("p50")
        ),
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
    )
    facet = alt.Facet("panel:N", title=None, sort=None)
    return layers.properties(width=_WIDTH, height=_HEIGHT).facet(facet, columns=4, data=alt.NamedData("fans"))


def _by_origins(groups: Rows) -> alt.LayerChart | alt.FacetChart:
    rtts = list(dict.fromkeys(row["rtt"] for row in groups))
    color = alt.Color("rtt:N", sort=None).scale(domain=rtts, range=list(_COLORS))
    x = alt.X("group:N", title="origins of the page", sort=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart(alt.NamedData("groups")).encode(
        x=x, xOffset=alt.XOffset("rtt:N", sort=None), color=color
    )
    layers = alt.layer(
        base.mark_rule(strokeWidth=6, opacity=0.35).encode(y=_improvement("p25"), y2="p75:Q"),
        base.mark_point(filled=True, size=50, opacity=1).encode(y=_improvement("p50")),
    )
    return layers.properties(width={"step": _STEP}, height=_HEIGHT)


def _improvement(quantile: str) -> alt.Y:
    return alt.Y(f"{quantile}:Q", title="improvement of the PLT (%)", axis=alt.Axis(grid=True))


def _fans(paths: Sequence[SweepPath], *, several: bool) -> list[dict[str, object]]:
    return [
        {"panel": _panel(path, several=several), "rtt": path["rtt_ms"], **_percents(path)}
        for path in paths
        if path["improvement"]["p50"] is not None
    ]


def _panel(path: SweepPath, *, several: bool) -> str:
    loss = f", loss {100 * path['loss']:g} %" if path["loss"] else ""
    star = ", star" if path["topology"] == "star" else ""
    treatment = f", {path['treatment']}" if several else ""
    return f"{words.rates(path)} Mbit/s{loss}{star}{treatment}"


def _groups(origins: Sequence[OriginsGroup]) -> list[dict[str, object]]:
    """The groups of three RTTs: the shortest, the middle one, the longest."""
    rtts = sorted({group["rtt_ms"] for group in origins})
    shown = dict.fromkeys([rtts[0], rtts[len(rtts) // 2], rtts[-1]]) if rtts else {}
    return [
        {
            "group": f"{group['from']}\N{EN DASH}{group['to']}",
            "rtt": f"{words.rtt(group['rtt_ms'])} ms",
            **_percents(group),
        }
        for group in origins
        if group["rtt_ms"] in shown
    ]


def _percents(found: Distribution | SweepPath | OriginsGroup) -> dict[str, float]:
    return {name: 100 * known(value) for name, value in found["improvement"].items()}
