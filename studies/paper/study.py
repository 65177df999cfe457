"""Which factor explains how our Table 1 differs from the paper's: simulated, each alone and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import altair as alt
import polars as pl
from scipy.stats import spearmanr  # type: ignore[import-untyped]

import firstflight as ff
from studies.tables import COLORS, Figure, Frames, Study, by_treatment, gain, panels, zero_line

FOLDER = Path(__file__).parent
PUBLISHED = Path(ff.__file__).parent / "published" / "tables" / "paper.csv"
"""Table 1 of the paper."""

REPEATS = 15
"""Of each simulated cell: seeds shift the kernel's timer ticks."""

VARIANTS = {
    "as_is": "as it is",
    "window_3": "initial window 3",
    "queue_50": "queue of 50 packets",
    "close": "close after each response",
    "slow_client": "a third as fast",
}
MEASURED = {**VARIANTS, "pages_2011": "pages of 2011"}
OF_2011 = {"of_2011": "all that a plan can say of 2011"}
FACTORS: dict[str, tuple[str, tuple[Any, Any]]] = {
    "initial window 10 → 3": ("initial_window", (10, 3)),
    "queue 1,000 → 50 packets": ("queue", ("1000p", "50p")),
    "keep-alive → close": ("keep_alive", (True, False)),
    "processing 1 → 3": ("processing", (1, 3)),
}
_CELL = ("page", "rtt_ms")
_DISTANCE = {
    "same sign": "{same_sign} of {cells}",
    "rank": "{rank:+.2f}",
    "mean size of the difference": "{size:.1%}",
    "mean difference": "{mean:+.1%}",
    "PLT without TFO, of the paper's": "{plt_ratio:.2f}",
}
_GAINS = {"page": "{page}", "RTT, ms": "{rtt_ms:g}", "paper": "{paper:+.1%}"}

COLUMNS = {
    "loads.csv": {
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "paper (2011), Chrome": "{paper:.0%}",
        "loader, 10 blocks": "{improvement:+.1%} ({low:+.1%} to {high:+.1%})",
        "loader PLT tcp, tfo": "{tcp_s:.2f} s, {tfo_s:.2f} s",
        "tcp on tcp": "{null:+.1%} ({null_low:+.1%} to {null_high:+.1%})",
        "SYN data accepted": "{accepted} of {connections}",
        "Chromium 156, 5 blocks": "{chromium:+.1%} ({chromium_low:+.1%} to {chromium_high:+.1%})",
        "Chromium PLT tcp, tfo": "{chromium_tcp_s:.2f} s, {chromium_tfo_s:.2f} s",
    },
    "measured.csv": _GAINS | {name: f"{{{key}:+.1%}}" for key, name in MEASURED.items()},
    "simulated.csv": _GAINS | {name: f"{{{key}:+.1%}}" for key, name in (VARIANTS | OF_2011).items()},
    "distances.csv": {"variant, simulated": "{variant}", **_DISTANCE},
    "effects.csv": {
        "factor, over 16 simulated combinations": "{factor}",
        "improvement": "{improvement:+.1%}",
        "size of the difference to the paper": "{size:+.1%}",
        "rank": "{rank:+.2f}",
    },
    "combinations.csv": {"combination, simulated": "{variant}", **_DISTANCE},
}


def measure(_: Sequence[str]) -> Frames:
    """Improvements and distances from the paper, simulated."""
    published = pl.read_csv(PUBLISHED, comment_prefix="#", schema_overrides={"rtt_ms": pl.Float64})
    paper = published.select(*_CELL, tcp_s=pl.col("tcp_ms") / 1000, tfo_s=pl.col("tfo_ms") / 1000)
    loads = ff.simulate(FOLDER / "factors.toml", repeats=REPEATS, keep="loads").loads
    plts = paper.join(by_treatment(loads), on=_CELL, how="left", maintain_order="left")
    tables = {key: table(plts, key.replace("_", "-")) for key in VARIANTS | OF_2011}
    gains = [cells.select(pl.col("gain").alias(key)) for key, cells in tables.items()]
    paper_gain = paper.select(*_CELL, paper=gain("tcp_s", "tfo_s"))
    names = VARIANTS | OF_2011
    distances = [{"variant": names[key], **distance(cells)} for key, cells in tables.items()]
    combinations = factorial(paper)
    return {
        "simulated.csv": pl.concat([paper_gain, *gains], how="horizontal"),
        "distances.csv": pl.DataFrame(distances),
        "effects.csv": effects(combinations),
        "combinations.csv": pl.DataFrame(
            [
                {"variant": "; ".join(changed(level)) or VARIANTS["as_is"], **found}
                for level, found in sorted(combinations.items(), key=lambda each: each[1]["size"])
            ]
        ),
    }


def table(plts: pl.DataFrame, treatment: str) -> pl.DataFrame:
    """The paper's times and those of a treatment without and with Fast Open."""
    tcp, tfo = f"plt_ms_{treatment}", f"plt_ms_{treatment}-tfo"
    return plts.select("tcp_s", paper=gain("tcp_s", "tfo_s"), ours_s=pl.col(tcp) / 1000, gain=gain(tcp, tfo))


def distance(cells: pl.DataFrame) -> dict[str, Any]:
    """How far the improvements of a table are from the paper's; a mean above 0: ours are larger."""
    ours, theirs = cells["gain"], cells["paper"]
    return {
        "cells": len(ours),
        "same_sign": int(((ours > 0) == (theirs > 0)).sum()),
        "rank": float(spearmanr(ours, theirs).statistic),
        "size": (ours - theirs).abs().mean(),
        "mean": (ours - theirs).mean(),
        "plt_ratio": (cells["ours_s"] / cells["tcp_s"]).mean(),
    }


def factorial(paper: pl.DataFrame) -> dict[tuple[int, ...], dict[str, Any]]:
    """The distance of every combination of `FACTORS`, by the level of each."""
    levels = list(product((0, 1), repeat=len(FACTORS)))
    treatments = [
        {"name": "".join(map(str, level)) + suffix, "mode": mode, **_keys(level)}
        for level in levels
        for suffix, mode in (("", "tcp"), ("-tfo", "tfo"))
    ]
    loads = ff.simulate(FOLDER / "factors.toml", treatment=treatments, repeats=REPEATS, keep="loads").loads
    plts = paper.join(by_treatment(loads), on=_CELL, how="left", maintain_order="left")
    return {level: distance(table(plts, "".join(map(str, level)))) for level in levels}


def effects(found: Mapping[tuple[int, ...], Mapping[str, Any]]) -> pl.DataFrame:
    """What each factor moves, in the mean over the others' settings."""
    rows = []
    for place, factor in enumerate(FACTORS):
        pairs = [
            (before, found[(*level[:place], 1, *level[place + 1 :])])
            for level, before in found.items()
            if level[place] == 0
        ]
        moved = {name: fmean(b[name] - a[name] for a, b in pairs) for name in ("mean", "size", "rank")}
        rows.append(
            {"factor": factor, "improvement": moved["mean"], "size": moved["size"], "rank": moved["rank"]}
        )
    return pl.DataFrame(rows)


def changed(level: Sequence[int]) -> list[str]:
    """The factors that a combination changes."""
    return [factor for factor, value in zip(FACTORS, level, strict=True) if value]


def _keys(level: Sequence[int]) -> dict[str, Any]:
    return {key: values[at] for at, (key, values) in zip(level, FACTORS.values(), strict=True)}


def draw(tables: Frames) -> Figure:
    """Improvement against RTT, a panel per page: the paper's, and ours on the kernel under each factor."""
    names = {"paper": "the paper, 2011", **MEASURED}
    rows = [
        {"page": row["page"], "x": row["rtt_ms"], "variant": name, "y": 100 * row[key]}
        for row in tables["measured.csv"].iter_rows(named=True)
        for key, name in names.items()
        if row[key] is not None
    ]
    x = alt.X("x:Q", title="RTT (ms)", axis=alt.Axis(values=[20, 100, 200], grid=False))
    color = alt.Color("variant:N", sort=None).scale(domain=list(names.values()), range=["#1f2933", *COLORS])
    width = alt.condition("datum.variant == 'the paper, 2011'", alt.value(3.5), alt.value(1.5))
    base = alt.Chart().encode(x=x, y=alt.Y("y:Q", title="improvement of the PLT (%)"), color=color)
    layers = alt.layer(
        zero_line(),
        base.mark_line().encode(strokeWidth=width),
        base.mark_point(filled=True, size=40, opacity=1),
    ).properties(width=210, height=230)
    return panels(
        layers,
        rows,
        "page",
        "Which factor brings our table nearer to the paper's",
        "4 Mbit/s down, 256 kbit/s up; the loader on the real kernel. Above 0, TFO is faster.",
        columns=4,
    )


STUDY = Study(FOLDER, measure, COLUMNS, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
