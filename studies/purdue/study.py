"""wget2 on the rates and RTTs of a course project of 2022, compared with its published tables.

    python -m studies.purdue.study BY_RTT BY_RATE

Results folders of plan.toml and of bandwidth.toml. There is nothing to simulate: wget2 runs in the lab only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

import firstflight as ff
from studies.tables import Frames, Study

FOLDER = Path(__file__).parent
KEYS = {"by_rtt.csv": "rtt_ms", "by_rate.csv": "down_mbps"}
_TIMES = {
    "PLT, published": "{published_tcp_s:.2f} s → {published_tfo_s:.2f} s",
    "published improvement": "{published:+.1%}",
    "PLT, measured": "{tcp_s:.3g} s → {tfo_s:.3g} s",
    "improvement (95 % interval)": "{improvement:+.1%} ({low:+.1%} to {high:+.1%})",
}
COLUMNS = {
    "by_rtt.csv": {"page": "{page}", "RTT, ms": "{rtt_ms:g}", **_TIMES},
    "by_rate.csv": {"page": "{page}", "Mbit/s": "{down_mbps:g}", **_TIMES},
}


def measure(folders: Sequence[str]) -> Frames:
    """Both tables with what new results give; without results as they are."""
    return {
        name: compared(pl.read_csv(FOLDER / name), key, ff.open_results(folder))
        for (name, key), folder in zip(KEYS.items(), folders, strict=False)
    }


def compared(stored: pl.DataFrame, key: str, results: ff.Results) -> pl.DataFrame:
    """The published cells with those of new results."""
    cell = ("page", key)
    medians = {"tcp_s": pl.col("baseline_ms") / 1000, "tfo_s": pl.col("treatment_ms") / 1000}
    ours = results.cells.filter(proved=True).select(*cell, "n", "improvement", "low", "high", **medians)
    published = stored.select(*cell, "published_tcp_s", "published_tfo_s", "published")
    return published.join(ours, on=cell, how="left", maintain_order="left")


STUDY = Study(FOLDER, measure, COLUMNS)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
