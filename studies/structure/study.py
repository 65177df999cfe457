"""Which pages Fast Open helps: made-up pages that differ in one property each, simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

import firstflight as ff
from studies.structure.pages import BASE, FACTORS, NAMES, made, page_name, structures
from studies.tables import Figure, Frames, Study, by_treatment, gain, measured, panels, zero_line

FOLDER = Path(__file__).parent
RTTS = (20, 100, 200)
COLUMNS = {
    "pages.csv": {
        "what varies": "{varies}",
        "": "{value:,}{mark}",
        "connections": "{connections:.0f}",
        **{f"{rtt} ms": f"{{gain_{rtt}:+.1%}}, {{rtts_{rtt}:.1f}} RTT" for rtt in RTTS},
    },
    "measured.csv": {
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "TCP, s": "{tcp_s:.2f}",
        "improvement, real kernel": "{improvement:+.1%} ({low:+.1%} to {high:+.1%})",
        "simulated": "{simulated:+.1%}",
    },
}
_COLORS = ["#79bfe8", "#0072b2", "#1f2933"]


def measure(folders: Sequence[str]) -> Frames:
    """The tables of all pages, and of those on the real kernel; `folders` are results of the latter."""
    pages = [made(name, structure) for name, structure in structures().items()]
    loads = ff.simulate(FOLDER / "plan.toml", pages=pages, repeats=1, keep="loads").loads
    cells = by_treatment(loads, pl.col("plt_ms").median(), pl.col("connections").median()).with_columns(
        gain=gain("plt_ms_tcp", "plt_ms_tfo"),
        rtts=(pl.col("plt_ms_tcp") - pl.col("plt_ms_tfo")) / pl.col("rtt_ms"),
    )
    return {"pages.csv": table(cells), "measured.csv": measured(FOLDER / "measured.csv", folders, cells)}


def table(cells: pl.DataFrame) -> pl.DataFrame:
    """A row per page: its connections, and at each RTT the improvement and the round trips saved."""
    rows = []
    for factor, values in FACTORS.items():
        for value in values:
            of_page = {
                row["rtt_ms"]: row
                for row in cells.filter(page=page_name(factor, value)).iter_rows(named=True)
            }
            row = {
                "varies": NAMES[factor],
                "value": value,
                "connections": of_page[RTTS[-1]]["connections_tfo"],
            }
            row["mark"] = " (the page itself)" if getattr(BASE, factor) == value else ""
            row |= {f"gain_{rtt}": of_page[rtt]["gain"] for rtt in RTTS}
            rows.append(row | {f"rtts_{rtt}": of_page[rtt]["rtts"] for rtt in RTTS})
    return pl.DataFrame(rows)


def draw(tables: Frames) -> Figure:
    """Improvement against the value, a panel per property, a colour per RTT."""
    rows = [
        {"panel": row["varies"], "x": row["value"], "rtt": f"{rtt} ms", "y": 100 * row[f"gain_{rtt}"]}
        for row in tables["pages.csv"].iter_rows(named=True)
        for rtt in RTTS
    ]
    axis = alt.Axis(grid=False, format="~s", labelOverlap=True, labelSeparation=8)
    x = alt.X("x:Q", title=None, axis=axis).scale(type="log", nice=False)
    color = alt.Color("rtt:N", sort=None).scale(domain=[f"{rtt} ms" for rtt in RTTS], range=_COLORS)
    base = alt.Chart().encode(x=x, y=alt.Y("y:Q", title="improvement of the PLT (%)"), color=color)
    layers = alt.layer(
        zero_line(), base.mark_line(), base.mark_point(filled=True, size=40, opacity=1)
    ).properties(width=250, height=190)
    page = (
        f"{BASE.objects} objects of {BASE.size:,} bytes on {BASE.hosts} hosts, a document of {BASE.padding:,}"
    )
    return panels(
        layers,
        rows,
        "panel",
        "Which pages Fast Open helps",
        f"One property of a page varied: else {page}. By RTT; simulated. Above 0, TFO is faster.",
        columns=3,
        order=list(NAMES.values()),
        scales="x",
    )


STUDY = Study(FOLDER, measure, COLUMNS, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
