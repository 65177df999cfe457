"""How much of Fast Open's gain is left where the client has cookies of some origins only, simulated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

import firstflight as ff
from studies.tables import Frames, Study, by_treatment, gain

FOLDER = Path(__file__).parent
TREATMENTS = {0: "cold", **{share: f"share-{share}" for share in range(10, 100, 10)}, 100: "warm"}
"""By the percentage of hosts with a cookie."""
SHOWN = (0, 20, 40, 60, 80, 100)

COLUMNS = {
    "page": "{page}",
    "RTT, ms": "{rtt_ms:g}",
    "TCP, s": "{tcp_s:.2f}",
    **{f"{share} %": f"{{gain_{share}:+.1%}}" for share in SHOWN},
    "half is left at": "{half_at:.0%}",
}


def measure(_: Sequence[str]) -> Frames:
    """The improvement of the mean PLT by share of hosts with a cookie."""
    loads = ff.simulate(FOLDER / "plan.toml", keep="loads").loads
    cells = by_treatment(loads, pl.col("plt_ms").mean())
    gains = {f"gain_{share}": gain("plt_ms_plain", f"plt_ms_{name}") for share, name in TREATMENTS.items()}
    table = cells.select("page", "rtt_ms", tcp_s=pl.col("plt_ms_plain") / 1000, **gains)
    halves = [
        half_left([(share / 100, row[f"gain_{share}"]) for share in TREATMENTS])
        for row in table.iter_rows(named=True)
    ]
    return {"gains.csv": table.with_columns(half_at=pl.Series(halves, dtype=pl.Float64))}


def half_left(gains: Sequence[tuple[float, float]]) -> float | None:
    """The largest share at which no more than half of the whole gain is left, between two simulated ones."""
    half = gains[-1][1] / 2
    for (below, less), (above, more) in reversed(list(pairwise(gains))):
        if less <= half < more:
            return below + (above - below) * (half - less) / (more - less)
    return None


STUDY = Study(FOLDER, measure, {"gains.csv": COLUMNS})

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
