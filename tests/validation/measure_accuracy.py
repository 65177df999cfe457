"""Loads every cell of the grid on the real kernel and writes the medians to the committed baseline.

    python tests/validation/measure_accuracy.py JOURNAL [--jobs 12]

This takes most of an hour. The journal has a line per load. Started again with the same journal, the program
makes the loads that are missing. It also repeats those of pages that an importer now reads differently.
"""

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from accuracy_baseline import BASELINE, Measured, write
from accuracy_grid import MODES, REPEATS, Condition, conditions, measured_pages, open_page

from firstflight.analysis.statistics import improvement
from firstflight.engines.emulate import Emulator
from firstflight.experiment.catalogue import fingerprint
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage

Line = dict[str, Any]
"""One load in the journal."""

_ATTEMPTS = 3


def main() -> int:
    """Measures the loads that the journal lacks, then writes the baseline."""
    parser = argparse.ArgumentParser(description="Measure the grid on the real kernel.")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--jobs", type=int, default=12)
    options = parser.parse_args()
    grid = conditions(measured_pages())
    pages = {name: open_page(name) for name in {condition.page for condition in grid}}
    digests = {name: fingerprint(loaded.page) for name, loaded in pages.items()}
    made = {line["load_id"] for line in read(options.journal) if counts(line, digests)}
    todo = [load for load in every_load(grid) if load.load_id not in made]
    engine = Emulator()
    with ThreadPoolExecutor(options.jobs) as pool, options.journal.open("a") as journal:
        lines = pool.map(lambda load: measure(engine, load, pages[load.page]), todo)
        for number, line in enumerate(lines, 1):
            line["digest"] = digests[line["page"]]
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            sys.stderr.write(f"\r{number} of {len(todo)}")
    counted = [line for line in read(options.journal) if counts(line, digests)]
    write(BASELINE, summarise(grid, counted))
    return 0


def counts(line: Line, digests: dict[str, str]) -> bool:
    """Whether a load succeeded, with a relay in time, and loaded the page as the importers read it now."""
    return is_good(line) and line["digest"] == digests[line["page"]]


def is_good(line: Line) -> bool:
    """Whether a load succeeded with a relay that was in time."""
    return line["status"] == "ok" and not line["relay"].get("late")


def every_load(grid: list[Condition]) -> list[PlannedLoad]:
    """All loads.

    Each repeat covers the whole grid before the next, so that an interrupted run is a smaller run.
    """
    return [
        condition.planned(mode, repeat, "emulate")
        for repeat in range(max(REPEATS.values()))
        for condition in grid
        if repeat < REPEATS[condition.path.loss]
        for mode in MODES
    ]


def measure(engine: Emulator, load: PlannedLoad, page: LoadedPage) -> Line:
    """Makes one load, at most `_ATTEMPTS` times while its relay is late."""
    record = engine.load(load, page)
    for _ in range(_ATTEMPTS - 1):
        if not record["relay"].get("late"):
            break
        record = engine.load(load, page)
    row = record["load"]
    return {
        "load_id": load.load_id,
        "page": load.page,
        **{key: row[key] for key in ("plt_ms", "status", "error", "failed_requests", "connections")},
        "relay": record["relay"],
    }


def summarise(grid: list[Condition], lines: list[Line]) -> list[Measured]:
    """A row for every condition with at least two pairs of successful loads."""
    loads = {line["load_id"]: line for line in lines}
    return [row for condition in grid if (row := _row(condition, loads))]


def _row(condition: Condition, loads: dict[str, Line]) -> Measured | None:
    repeats = range(REPEATS[condition.path.loss])
    names = [[condition.planned(mode, repeat, "emulate").load_id for mode in MODES] for repeat in repeats]
    pairs = [(loads[tcp], loads[tfo]) for tcp, tfo in names if tcp in loads and tfo in loads]
    if len(pairs) < 2:
        return None
    tcp_ms, tfo_ms = ([pair[mode]["plt_ms"] for pair in pairs] for mode in (0, 1))
    gain = improvement(tcp_ms, tfo_ms)
    assert gain["point"] is not None and gain["low"] is not None and gain["high"] is not None
    return Measured(
        number=condition.number,
        page=condition.page,
        topology=condition.path.topology,
        rtt_ms=condition.path.rtt_ms,
        down_bps=condition.path.down_bps or 0,
        loss=condition.path.loss,
        keep_alive=condition.keep_alive,
        n=len(pairs),
        tcp_ms=statistics.median(tcp_ms),
        tfo_ms=statistics.median(tfo_ms),
        improvement=gain["point"],
        low=gain["low"],
        high=gain["high"],
        late_ms=max(load["relay"]["late_max_ms"] for pair in pairs for load in pair),
    )


def read(journal: Path) -> list[Line]:
    """The lines of the journal; an empty list if there is no journal yet."""
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


if __name__ == "__main__":
    sys.exit(main())
