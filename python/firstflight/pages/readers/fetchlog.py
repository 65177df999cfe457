"""The log that the course's patched Chrome writes with `--stats` (`Paper.fetchlog/*`, `client/*/*`).

Sections `<stats>`, `<resolves>`, `<transactions>`, `<responses>` and `<queries>` are in any order. Messages
of the browser between them, and even within histograms, are ignored. Of a histogram only the count and mean
are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.profile import read_text

MOST_BYTES = 1 << 26
_RENAMED = re.compile(r"\*\*\* Renamed (/.*) to /([0-9a-f]{32}) \*\*\*")
_HISTOGRAM = re.compile(r"Histogram: (\S+) recorded (\d{1,9}) samples, average = ([0-9.]{1,20})")
_SECTIONS = ("stats", "resolves", "transactions", "responses", "queries")
_HEADER = ("strt (ms)", "status ")
_STATUS = {status.phrase.lower(): status.value for status in HTTPStatus} | {
    "moved temporarily": 302,
    "object moved": 302,
    "file not found": 404,
}


@dataclass(frozen=True, slots=True)
class Transaction:
    """One HTTP transaction: request start to the end of its body. Times in ms since the browser was built."""

    start_ms: float
    end_ms: float
    url: str

    @property
    def len_ms(self) -> float:
        """How long it took, ms."""
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True)
class Resolve:
    """One name lookup; `error` is 0 if it succeeded, 1 if only the (empty) cache was queried."""

    start_ms: float
    end_ms: float
    error: int
    host: str


@dataclass(frozen=True, slots=True)
class Response:
    """Status line and type of one response; `redirect` is its target, or empty."""

    status: int
    mime: str
    charset: str
    url: str
    redirect: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Number of samples and their mean."""

    samples: int
    average: float


@dataclass(frozen=True, slots=True)
class FetchLog:
    """A parsed log.

    Attributes:
        renames: Long request targets (path and query) and the md5 file names that replace them.
        stats: Counters `c:name` and timers `t:name`, by name without the prefix.
        resolves: Name lookups, in the log's order.
        transactions: HTTP transactions, in the order they ended.
        responses: Responses, in the order of the transactions.
        histograms: Those with at least one sample, by name.
    """

    renames: dict[str, str] = field(default_factory=dict)
    stats: dict[str, int] = field(default_factory=dict)
    resolves: list[Resolve] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    histograms: dict[str, Histogram] = field(default_factory=dict)


def read_fetchlog(path: Path) -> FetchLog:
    """Reads the log at `path`.

    Raises:
        PageInputError: The file cannot be read or is not such a log.
    """
    return parse_fetchlog(read_text(path, MOST_BYTES), place=str(path))


def parse_fetchlog(text: str, *, place: str = "fetch log") -> FetchLog:
    """Parses a log.

    Args:
        text: The whole log.
        place: The name in errors, e.g. the file.

    Raises:
        PageInputError: A section does not end, a row cannot be parsed, or there are no transactions.
    """
    log = FetchLog()
    for number, section, line in _rows(text, place):
        try:
            _ROWS[section](log, line)
        except ValueError:
            shown = line if len(line) <= 80 else line[:80] + "…"
            problem = f"{place}: line {number}: not a row of <{section}>: '{shown}'"
            raise PageInputError(problem, "fetch the page again: the log is damaged") from None
    if not log.transactions:
        raise PageInputError(
            f"{place}: no transactions", "the browser fetched nothing, or this is not its log"
        )
    return log


def _rows(text: str, place: str) -> Iterator[tuple[int, str, str]]:
    """Line number, section and text of each row; lines outside sections have section ''."""
    section = ""
    for number, line in enumerate(text.split("\n"), start=1):
        name = line.strip().strip("</>")
        if name in _SECTIONS and line.startswith(f"<{name}>"):
            section = name
        elif name == section and section and line.startswith(f"</{name}>"):
            section = ""
        elif line.strip() and not line.startswith(_HEADER):
            yield number, section, line
    # Histograms come last. A log that ends within them has everything that is needed.
    if section not in ("", "queries"):
        hint = "fetch the page again: the browser stopped early"
        raise PageInputError(f"{place}: section <{section}> does not end", hint)


def _outside(log: FetchLog, line: str) -> None:
    if renamed := _RENAMED.search(line):
        log.renames[renamed[1]] = renamed[2]


def _stat(log: FetchLog, line: str) -> None:
    name, value = line.split("\t")
    log.stats[name.removeprefix("c:").removeprefix("t:").removesuffix(":")] = int(value)


def _resolve(log: FetchLog, line: str) -> None:
    start, end, _, error, answer = line.split("|", maxsplit=4)
    host = answer.split("->")[0].strip().rsplit(":", maxsplit=1)[0]
    log.resolves.append(Resolve(_ms(start), _ms(end), int(error), host))


def _transaction(log: FetchLog, line: str) -> None:
    start, end, _, url = line.split("|", maxsplit=3)
    log.transactions.append(Transaction(_ms(start), _ms(end), url.strip()))


def _response(log: FetchLog, line: str) -> None:
    status, mime, charset, rest = (part.strip() for part in line.split("|", maxsplit=3))
    url, redirect = rest.rsplit(" -> ", maxsplit=1)
    target = "" if redirect == "nil" else redirect
    # The status phrase may be anything. Without a redirect the browser used the body, so the status was 200.
    code = _STATUS.get(status.lower(), 302 if target else 200)
    log.responses.append(Response(code, mime, charset, url, target))


def _histogram(log: FetchLog, line: str) -> None:
    found = _HISTOGRAM.match(line)
    if found and int(found[2]):
        log.histograms[found[1]] = Histogram(int(found[2]), float(found[3]))


def _ms(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or abs(value) > 1e9:
        raise ValueError(text)
    return value


_ROWS = {
    "": _outside,
    "stats": _stat,
    "resolves": _resolve,
    "transactions": _transaction,
    "responses": _response,
    "queries": _histogram,
}
