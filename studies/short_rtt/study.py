"""What Fast Open saves at short RTTs, compared with how much two loads differ anyway."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

import firstflight as ff
from studies.tables import COLORS, Figure, Frames, Study, panels, zero_line

FOLDER = Path(__file__).parent
CLOCKS = {"measured.csv": "loader, real kernel", "simulated.csv": "loader, simulated"}
COLUMNS = {
    "page": "{page}",
    "RTT, ms": "{rtt_ms:g}",
    "PLT, TCP": "{tcp_s:.3f} s",
    "improvement": "{gain:+.1%}",
    "saved, ms": "{saved_ms:.1f}",
    "saved, RTT": "{saved_rtts:.1f}",
    "spread of a pair, ms": "{spread_ms:.1f}",
    "looks slower": "{slower} of {pairs}",
}
EXACT = {name: COLUMNS[name] for name in list(COLUMNS)[:-2]}
"""Without randomness a simulated cell is one load, and has no spread."""


def measure(folders: Sequence[str]) -> Frames:
    """What is saved, simulated; on the real kernel where `folders` has results of the plan."""
    tables = {"simulated.csv": table(ff.simulate(FOLDER / "plan.toml", keep="loads").pairs)}
    if folders:
        tables["measured.csv"] = table([pair for name in folders for pair in ff.open_results(name).pairs])
    return tables


def table(pairs: Sequence[ff.CellPair]) -> pl.DataFrame:
    """A row per page and RTT: medians over its blocks, and the standard deviation of a single block."""
    return pl.DataFrame([_row(pair) for pair in sorted(pairs, key=lambda pair: (pair.page, pair.rtt_ms))])


def _row(pair: ff.CellPair) -> dict[str, Any]:
    tcp_ms, tfo_ms = pair.plt_ms("baseline"), pair.plt_ms("treatment")
    saved_ms = [before - after for before, after in zip(tcp_ms, tfo_ms, strict=True)]
    median_ms = statistics.median(saved_ms)
    return {
        "page": pair.page,
        "rtt_ms": pair.rtt_ms,
        "tcp_s": statistics.median(tcp_ms) / 1000,
        "gain": median_ms / statistics.median(tcp_ms),
        "saved_ms": median_ms,
        "saved_rtts": median_ms / pair.rtt_ms,
        "spread_ms": statistics.stdev(saved_ms) if len(saved_ms) > 1 else None,
        "slower": sum(saved < 0 for saved in saved_ms),
        "pairs": len(saved_ms),
    }


def draw(tables: Frames) -> Figure:
    """Saved time against the RTT; bars are where a single pair lies, two times in three."""
    rows = [
        {
            "run": run,
            "page": row["page"],
            "rtt": row["rtt_ms"],
            "saved": row["saved_ms"],
            "low": row["saved_ms"] - (row["spread_ms"] or 0.0),
            "high": row["saved_ms"] + (row["spread_ms"] or 0.0),
        }
        for name, run in CLOCKS.items()
        for row in tables[name].iter_rows(named=True)
    ]
    color = alt.Color("run:N", title=None, sort=None).scale(domain=list(CLOCKS.values()), range=COLORS[:2])
    axis = alt.Axis(values=sorted({row["rtt"] for row in rows}), grid=False)
    base = alt.Chart().encode(x=alt.X("rtt:Q", title="RTT (ms)", axis=axis), color=color)
    layers = alt.layer(
        zero_line(),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="saved by Fast Open (ms)"), y2="high:Q"),
        base.mark_line(strokeWidth=1.5).encode(y="saved:Q"),
        base.mark_point(filled=True, size=35, opacity=1).encode(y="saved:Q"),
    ).properties(width=210, height=210)
    return panels(
        layers,
        rows,
        "page",
        "What Fast Open saves, and where a single pair of loads lies",
        "Medians of pairs; bars: one standard deviation of a single pair. Above 0, TFO is faster.",
        columns=2,
    )


STUDY = Study(FOLDER, measure, {"measured.csv": COLUMNS, "simulated.csv": EXACT}, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
