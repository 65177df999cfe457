"""Simple models of a page load, to hold the simulator's accuracy against. See `docs/baselines.md`."""

from firstflight.analysis.baselines.lantern import Path, lantern_plt_ms
from firstflight.analysis.baselines.naive import naive_plt_ms

__all__ = ["Path", "lantern_plt_ms", "naive_plt_ms"]
