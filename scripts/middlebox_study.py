"""What middleboxes cost, simulated: every kind, and the share of broken paths at which TFO stops paying.

    python scripts/middlebox_study.py studies/middleboxes/plan.toml

`repeats` of the plan is how many times it is drawn which origins are behind a box. Prints Markdown tables.
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
from firstflight.model.load import PlannedLoad
from firstflight.model.path import MIDDLEBOXES, Middlebox
from firstflight.model.plan import Plan
from firstflight.pages import LoadedPage, load_page

SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
DROPPED = "drop-data"

Cell = tuple[str, float]
"""A page and an RTT, ms."""


def main() -> int:
    """Prints the tables."""
    plan = resolve({"engine": "simulate", "keep": "loads"}, read_plan_file(Path(sys.argv[1])))
    pages = {name: load_page(name)[0] for name in plan.pages}
    clear = means(plan, pages, None)
    sys.stdout.writelines(costs(plan, pages, clear))
    sys.stdout.write("\n")
    sys.stdout.writelines(break_even(plan, pages, clear))
    return 0


def means(
    plan: Plan, pages: Mapping[str, LoadedPage], middlebox: Middlebox | None
) -> dict[tuple[Cell, str], tuple[float, float]]:
    """Mean PLT, ms, and mean number of failed requests, by cell and mode.

    Only where a draw decides which paths are broken more than one load is made; `tcp` meets no box.
    """
    is_drawn = middlebox is not None and middlebox.share < 1
    repeats = plan.repeats if is_drawn else 1
    modes = ("tfo",) if is_drawn else plan.mode
    planned = Schedule(
        plan.model_copy(update={"middlebox": middlebox, "repeats": repeats, "mode": modes}), plan.pages
    )
    found: dict[tuple[Cell, str], list[tuple[float, float]]] = {}
    simulator = Simulator("loads")
    for load in (load for block in planned for load in block.loads):
        key = ((load.page, load.path.rtt_ms), load.mode)
        found.setdefault(key, []).append(_made(simulator, load, pages[load.page]))
    return {key: _mean(made) for key, made in found.items()}


def _mean(made: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fmean(plt_ms for plt_ms, _ in made), fmean(failed for _, failed in made)


def _made(simulator: Simulator, load: PlannedLoad, page: LoadedPage) -> tuple[float, float]:
    """PLT, infinite for a page that never loads, and failed requests."""
    row = simulator.load(load, page)["load"]
    plt_ms = row["plt_ms"] if row["status"] == "ok" else None
    return (float("inf") if plt_ms is None else plt_ms), row["failed_requests"] or 0


def costs(
    plan: Plan, pages: Mapping[str, LoadedPage], clear: Mapping[tuple[Cell, str], tuple[float, float]]
) -> Iterator[str]:
    """One row per cell, one column per kind: the improvement with every path behind such a box."""
    boxed = {kind: means(plan, pages, Middlebox(kind)) for kind in MIDDLEBOXES}
    yield f"| page | RTT, ms | TCP, s | no box | {' | '.join(MIDDLEBOXES)} |\n"
    yield f"|---|---:|---:|{'---:|' * (len(MIDDLEBOXES) + 1)}\n"
    for page, rtt_ms in _cells(clear):
        shown = [_improvement(found, (page, rtt_ms)) for found in (clear, *boxed.values())]
        tcp_ms, _ = clear[(page, rtt_ms), "tcp"]
        yield f"| {page} | {rtt_ms:g} | {tcp_ms / 1000:.2f} | {' | '.join(shown)} |\n"


def _improvement(found: Mapping[tuple[Cell, str], tuple[float, float]], cell: Cell) -> str:
    (tcp_ms, _), (tfo_ms, failed) = found[cell, "tcp"], found[cell, "tfo"]
    if tfo_ms == float("inf"):
        return "fails"
    text = f"{100 * (tcp_ms - tfo_ms) / tcp_ms:+.1f} %"
    return f"{text}, {failed:g} lost" if failed else text


def break_even(
    plan: Plan, pages: Mapping[str, LoadedPage], clear: Mapping[tuple[Cell, str], tuple[float, float]]
) -> Iterator[str]:
    """One row per cell: the improvement of the mean PLT by share, and where it turns into a loss."""
    drawn = [means(plan, pages, Middlebox(DROPPED, share)) for share in SHARES]
    shown = [share for share in SHARES if share in (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)]
    yield f"| page | RTT, ms | no box | {' | '.join(f'{share:.0%}' for share in shown)} | stops paying at |\n"
    yield f"|---|---:|---:|{'---:|' * (len(shown) + 1)}\n"
    for cell in _cells(clear):
        tcp_ms, _ = clear[cell, "tcp"]
        gains = [(tcp_ms - found[cell, "tfo"][0]) / tcp_ms for found in (clear, *drawn)]
        by_share = dict(zip((0.0, *SHARES), gains, strict=True))
        columns = " | ".join(f"{100 * by_share[share]:+.1f} %" for share in (0.0, *shown))
        yield f"| {cell[0]} | {cell[1]:g} | {columns} | {_crossing(list(by_share.items()))} |\n"


def _crossing(gains: Sequence[tuple[float, float]]) -> str:
    """Where the gain reaches 0, between the two shares beside it."""
    for (below, more), (above, less) in pairwise(gains):
        if less <= 0 < more:
            return f"{100 * (below + (above - below) * more / (more - less)):.1f} %"
    return "never" if gains[-1][1] > 0 else "at once"


def _cells(found: Mapping[tuple[Cell, str], object]) -> list[Cell]:
    return list(dict.fromkeys(cell for cell, _ in found))


if __name__ == "__main__":
    raise SystemExit(main())
