"""Compares single loads with equal losses on both clocks: simulator error and the kernel's own variation.

    python tests/validation/load_by_load.py JOURNAL [--jobs 8]

It makes every load twice on the real kernel, with the same seed. A difference between these two comes from
something that neither clock controls. This takes half an hour. The journal has a line per load; started again
with the same journal, the program makes the loads that are missing.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from accuracy_grid import CONDITIONS, MODES, Condition, conditions, measured_pages, open_page
from accuracy_table import DOCUMENT, replace_between
from measure_accuracy import Line, is_good, measure, read
from numpy.typing import NDArray

from firstflight.engines.emulate import Emulator
from firstflight.engines.simulate import Simulator
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Burst, Queue
from firstflight.model.path import Path as NetworkPath
from firstflight.model.plan import PAPER_PAGES
from firstflight.pages import LoadedPage
from firstflight.pages.scheme import under
from firstflight.results.records import plt_ms

LOADS = Path(__file__).with_name("load_by_load.tsv")
BEGIN, END = "<!-- load by load -->\n", "<!-- end of load by load -->\n"
CLEAR = 0.01
"""An improvement is clear if both kernel pairs give more than this, with the same sign."""

Array = NDArray[np.float64]
Keys = tuple[tuple[str, object], ...]
Case = tuple[str, Condition]
"""The name of a set of conditions, and a condition in it. The table has a row per set."""


@dataclass(frozen=True)
class Load:
    """One load: PLT in ms on both clocks. `again_ms` is a second load by the kernel with the same seed.

    Attributes:
        number: The number of the condition.
    """

    number: int
    set: str
    page: str
    path: str
    mode: str
    kernel_ms: float
    again_ms: float
    simulated_ms: float


def main() -> int:
    """Measures the loads that the journal lacks, then writes the table of loads and the document."""
    parser = argparse.ArgumentParser(description="Compare single loads on both clocks.")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    made = {(line["load_id"], line["again"]) for line in counted(options.journal)}
    todo = [
        (condition.planned(mode, 0, "emulate"), again)
        for again, (_, condition), mode in product((False, True), cases(), MODES)
    ]
    todo = [(load, again) for load, again in todo if (load.load_id, again) not in made]
    engine = Emulator()
    for path in {load.path.rtt_ms: load.path for load, _ in todo}.values():
        engine.calibrate(replace(path, down_bps=None, up_bps=None, loss=0.0, burst=None))
    with ThreadPoolExecutor(options.jobs) as pool, options.journal.open("a") as journal:
        lines = pool.map(lambda one: measure(engine, one[0], opened(one[0])), todo)
        for number, (line, (_, again)) in enumerate(zip(lines, todo, strict=True), 1):
            journal.write(json.dumps({**line, "again": again}) + "\n")
            journal.flush()
            sys.stderr.write(f"\r{number} of {len(todo)}")
    write(simulated(compared(options.journal)))
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def cases() -> list[Case]:
    """The grid, and conditions that it lacks: short and managed queues, a slow uplink, losses in bursts."""
    pages = (*PAPER_PAGES, *measured_pages())
    fast = NetworkPath("access", 80.0, 10_000_000, 2_000_000, Queue(packets=1000), 0.0)
    near_and_far = [replace(fast, rtt_ms=rtt_ms) for rtt_ms in (30.0, 80.0, 150.0)]
    short = {
        packets: [replace(path, queue=Queue(packets=packets)) for path in near_and_far]
        for packets in (50, 100)
    }
    slow = replace(fast, down_bps=4_000_000, up_bps=256_000)
    secure_paths = [
        replace(fast, rtt_ms=rtt_ms, down_bps=down_bps, up_bps=up_bps)
        for rtt_ms, (down_bps, up_bps) in product(
            (20.0, 100.0, 200.0), ((4_000_000, 256_000), (10_000_000, 2_500_000))
        )
    ]
    secure = (("scheme", "https"),)
    classic = (*secure, ("post_quantum", False))
    more: list[tuple[str, Sequence[str], Sequence[NetworkPath], Keys]] = [
        ("queue of 20 packets", pages, [replace(fast, queue=Queue(packets=20))], ()),
        ("queue of 50 packets", pages, short[50], ()),
        ("queue of 100 packets", pages, short[100], ()),
        ("CoDel", pages, [replace(fast, queue=Queue(name="codel"))], ()),
        ("uplink of 256 kbit/s", pages, [slow], ()),
        ("1 % loss in bursts", pages, [replace(fast, loss=0.01, burst=Burst(packets=4))], ()),
        ("2 % loss in bursts", pages, [replace(fast, loss=0.02, burst=Burst(packets=4))], ()),
        ("TLS 1.3", PAPER_PAGES, secure_paths, secure),
        ("TLS 1.3, classic key share", PAPER_PAGES, secure_paths, classic),
        ("HTTP/2, classic key share", PAPER_PAGES, secure_paths, (*classic, ("http", "2"))),
    ]
    drawn = [(name, page, path, keys) for name, of, paths, keys in more for page, path in product(of, paths)]
    return [
        *((_loss(condition.path.loss), condition) for condition in conditions(measured_pages())),
        *(
            (name, Condition(CONDITIONS + number, page, path, keep_alive=True, keys=keys))
            for number, (name, page, path, keys) in enumerate(drawn)
        ),
    ]


def opened(load: PlannedLoad) -> LoadedPage:
    """The page of a load, with the scheme of the load."""
    return under(load.scheme, open_page(load.page))


def counted(journal: Path) -> list[Line]:
    """The loads that succeeded with a relay that was in time."""
    return [line for line in read(journal) if is_good(line)]


def compared(journal: Path) -> Iterator[tuple[Case, str, float, float]]:
    """For each case and mode, both PLTs of the kernel, ms. Cases without all four loads are left out."""
    found = {(line["load_id"], line["again"]): float(line["plt_ms"]) for line in counted(journal)}
    for case in cases():
        names = {mode: case[1].planned(mode, 0, "emulate").load_id for mode in MODES}
        if all((name, again) in found for name, again in product(names.values(), (False, True))):
            for mode, name in names.items():
                yield case, mode, found[name, False], found[name, True]


def simulated(measured: Iterable[tuple[Case, str, float, float]]) -> Iterator[Load]:
    """Adds the PLT on the virtual clock to each measured load."""
    simulator = Simulator()
    for (name, condition), mode, kernel_ms, again_ms in measured:
        planned = condition.planned(mode, 0, "simulate")
        record = simulator.load(planned, opened(planned))
        yield Load(
            condition.number,
            name,
            condition.page,
            _name(condition.path),
            mode,
            round(kernel_ms, 2),
            round(again_ms, 2),
            round(plt_ms(record), 2),
        )


def simulated_again(loads: Sequence[Load]) -> list[Load]:
    """The committed loads, with the PLTs that the simulator gives now."""
    by_number = {condition.number: (name, condition) for name, condition in cases()}
    return list(
        simulated((by_number[load.number], load.mode, load.kernel_ms, load.again_ms) for load in loads)
    )


def write(loads: Iterable[Load]) -> None:
    """Writes the table of loads."""
    with LOADS.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(field.name for field in fields(Load))
        table.writerows(asdict(load).values() for load in loads)


def read_loads() -> list[Load]:
    """Reads the table of loads back."""
    with LOADS.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines, delimiter="\t")
        next(rows)
        return [
            Load(int(number), name, page, path, mode, float(kernel), float(again), float(simulated))
            for number, name, page, path, mode, kernel, again, simulated in rows
        ]


def document(text: str) -> str:
    """The document with a new table."""
    return replace_between(text, BEGIN, END, table(read_loads()))


def table(loads: Sequence[Load]) -> Iterator[str]:
    """The table: simulator against kernel, and kernel against itself, for each set of conditions."""
    columns = ["PLT error, median", "p95", "largest", "improvement error, median", "p95", "same sign"]
    yield f"| conditions | loads | | {' | '.join(columns)} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in ["all", *dict.fromkeys(load.set for load in loads)]:
        some = [load for load in loads if name in ("all", load.set)]
        kernel, again, ours = (
            np.array([getattr(load, f"{which}_ms") for load in some]).reshape(-1, len(MODES))
            for which in ("kernel", "again", "simulated")
        )
        clear = np.minimum(_gain(kernel) * np.sign(_gain(again)), np.abs(_gain(again))) > CLEAR
        yield _row(f"{name} | {len(some)} | simulator", ours, kernel, clear)
        yield _row(" | | kernel again", again, kernel, None)


def _row(name: str, tried: Array, kernel: Array, clear: NDArray[np.bool_] | None) -> str:
    error = 100 * np.abs(tried / kernel - 1)
    points = 100 * np.abs(_gain(tried) - _gain(kernel))
    plt = [f"{value:.2f} %" for value in (np.median(error), np.percentile(error, 95), error.max())]
    gain = [f"{value:.2f} points" for value in (np.median(points), np.percentile(points, 95))]
    sign = "-"
    if clear is not None and clear.any():
        same = np.sign(_gain(tried)) == np.sign(_gain(kernel))
        sign = f"{100 * same[clear].mean():.1f} % of {clear.sum()}"
    return f"| {' | '.join([name, *plt, *gain, sign])} |"


def _gain(plts_ms: Array) -> Array:
    """The improvement of each pair of loads, as a signed fraction."""
    gain: Array = 1 - plts_ms[:, 1] / plts_ms[:, 0]
    return gain


def _loss(share: float) -> str:
    return f"grid, {100 * share:g} % loss" if share else "grid, no loss"


def _name(path: NetworkPath) -> str:
    rates = "/".join(f"{(bps or 0) / 1e6:g}" for bps in (path.down_bps, path.up_bps))
    return f"{path.topology} {path.rtt_ms:g} ms {rates} Mbit/s"


if __name__ == "__main__":
    sys.exit(main())
