"""What the course's plan gives, on the real kernel and simulated, compared with the handout's table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

import firstflight as ff
from studies.tables import Frames, Study, by_treatment, gain, measured

FOLDER = Path(__file__).parent
PLAN = FOLDER.parents[1] / "plans" / "course.toml"
COLUMNS = {
    "page": "{page}",
    "RTT, ms": "{rtt_ms:g}",
    "PLT, handout": "{handout_tcp_s:.2f} s → {handout_tfo_s:.2f} s",
    "improvement": "{handout:+.1%}",
    "PLT, loader": "{tcp_s:.2f} s → {tfo_s:.2f} s",
    "improvement (95 % interval)": "{improvement:+.1%} ({low:+.1%} to {high:+.1%})",
    "simulated": "{simulated:+.1%}",
}


def measure(folders: Sequence[str]) -> Frames:
    """The handout's six cells and ours; `folders` are results of the plan on the real kernel."""
    cells = by_treatment(ff.simulate(PLAN, repeats=1, keep="loads").loads)
    simulated = cells.with_columns(gain=gain("plt_ms_tcp", "plt_ms_tfo"))
    stored = pl.read_csv(FOLDER / "cells.csv")
    kernel = measured(FOLDER / "cells.csv", folders, simulated)
    handout = stored.select("page", "rtt_ms", "handout_tcp_s", "handout_tfo_s", "handout")
    ours = kernel.select(pl.exclude(handout.columns[2:]))
    return {"cells.csv": handout.join(ours, on=("page", "rtt_ms"), how="left", maintain_order="left")}


STUDY = Study(FOLDER, measure, {"cells.csv": COLUMNS})

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
