"""Replays HARs on a link like the one of the recording, and compares the load times with the recorded ones.

    python tests/validation/recorded_link.py FOLDER [--engine simulate] [--half development] [--without KEY]

WebPageTest notes the link in each HAR. The program prints a Markdown row per page, and the median and 90th
percentile of the relative error.

It replays everything that the recording contains: schemes, versions of HTTP and TLS, distances of origins,
lookups, server times, and what holds requests back. `--without` leaves one of these out. Certificates have a
usual length for public authorities, since recordings do not contain it.

`random.Random(14)` draws one half of the folder's HARs, in order of their names and rounded up: the
development half, whose pages may be examined one by one. For the other half only the summary is shown.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from firstflight.engines.emulate import Emulator
from firstflight.engines.simulate import Simulator
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as NetworkPath
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage, Page, load_page, under
from firstflight.pages.readers.har import entries_of_har

KEYS = ("scheme", "http", "origin_rtt", "lookups", "server_time", "after")
CERTIFICATE_BYTES = 4_000
_MOST_ATTEMPTS = 3
_HALVES = 14
"""The seed that draws the development half."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One page: when its load event fired in the recording and in the replay, ms after the start."""

    name: str
    recorded_ms: float
    replayed_ms: float

    @property
    def error(self) -> float:
        """The relative error of the replay, signed."""
        return self.replayed_ms / self.recorded_ms - 1


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Compare replays with the link they were recorded on.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, help="how many, drawn by --seed; without: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half", choices=("development", "held-out"), help="without: all")
    parser.add_argument("--engine", choices=("emulate", "simulate"), default="emulate")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--without", nargs="*", choices=KEYS, default=[])
    options = parser.parse_args()
    files = chosen(sorted(options.folder.glob("*.har")), options.half, options.pages, options.seed)
    engine = Emulator() if options.engine == "emulate" else Simulator()
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda file: compare(engine, file, frozenset(options.without)), files))
    sys.stdout.write(report(rows, shows_pages=options.half != "held-out"))
    return 0


def chosen(files: list[Path], half: str | None, pages: int | None, seed: int) -> list[Path]:
    """The HARs in one half of `files`, or in all; of these at most `pages`, drawn with `seed`."""
    development = set(random.Random(_HALVES).sample(files, (len(files) + 1) // 2))
    of_half = [file for file in files if half is None or (file in development) == (half == "development")]
    return of_half if pages is None else sorted(random.Random(seed).sample(of_half, min(pages, len(of_half))))


def compare(engine: Emulator | Simulator, file: Path, without: frozenset[str]) -> Compared:
    """Loads one page on its own link, in up to three attempts if the relay is late."""
    (page,) = load_page(str(file))
    path = link(page, file)
    page = under("http" if "scheme" in without else "recorded", page)
    page = unheld(page) if "after" in without else page
    load = PlannedLoad(
        *(file.stem, 0, 0, 1, page.page.name, path, "tcp", 1),
        scheme="http" if "scheme" in without else "recorded",
        post_quantum=False,
        certificate_bytes=CERTIFICATE_BYTES,
        http="1.1" if without & {"scheme", "http"} else "recorded",
        origin_rtt="path" if "origin_rtt" in without else "recorded",
        lookups="lookups" not in without,
        server_time="server_time" not in without,
    )
    for _ in range(_MOST_ATTEMPTS):
        record = engine.load(load, page)
        if not record["relay"].get("late"):
            break
    _, on_load_ms = entries_of_har(file, Counter())
    return Compared(file.stem, on_load_ms or 0.0, record["load"]["plt_ms"] or 0.0)


def link(page: LoadedPage, file: Path) -> NetworkPath:
    """The link on which the page was recorded."""
    noted = page.page.link
    if noted is None:
        raise SystemExit(f"error: {file}: it does not note the link it was recorded over")
    return NetworkPath("access", noted.rtt_ms, noted.down_bps, noted.up_bps, Queue(packets=1000), 0.0)


def unheld(page: LoadedPage) -> LoadedPage:
    """The page without dependencies that delay a request beyond its initiator (`after`)."""
    fields = asdict(page.page)
    for resource in fields["resources"]:
        if resource["initiator"]:
            resource["initiator"]["after"] = None
    return replace(page, page=Page.from_fields(fields))


def report(rows: list[Compared], *, shows_pages: bool = True) -> str:
    """A row per page, if pages may be shown, and a summary of the errors."""
    lines = ["| page | recorded ms | replayed ms | error |", "|---|---|---|---|"]
    shown = rows if shows_pages else []
    lines += [f"| {r.name} | {r.recorded_ms:.0f} | {r.replayed_ms:.0f} | {r.error:+.0%} |" for r in shown]
    errors = sorted(abs(row.error) for row in rows)
    p90 = statistics.quantiles(errors, n=10, method="inclusive")[-1]
    signed = statistics.median(row.error for row in rows)
    lines.append(
        f"\nmedian error {statistics.median(errors):.1%}, p90 {p90:.1%}, median signed {signed:+.1%}"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
