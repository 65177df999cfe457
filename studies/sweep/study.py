"""How Fast Open's improvement is distributed over recorded pages and paths, simulated.

    python -m studies.sweep.study FOLDER

FOLDER holds recordings in `har/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

import firstflight as ff
from studies.recordings import pages
from studies.tables import COLORS, Figure, Frames, Study, by_treatment, gain, panels, zero_line

FOLDER = Path(__file__).parent
QUANTILES = {"p05": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}
COLUMNS = {
    "over": "{over}",
    "value": "{value:g}",
    "cells": "{cells}",
    "median improvement": "{median:+.1%}",
    "half of the cells": "{p25:+.1%} to {p75:+.1%}",
    "nine tenths": "{p05:+.1%} to {p95:+.1%}",
    "TFO slower": "{slower:.0%}",
    "round trips saved, median": "{rtts:.1f}",
}


def measure(arguments: Sequence[str]) -> Frames:
    """Quantiles of the improvement over all cells, by RTT and by rate."""
    [folder] = arguments
    recorded = pages(Path(folder), ["har/**/*.har"])
    loads = ff.simulate(FOLDER / "plan.toml", pages=recorded).loads
    cells = by_treatment(loads, by=("page", "rtt_ms", "down_mbps")).with_columns(
        gain=gain("plt_ms_tcp", "plt_ms_tfo"),
        rtts=(pl.col("plt_ms_tcp") - pl.col("plt_ms_tfo")) / pl.col("rtt_ms"),
    )
    every = quantiles(cells.with_columns(everything=pl.lit(0.0)), "everything", "all cells")
    by_rtt = quantiles(cells, "rtt_ms", "RTT, ms")
    by_rate = [
        quantiles(cells.filter(down_mbps=rate), "rtt_ms", f"RTT, ms, at {rate:g} Mbit/s")
        for rate in cells["down_mbps"].unique().sort()
    ]
    return {
        "improvements.csv": pl.concat([every, quantiles(cells, "down_mbps", "Mbit/s down"), by_rtt]),
        "by_rate.csv": pl.concat(by_rate),
    }


def quantiles(cells: pl.DataFrame, key: str, over: str) -> pl.DataFrame:
    """A row per value of a column."""
    shares = {name: pl.col("gain").quantile(share, "linear") for name, share in QUANTILES.items()}
    rows = cells.group_by(pl.col(key).alias("value")).agg(
        cells=pl.len(), slower=(pl.col("gain") < 0).mean(), rtts=pl.col("rtts").median(), **shares
    )
    return rows.sort("value").select(pl.lit(over).alias("over"), pl.all())


def draw(tables: Frames) -> Figure:
    """Quantiles against the RTT, a panel per rate."""
    rows = tables["by_rate.csv"].with_columns(pl.col(*QUANTILES) * 100).to_dicts()
    x = alt.X("value:Q", title="RTT (ms)", axis=alt.Axis(grid=False))
    base = alt.Chart().encode(x=x)
    y = alt.Y("p05:Q", title="improvement of the PLT (%)")
    layers = alt.layer(
        zero_line(),
        base.mark_area(opacity=0.2, color=COLORS[0]).encode(y=y, y2="p95:Q"),
        base.mark_area(opacity=0.4, color=COLORS[0]).encode(y="p25:Q", y2="p75:Q"),
        base.mark_line(color=COLORS[0]).encode(y="median:Q"),
    ).properties(width=230, height=200)
    return panels(
        layers,
        rows,
        "over",
        "Improvement over recorded pages",
        "Simulated. Line: median; bands: half and nine tenths of the pages. Above 0, TFO is faster.",
        columns=3,
    )


STUDY = Study(FOLDER, measure, {"improvements.csv": COLUMNS}, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
