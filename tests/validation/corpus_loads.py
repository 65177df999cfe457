"""Loads every recording in a folder once with the built-in loader, and prints Markdown tables of the results.

    python tests/validation/corpus_loads.py FOLDER [--jobs 4]

Path: RTT 20 ms, 50 Mbit/s both ways, plain TCP, the recorded schemes. Columns:

- recorded: recorded requests;
- in the page: those of them in the page (the importer notes why it left out the others);
- served: answered as recorded, to the last byte;
- failed: not answered so;
- unmatched: requested, but not recorded;
- bytes replayed: bytes of headers and bodies on the wire, as a share of those recorded.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from corpus_table import left_out, specs

from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Record
from firstflight.errors import PageInputError
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as NetworkPath
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage, load_page

_RATE_BPS = 50_000_000
_PATH = NetworkPath("access", 20.0, _RATE_BPS, _RATE_BPS, Queue(packets=1000), 0.0)
_HEADER = "| recording | result | recorded | in the page | served | failed | unmatched | bytes replayed |"


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one recording."""

    file: str
    result: str
    recorded: int = 0
    requests: int = 0
    served: int = 0
    failed: int = 0
    unmatched: int = 0
    recorded_bytes: int = 0
    replayed_bytes: int = 0


def main() -> int:
    """Prints both tables, and each failed request on stderr."""
    parser = argparse.ArgumentParser(description="Load every recording in a folder once.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    emulator = Emulator()
    with ThreadPoolExecutor(options.jobs) as pool:
        found = specs(options.folder)
        rows = list(pool.map(lambda each: row(emulator, options.folder, *each), found))
    sys.stdout.write(summary(rows) + "\n" + table(rows))
    return 0


def row(emulator: Emulator, folder: Path, name: str, spec: str) -> Row:
    """Opens and loads one recording."""
    try:
        (page,) = load_page(spec)
    except PageInputError as error:
        return Row(name, f"refused: {error.message.removeprefix(f'{folder / name}: ')}")
    return loaded(name, page, emulator.load(planned(name, page), page))


def planned(name: str, page: LoadedPage) -> PlannedLoad:
    """One load over plain TCP."""
    return PlannedLoad(name, 0, 0, 1, page.page.name, _PATH, "tcp", 1, scheme="recorded")


def loaded(name: str, page: LoadedPage, record: Record) -> Row:
    """The row of a load. Lists failed requests on stderr."""
    failed = [request for request in record["requests"] if request["error"]]
    for request in failed:
        sys.stderr.write(f"{name}: {request['error']}: {request['url'][:100]}\n")
    load = record["load"]
    requests = len(page.page.resources)
    return Row(
        name,
        load["error"] or "loaded",
        requests + left_out(page),
        requests,
        len(record["requests"]) - len(failed),
        len(failed),
        load["unmatched_requests"] or 0,
        sum(resource.wire_bytes for resource in page.page.resources),
        sum(request["wire_bytes"] or 0 for request in record["requests"]),
    )


def summary(rows: list[Row]) -> str:
    """One row per folder."""
    lines = [_HEADER.replace("recording | result", "recordings | loaded"), "|---" * 8 + "|"]
    for folder in dict.fromkeys(Path(row.file).parent.as_posix() for row in rows):
        own = [row for row in rows if Path(row.file).parent.as_posix() == folder]
        good = sum(row.result == "loaded" for row in own)
        lines.append(_line([folder, f"{good} of {len(own)}", *_counts(own)]))
    return "\n".join(lines) + "\n"


def table(rows: list[Row]) -> str:
    """One row per recording."""
    lines = [_HEADER, "|---" * 8 + "|"]
    lines += [_line([row.file, row.result, *(_counts([row]) if row.requests else [""] * 6)]) for row in rows]
    return "\n".join(lines) + "\n"


def _counts(rows: list[Row]) -> list[str]:
    columns = ("recorded", "requests", "served", "failed", "unmatched")
    sums = [sum(getattr(row, column) for row in rows) for column in columns]
    recorded = sum(row.recorded_bytes for row in rows)
    share = sum(row.replayed_bytes for row in rows) / recorded if recorded else 0.0
    return [*(f"{count:,}" for count in sums), f"{share:.3f}"]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
