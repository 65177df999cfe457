"""The `client/` folder of the original experiment: a log per page load, in folders `DELAY-RUN-tfo-MODE`.

The folder's name has the one-way delay of the servers' links, ms, the run (0 or 1) and whether TFO was on. A
log's name is the page's URL, from which all but letters, digits and `-_.() ` were removed, so the URL is not
known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import PageInputError, UsageError
from firstflight.pages.readers.fetchlog import MOST_BYTES, FetchLog, Transaction, parse_fetchlog

HOME_DELAY_MS = 1.0
"""`--delayhome`, delay of the client's own link, each way. The original's tables leave it out of the RTT."""

_FOLDER = re.compile(r"(\d{1,6})-(\d{1,3})-tfo-([01])")
_CRASH = re.compile(r"Received signal \d+|Segmentation fault|stack trace", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CourseLoad:
    """One page load of the original experiment.

    Attributes:
        file: Its log.
        page: The page's name, as the log's.
        delay_ms: One-way delay of the servers' links.
        run: 0 or 1.
        tfo: Whether TFO was on.
        log: The parsed log; `None`: the browser died before it wrote one.
        lines: The log's lines.
        problem: Why there is no `log`.
    """

    file: Path
    page: str
    delay_ms: float
    run: int
    tfo: bool
    log: FetchLog | None
    lines: tuple[str, ...]
    problem: str = ""

    @property
    def label_ms(self) -> float:
        """The RTT that the original's table has."""
        return 2 * self.delay_ms

    @property
    def rtt_ms(self) -> float:
        """The RTT of packets."""
        return 2 * (self.delay_ms + HOME_DELAY_MS)

    @property
    def plt_ms(self) -> float | None:
        """The end of the last transaction in the log, ms, as `plot.py` computes it."""
        return self.log.transactions[-1].end_ms if self.log else None

    @property
    def start_ms(self) -> float | None:
        """The start of the first transaction, ms: until then the browser was starting."""
        return min(transaction.start_ms for transaction in self.log.transactions) if self.log else None

    @property
    def crash_line(self) -> int | None:
        """The line of the log that says that the browser died."""
        return next((number for number, line in enumerate(self.lines, 1) if _CRASH.search(line)), None)

    def line_of(self, transaction: Transaction) -> int | None:
        """The line of a transaction."""
        row = re.compile(rf"\s*{transaction.start_ms:.3f} \|.*\| {re.escape(transaction.url)}\s*")
        return next((number for number, line in enumerate(self.lines, 1) if row.fullmatch(line)), None)


@dataclass(frozen=True, slots=True)
class CourseCell:
    """All loads of one page at one delay.

    Attributes:
        page: The page.
        label_ms: The RTT that the original's table has.
        off: Loads without TFO, by run.
        on: Loads with TFO, by run.
    """

    page: str
    label_ms: float
    off: dict[int, CourseLoad]
    on: dict[int, CourseLoad]

    @property
    def subject(self) -> str:
        """Page and RTT, for people."""
        return f"{self.page} {self.label_ms:g} ms"

    @property
    def printed(self) -> float | None:
        """The value of `plot.py` with its sign: run 0 without TFO against run 1 with TFO, percent."""
        return change(self.plt(tfo=False, run=0), self.plt(tfo=True, run=1))

    @property
    def matched(self) -> float | None:
        """The mean without TFO against the mean with TFO, over runs that have both, percent."""
        runs = [run for run in self.off if self.plt(tfo=False, run=run) and self.plt(tfo=True, run=run)]
        means = (sum(self.plt(tfo=tfo, run=run) or 0.0 for run in runs) for tfo in (False, True))
        return change(*means) if runs else None

    @property
    def null(self) -> float | None:
        """The improvement of the second run over the first, both without TFO, percent."""
        return change(self.plt(tfo=False, run=0), self.plt(tfo=False, run=1))

    def plt(self, *, tfo: bool, run: int) -> float | None:
        """Page load time of one load, ms; None if there is none."""
        load = (self.on if tfo else self.off).get(run)
        return load.plt_ms if load else None

    def loads(self) -> list[CourseLoad]:
        """Its loads, those without TFO first."""
        return [*self.off.values(), *self.on.values()]


def is_course_run(folder: Path) -> bool:
    """Whether a folder is the original's `client/`, or contains it."""
    return _client(folder) is not None


def read_course_run(folder: Path) -> list[CourseCell]:
    """Reads every log under `client/`, pages in order of name, RTTs from the longest, as the original prints.

    Raises:
        UsageError: There are no logs, or one cannot be read.
    """
    client = _client(folder)
    files = [file for sub in sorted(client.iterdir()) for file in sorted(sub.glob("*"))] if client else []
    loads = [load for file in files if (load := _load(file))]
    if not loads:
        raise UsageError(f"{folder}: no logs of page loads", "give the folder client/ that run.sh made")
    cells: dict[tuple[str, float], list[CourseLoad]] = defaultdict(list)
    for load in loads:
        cells[load.page, load.label_ms].append(load)
    order = sorted(cells, key=lambda key: (key[0], -key[1]))
    return [_cell(*key, cells[key]) for key in order]


def change(before: float | None, after: float | None) -> float | None:
    """(before - after) / before, percent; `None` if one is missing."""
    return 100 * (before - after) / before if before and after is not None else None


def line_of(load: CourseLoad, text: str) -> int | None:
    """The first line of a load's log that contains `text`; `None` if there is none."""
    return next((number for number, line in enumerate(load.lines, 1) if text in line), None)


def run_of(load: CourseLoad) -> str:
    """The name of the load in its cell: ``run 0 without TFO``."""
    return f"run {load.run} {'with' if load.tfo else 'without'} TFO"


def _client(folder: Path) -> Path | None:
    candidates = [folder, folder / "client"]
    return next((path for path in candidates if path.is_dir() and any(map(_is_cell, path.iterdir()))), None)


def _is_cell(path: Path) -> bool:
    return path.is_dir() and _FOLDER.fullmatch(path.name) is not None


def _cell(page: str, label_ms: float, loads: list[CourseLoad]) -> CourseCell:
    off, on = ({load.run: load for load in loads if load.tfo is tfo} for tfo in (False, True))
    return CourseCell(page, label_ms, off, on)


def _load(file: Path) -> CourseLoad | None:
    named = _FOLDER.fullmatch(file.parent.name)
    if not named or not file.is_file():
        return None
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", "check its permissions") from None
    log, problem = None, ""
    try:
        log = parse_fetchlog(text, place=str(file))
    except PageInputError as error:
        problem = error.message.removeprefix(f"{file}: ")
    delay_ms, run, tfo = float(named[1]), int(named[2]), named[3] == "1"
    return CourseLoad(file, file.name, delay_ms, run, tfo, log, tuple(text.splitlines()), problem)
