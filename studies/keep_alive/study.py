"""How much of the course's gain is HTTP/1.0: Fast Open with and without keep-alive, simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

import firstflight as ff
from studies.tables import COLORS, Figure, Frames, Study, by_treatment, gain, panels, zero_line

FOLDER = Path(__file__).parent
LINKS: dict[str, dict[str, str]] = {
    "star.csv": {},
    "access.csv": {"topology": "access", "up": "256kbit"},
}
"""Tables by link: the course's star of symmetric links, and the paper's access link."""

COLUMNS = {
    "page": "{page}",
    "RTT, ms": "{rtt_ms:g}",
    "connections": "{connections_closing:.0f} → {connections_keep_alive:.0f}",
    "TFO, closing": "{close_s:.2f} s → {close_tfo_s:.2f} s, {closing:+.1%}, {closing_rtts:.1f} RTT",
    "TFO, keep-alive": "{keep_s:.2f} s → {keep_tfo_s:.2f} s, {keep_alive:+.1%}, {keep_alive_rtts:.1f} RTT",
    "left of the saving": "{left:.0%}",
    "keep-alive alone": "{alone:+.1%}",
    "both": "{both:+.1%}",
}
MEASURED = {
    "page": "{page}",
    "RTT, ms": "{rtt_ms:g}",
    "closing, real kernel": "{closing:+.1%} ({blocks} blocks)",
    "closing, simulated": "{closing_simulated:+.1%}",
    "keep-alive, real kernel": "{keep_alive:+.1%} ({blocks} blocks)",
    "keep-alive, simulated": "{keep_alive_simulated:+.1%}",
}
SERVERS = {"a connection per request": "closing", "keep-alive": "keep_alive"}


def measure(folders: Sequence[str]) -> Frames:
    """What Fast Open saves with servers that close and with keep-alive, and what keep-alive alone saves.

    `folders`: new results on the star with the real kernel; without them the stored ones are kept.
    """
    simulated = {
        name: cells(ff.simulate(FOLDER / "plan.toml", keep="loads", **keys).loads)
        for name, keys in LINKS.items()
    }
    return {**simulated, "measured.csv": measured(folders, simulated["star.csv"])}


def measured(folders: Sequence[str], simulated: pl.DataFrame) -> pl.DataFrame:
    """The improvement of the medians on the real kernel, and the simulator's."""
    place, shown = ("page", "rtt_ms"), ("closing", "keep_alive")
    kernel = pl.read_csv(FOLDER / "measured.csv").select(*place, *shown, "blocks")
    if folders:
        loads = pl.concat(ff.open_results(folder).loads for folder in folders).filter(proved=True)
        blocks = loads.group_by(place).agg(blocks=pl.col("block").n_unique())
        kernel = cells(loads).select(*place, *shown).join(blocks, on=place)
    predicted = simulated.select(*place, *(pl.col(name).alias(f"{name}_simulated") for name in shown))
    return kernel.join(predicted, on=place, how="left", maintain_order="left")


def cells(loads: pl.DataFrame) -> pl.DataFrame:
    """A row per page and RTT: medians of each treatment, and what they differ by."""
    wide = by_treatment(loads, pl.col("plt_ms").median(), pl.col("connections").median())
    close, close_tfo, keep, keep_tfo = (
        f"plt_ms_{name}" for name in ("close", "close-tfo", "keep", "keep-tfo")
    )
    closing_ms, keeping_ms = pl.col(close) - pl.col(close_tfo), pl.col(keep) - pl.col(keep_tfo)
    return wide.select(
        "page",
        "rtt_ms",
        connections_closing="connections_close-tfo",
        connections_keep_alive="connections_keep-tfo",
        close_s=pl.col(close) / 1000,
        close_tfo_s=pl.col(close_tfo) / 1000,
        closing=gain(close, close_tfo),
        closing_rtts=closing_ms / pl.col("rtt_ms"),
        keep_s=pl.col(keep) / 1000,
        keep_tfo_s=pl.col(keep_tfo) / 1000,
        keep_alive=gain(keep, keep_tfo),
        keep_alive_rtts=keeping_ms / pl.col("rtt_ms"),
        left=keeping_ms / closing_ms,
        alone=gain(close, keep),
        both=gain(close, keep_tfo),
    )


def draw(tables: Frames) -> Figure:
    """The improvement against the RTT: a panel per page and link, a colour per server."""
    rows = [
        {
            "link": link.removesuffix(".csv"),
            "page": row["page"],
            "rtt": row["rtt_ms"],
            "server": server,
            "gain": 100 * row[name],
        }
        for link in LINKS
        for row in tables[link].iter_rows(named=True)
        for server, name in SERVERS.items()
    ]
    x = alt.X("rtt:Q", title="RTT (ms)", axis=alt.Axis(values=[20, 100, 200], grid=False))
    color = alt.Color("server:N", sort=None).scale(domain=list(SERVERS), range=[COLORS[1], COLORS[0]])
    base = alt.Chart().encode(x=x, y=alt.Y("gain:Q", title="improvement of the PLT (%)"), color=color)
    layers = alt.layer(
        zero_line(), base.mark_line(), base.mark_point(filled=True, size=50, opacity=1)
    ).properties(width=180, height=180)
    return panels(
        layers,
        rows,
        "page",
        "How much of Fast Open's gain is servers that close",
        "Simulated, warm cookies, in the clear. Above 0, TFO is faster.",
        down="link",
    )


STUDY = Study(FOLDER, measure, {**dict.fromkeys(LINKS, COLUMNS), "measured.csv": MEASURED}, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
