"""Which factor explains how our Table 1 differs from the paper's, in Markdown: a plan each, both clocks.

    python scripts/paper_factors.py results/factors --run --figure FILE.svg
    python scripts/paper_factors.py results/factors --contents wsj=PAGE --contents wikipedia=PAGE

The folder holds a results folder per plan, by the plan's name; with `--run` those that are missing are
measured first. `--contents` puts other pages in the place of the paper's. What is not measured is simulated.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import vl_convert
from paper_figure import figure
from paper_tables import PAPER, Distance, Pages, Table, distance, measured, simulated
from scipy.stats import spearmanr  # type: ignore[import-untyped]

from firstflight.analysis import words
from firstflight.experiment.plan_file import read_plan_file, resolve
from firstflight.model.plan import PAPER_PAGES, Plan
from firstflight.pages import open_pages, under
from firstflight.results import write_whole

AS_IT_IS, CONTENTS = "as it is", "other pages"
PLANS = {
    AS_IT_IS: "plans/paper",
    "initial window 3": "studies/paper/initial-window",
    "queue of 50 packets": "studies/paper/queue",
    "close after each response": "studies/paper/close",
    "client a third as fast": "studies/paper/processing",
    "all that a plan can say of 2011": "studies/paper/of-2011",
    CONTENTS: "plans/paper",
}
FACTORS: dict[str, tuple[str, tuple[Any, Any]]] = {
    "initial window 10 → 3": ("initial_window", (10, 3)),
    "queue 1,000 → 50 packets": ("queue", ("1000p", "50p")),
    "keep-alive → close": ("keep_alive", (True, False)),
    "processing 1 → 3": ("processing", (1, 3)),
}
REPEATS = 15
"""Of each simulated cell."""

_DISTANCE = "same sign | rank | mean size of the difference | mean difference | PLT / paper's"

Both = dict[str, tuple[Table | None, Table]]
"""Measured and simulated cells, by variant."""


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    options = _options()
    own = _pages(PAPER_PAGES)
    others = _pages(options.contents.values(), options.contents)
    variants = {name: plan for name, plan in PLANS.items() if name != CONTENTS or others}
    tables: Both = {}
    for name, plan in variants.items():
        pages = others if name == CONTENTS else own
        folder = options.folder / ("contents" if name == CONTENTS else Path(plan).name)
        if options.run and not (folder / "summary.json").exists():
            specs = options.contents.values() if name == CONTENTS else ()
            _run(plan, folder, list(specs))
        found = measured(folder, pages) if (folder / "summary.json").exists() else None
        tables[name] = found, simulated(_plan(plan, repeats=REPEATS, pages=list(pages)), pages)
    for part in (cells(tables), distances(tables), effects(tables), round_trips(tables), factorial(own)):
        sys.stdout.writelines([*part, "\n"])
    if options.figure:
        write_whole(options.figure, vl_convert.vegalite_to_svg(figure(tables)).encode())
    return 0


def cells(tables: Both) -> Iterator[str]:
    """The twelve cells of every variant, measured where they were, else simulated."""
    best = {name: found or guessed for name, (found, guessed) in tables.items()}
    yield f"| page | RTT, ms | paper | {' | '.join(best)} |\n"
    yield f"|---|---:|---:|{'---:|' * len(best)}\n"
    for page, rtt_ms in PAPER:
        told = (table.get((page, rtt_ms)) for table in (PAPER, *best.values()))
        shown = (words.percent(cell.improvement) if cell else words.DASH for cell in told)
        yield f"| {page} | {words.rtt(rtt_ms)} | {' | '.join(shown)} |\n"


def distances(tables: Both) -> Iterator[str]:
    """How far each variant is from the paper, measured and simulated."""
    yield f"| variant | clock | {_DISTANCE} |\n"
    yield "|---|---|---:|---:|---:|---:|---:|\n"
    for name, sides in {**tables, **_alike(tables)}.items():
        for clock, table in zip(("kernel", "simulated"), sides, strict=True):
            if table is not None:
                yield f"| {name} | {clock} | {_distance(distance(table))} |\n"


def _alike(tables: Both) -> Both:
    """`AS_IT_IS` over the cells that `CONTENTS` has, to be fair."""
    if CONTENTS not in tables:
        return {}
    found, guessed = tables[AS_IT_IS]
    keys = tables[CONTENTS][1].keys()
    cells = [{key: table[key] for key in keys} if table else None for table in (found, guessed)]
    return {f"{AS_IT_IS}, these cells": (cells[0], cells[1] or {})}


def effects(tables: Both) -> Iterator[str]:
    """What each variant changes against `AS_IT_IS`, in percentage points: on the kernel, and as simulated."""
    yield "| variant | kernel, mean | size | simulated, mean | apart, mean size | rank | same sign |\n"
    yield "|---|---:|---:|---:|---:|---:|---:|\n"
    before = tables[AS_IT_IS]
    for name, sides in tables.items():
        if name == AS_IT_IS or sides[0] is None or before[0] is None:
            continue
        keys = [key for key in PAPER if key in sides[0]]
        real, guessed = (
            [after[key].improvement - base[key].improvement for key in keys]  # type: ignore[index]
            for after, base in zip(sides, before, strict=True)
        )
        apart = [a - b for a, b in zip(real, guessed, strict=True)]
        same = sum((a > 0) == (b > 0) for a, b in zip(real, guessed, strict=True))
        columns = (
            _points(real),
            _size(real),
            _points(guessed),
            _size(apart),
            f"{spearmanr(real, guessed).statistic:+.2f}",
            f"{same} of {len(keys)}",
        )
        yield f"| {name} | {' | '.join(columns)} |\n"


def round_trips(tables: Both) -> Iterator[str]:
    """By how many RTTs the PLT is longer at 200 ms than at 20 ms, per RTT more: without TFO, and with it."""
    best = {"paper": PAPER, **{name: found or guessed for name, (found, guessed) in tables.items()}}
    yield f"| page | {' | '.join(best)} |\n"
    yield f"|---|{'---|' * len(best)}\n"
    for page in PAPER_PAGES:
        yield f"| {page} | {' | '.join(_slopes(table, page) for table in best.values())} |\n"


def _slopes(table: Table, page: str) -> str:
    if (page, 20) not in table or (page, 200) not in table:
        return words.DASH
    near, far = table[page, 20], table[page, 200]
    tcp = (far.tcp_ms - near.tcp_ms) / 180
    tfo = (far.tcp_ms * (1 - far.improvement) - near.tcp_ms * (1 - near.improvement)) / 180
    return f"{tcp:.1f} → {tfo:.1f}"


def factorial(pages: Pages) -> Iterator[str]:
    """Every combination of `FACTORS`, simulated: what each moves, in the mean over the others' settings."""
    levels = list(product((0, 1), repeat=len(FACTORS)))
    runs = {
        level: simulated(_plan("plans/paper", repeats=REPEATS, **_keys(level)), pages) for level in levels
    }
    found = {level: distance(table) for level, table in runs.items()}
    yield f"| factor, {len(levels)} simulated combinations | improvement | size of the difference | rank |\n"
    yield "|---|---:|---:|---:|\n"
    for place, name in enumerate(FACTORS):
        moved = [_moved(found, level, place) for level in levels if level[place] == 0]
        improvement, size, rank = (statistics.mean(values) for values in zip(*moved, strict=True))
        yield f"| {name} | {100 * improvement:+.1f} | {100 * size:+.1f} | {rank:+.2f} |\n"
    yield f"\n| combination | {_DISTANCE} |\n"
    yield "|---|---:|---:|---:|---:|---:|\n"
    for level in sorted(levels, key=lambda level: found[level].size):
        changed = [name for name, value in zip(FACTORS, level, strict=True) if value]
        yield f"| {'; '.join(changed) or AS_IT_IS} | {_distance(found[level])} |\n"


def _moved(
    found: Mapping[tuple[int, ...], Distance], level: tuple[int, ...], place: int
) -> tuple[float, float, float]:
    a, b = found[level], found[(*level[:place], 1, *level[place + 1 :])]
    return b.mean - a.mean, b.size - a.size, b.rank - a.rank


def _keys(level: tuple[int, ...]) -> dict[str, Any]:
    return {key: values[at] for at, (key, values) in zip(level, FACTORS.values(), strict=True)}


def _plan(name: str, **keys: Any) -> Plan:  # noqa: ANN401
    return resolve(keys, read_plan_file(Path(f"{name}.toml")))


def _pages(specs: Sequence[str] | Any, names: Mapping[str, str] | None = None) -> Pages:  # noqa: ANN401
    opened = [under("http", next(iter(open_pages([spec])))) for spec in specs]
    return dict(zip(names or (loaded.page.name for loaded in opened), opened, strict=True))


def _run(plan: str, folder: Path, specs: list[str]) -> None:
    code = "import sys; from firstflight.cli import main; sys.exit(main())"
    run = ["run", *specs, "--plan", f"{plan}.toml", "--repeats", "5", "--quiet", "--out", str(folder)]
    again = ["--resume"] if (folder / "plan.toml").exists() else []
    subprocess.run([sys.executable, "-c", code, *run, *again], check=True, stdout=subprocess.DEVNULL)


def _distance(found: Distance) -> str:
    columns = (
        f"{found.same_sign} of {found.cells}",
        f"{found.rank:+.2f}",
        f"{100 * found.size:.1f}",
        f"{100 * found.mean:+.1f}",
        f"{found.plt_ratio:.2f}",
    )
    return " | ".join(columns)


def _points(values: Sequence[float]) -> str:
    return f"{100 * statistics.mean(values):+.1f}"


def _size(values: Sequence[float]) -> str:
    return f"{100 * statistics.mean(map(abs, values)):.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Test what explains the difference to the paper's Table 1.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", action="store_true", help="measure what is missing")
    parser.add_argument("--contents", action="append", default=[], metavar="NAME=PAGE")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    options.contents = dict(pair.split("=", 1) for pair in options.contents)
    return options


if __name__ == "__main__":
    sys.exit(main())
