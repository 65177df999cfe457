"""How much of Fast Open's gain is left where the client has cookies of some origins only, simulated.

    python scripts/cookie_reach.py studies/cookies/plan.toml

The paper's pages at three RTTs; 100 draws of the origins with a cookie at each share. Prints a table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from firstflight.engines.simulate import Simulator
from firstflight.experiment.plan_file import read_plan_file, resolve
from firstflight.experiment.schedule import Schedule
from firstflight.model.plan import PAPER_PAGES, Plan
from firstflight.pages import LoadedPage, load_page

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHOWN = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
DRAWS = 100
RTTS = "20,100,200"

Cell = tuple[str, float]
"""A page and an RTT, ms."""


def main() -> int:
    """Prints the table."""
    plan = resolve(
        {"engine": "simulate", "keep": "loads", "rtt": RTTS}, read_plan_file(Path(sys.argv[1]))
    ).model_copy(update={"pages": PAPER_PAGES})
    pages = {name: load_page(name)[0] for name in plan.pages}
    plain = means(plan, pages, "tcp", 1.0)
    gains = [gain(plain, means(plan, pages, "tfo", share)) for share in SHARES]
    sys.stdout.writelines(table(plain, dict(zip(SHARES, gains, strict=True))))
    return 0


def means(plan: Plan, pages: Mapping[str, LoadedPage], mode: str, share: float) -> dict[Cell, float]:
    """Mean PLT by cell, ms. Only where a draw decides who has a cookie more than one load is made."""
    state = {0.0: "cold", 1.0: "warm"}.get(share, f"warm:{share}")
    repeats = 1 if share in (0.0, 1.0) else DRAWS
    update = {"mode": (mode,), "cookies": (state,), "repeats": repeats}
    found: dict[Cell, list[float]] = {}
    simulator = Simulator("loads")
    for load in (
        load for block in Schedule(plan.model_copy(update=update), plan.pages) for load in block.loads
    ):
        row = simulator.load(load, pages[load.page])["load"]
        found.setdefault((load.page, load.path.rtt_ms), []).append(row["plt_ms"] or float("inf"))
    return {cell: fmean(plts) for cell, plts in found.items()}


def gain(plain: Mapping[Cell, float], fast: Mapping[Cell, float]) -> dict[Cell, float]:
    """The improvement of the mean, by cell."""
    return {cell: (plain[cell] - fast[cell]) / plain[cell] for cell in plain}


def table(plain: Mapping[Cell, float], gains: Mapping[float, Mapping[Cell, float]]) -> Iterator[str]:
    """One row per cell: the improvement by share, and where half of it is left."""
    yield f"| page | RTT, ms | TCP, s | {' | '.join(f'{share:.0%}' for share in SHOWN)} | half is left at |\n"
    yield f"|---|---:|---:|{'---:|' * (len(SHOWN) + 1)}\n"
    for cell, tcp_ms in plain.items():
        columns = " | ".join(f"{100 * gains[share][cell]:+.1f} %" for share in SHOWN)
        half = half_left([(share, found[cell]) for share, found in gains.items()])
        yield f"| {cell[0]} | {cell[1]:g} | {tcp_ms / 1000:.2f} | {columns} | {half} |\n"


def half_left(gains: Sequence[tuple[float, float]]) -> str:
    """The largest share at which no more than half of the whole gain is left, between two of `SHARES`."""
    half = gains[-1][1] / 2
    for (below, less), (above, more) in reversed(list(pairwise(gains))):
        if less <= half < more:
            return f"{100 * (below + (above - below) * (half - less) / (more - less)):.0f} %"
    return "no share"


if __name__ == "__main__":
    raise SystemExit(main())
