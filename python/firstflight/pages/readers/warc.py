"""WARC files: bodies and header fields as they were on the wire, without times.

The records of a WARC file (ISO 28500) are read with warcio, in bounded memory.

This module adds what warcio leaves to its caller. Lines and headers have a maximum length. A file that is one
gzip stream is read like one with a stream per record. A record that is shorter than it declares is an error.

Why not FastWARC (2.0.1, tried on two small damaged WARCs): at 566 of 597 places where a small WARC was cut
off it ended without an error, it panics on a stream that cannot seek, and warcio is needed for writing
anyway.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, cast

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.limitreader import LimitReader  # type: ignore[import-untyped]
from warcio.recordloader import ArcWarcRecord  # type: ignore[import-untyped]

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.bodies import BodyStore, Budget
from firstflight.pages.exchange import Exchange
from firstflight.pages.readers.untimed import Asked, Recorded, recorded_exchange, start_of, untimed_page
from firstflight.pages.urls import normal_url, usable_url

Opener = Callable[[], AbstractContextManager[IO[bytes]]]
_MOST_LISTED = 1 << 20


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in an archive's list: its first URL, and when it was recorded (ISO 8601, may be empty)."""

    url: str
    date: str = ""


@dataclass(slots=True)
class Collected:
    """The contents of the files of one archive.

    Attributes:
        exchanges: In the order of the recording.
        dates: `WARC-Date` of each exchange.
        ids: `WARC-Record-ID` of each exchange.
        pages: Pages that the archive lists.
        notes: Counts of what was left out.
        originals: Responses with a body, by digest and by URL; a later one of a URL replaces an earlier one.
        revisits: Index, digest and URL of each response whose body is in another record, with the original
            that was known at that time.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    pages: list[ListedPage] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    originals: dict[str, Exchange] = field(default_factory=dict)
    revisits: list[tuple[int, str, str, Exchange | None]] = field(default_factory=list)

    def whole(self) -> Collected:
        """Adds the bodies of revisits once all files are read: the original may be in a later file."""
        for index, digest, url, known in self.revisits:
            original = known or self.originals.get(digest) or self.originals.get(url)
            self.exchanges[index] = _revisited(self.exchanges[index], original)
        return self


def open_warc(path: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the WARC at `path`; without `url`, the first.

    Raises:
        PageInputError: The file is not a WARC or is damaged, or there is no such page.
    """
    try:
        collected = Collected()
        collect(lambda: path.open("rb"), str(path), BodyStore(str(path)), collected)
        collected.whole()
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        raise PageInputError(problem, "check the path and its permissions") from None
    return page_of_records(collected, str(path), f"WARC {path.name}", url)


def collect(opener: Opener, place: str, store: BodyStore, into: Collected) -> None:
    """Reads one WARC file twice: first the requests, then the responses with their bodies.

    Raises:
        PageInputError: The file is damaged.
    """
    requests = _Requests()
    with opener() as file:
        for record in records(file, place, store.budget):
            if record.type == "request":
                requests.add(record)
            elif record.type == "warcinfo" and not into.pages:
                into.pages += _pages_of_info(record)
    with opener() as file:
        for record in records(file, place, store.budget):
            if record.type in ("response", "resource", "revisit"):
                _add(record, requests, store, into)


def page_of_records(collected: Collected, place: str, source: str, wanted: str) -> LoadedPage:
    """The page `wanted`, or the first of `collected`. Several pages are separated by their times.

    Raises:
        PageInputError: There is no such page.
    """
    begins = normal_url(wanted) or (normal_url(collected.pages[0].url) if collected.pages else "")
    exchanges = _within(collected, begins)
    if not exchanges:
        raise PageInputError(f"{place}: no answer of a web server in it", "record the page again")
    start = start_of(exchanges, place, wanted=wanted, listed=begins, recorded=True)
    return untimed_page(exchanges, start, source, collected.notes)


def _within(collected: Collected, begins: str) -> list[Exchange]:
    """Exchanges from the date of the page to that of the next page."""
    dated = sorted((page.date, normal_url(page.url)) for page in collected.pages if page.date)
    own = next((date for date, url in dated if url == begins), "")
    later = next((date for date, _ in dated if own and date[:19] > own[:19]), "")
    if len(dated) < 2 or not own:
        return collected.exchanges
    kept = [
        exchange
        for exchange, date in zip(collected.exchanges, collected.dates, strict=True)
        if own[:19] <= date[:19] and (not later or date[:19] < later[:19])
    ]
    collected.notes["answers of other pages in the archive"] += len(collected.exchanges) - len(kept)
    return kept


class _Requests:
    """Requests by the response that they belong to, or by their URL."""

    def __init__(self) -> None:
        self._by_id: dict[str, Asked] = {}
        self._by_url: dict[str, list[Asked]] = {}

    def add(self, record: Record) -> None:
        """Stores a request record."""
        size = sum(len(piece) for piece in record.body)
        asked = Asked(record.first_line.partition(" ")[0].upper(), record.first_line, record.http, size)
        for name in ("warc-record-id", "warc-concurrent-to"):
            if record.fields.get(name):
                self._by_id[record.fields[name]] = asked
        self._by_url.setdefault(record.uri, []).append(asked)

    def of(self, record: Record) -> Asked | None:
        """The request of a response."""
        waiting = self._by_url.get(record.uri, [])
        for name in ("warc-record-id", "warc-concurrent-to"):
            if (asked := self._by_id.get(record.fields.get(name, ""))) is not None:
                if asked in waiting:
                    waiting.remove(asked)
                return asked
        return waiting.pop(0) if waiting else None


def _add(record: Record, requests: _Requests, store: BodyStore, into: Collected) -> None:
    url, asked = normal_url(record.uri), requests.of(record)
    if not url.startswith("http"):
        return
    recorded = _recorded(record, url)
    if recorded is None or not usable_url(url) or (asked is not None and not _is_method(asked.method)):
        into.notes["answers whose URL, method or status browsers do not use"] += 1
        return
    exchange = recorded_exchange(recorded, asked, store)
    digest = record.fields.get("warc-payload-digest", "")
    if record.type == "revisit":
        target = normal_url(record.fields.get("warc-refers-to-target-uri", "") or url)
        known = into.originals.get(digest) or into.originals.get(target)
        into.revisits.append((len(into.exchanges), digest, target, known))
    elif exchange.body is not None:
        for key in (digest, url):
            if key:
                into.originals[key] = exchange
    into.exchanges.append(exchange)
    into.dates.append(record.fields.get("warc-date", ""))
    into.ids.append(record.fields.get("warc-record-id", ""))


def _recorded(record: Record, url: str) -> Recorded | None:
    if record.type == "resource" or not record.http:
        mime = record.fields.get("content-type", "") if record.type == "resource" else ""
        return Recorded(url, 200, "HTTP/1.1 200 OK", [("Content-Type", mime)], record.body)
    words = record.first_line.split()
    status = int(words[1]) if len(words) > 1 and words[1].isdecimal() and len(words[1]) == 3 else 0
    if not 200 <= status <= 599:
        return None
    return Recorded(url, status, record.first_line, record.http, record.body)


def _revisited(exchange: Exchange, original: Exchange | None) -> Exchange:
    """A response whose body is in another record, with that body and its content coding."""
    if original is None or not exchange.has_content:
        return exchange
    return replace(
        exchange,
        status=200 if exchange.status == 304 else exchange.status,
        mime=exchange.mime or original.mime,
        headers=original.headers,
        header_bytes=original.header_bytes,
        body_bytes=original.body_bytes,
        body=original.body,
        text=original.text,
    )


def _pages_of_info(record: Record) -> list[ListedPage]:
    """Pages in the `json-metadata` of a `warcinfo`, as Webrecorder writes them."""
    text = _text(record.body)
    line = next((line for line in text.splitlines() if line.startswith("json-metadata:")), "")
    try:
        found = json.loads(line.partition(":")[2])
    except (ValueError, RecursionError):
        return []
    pages = found.get("pages") if isinstance(found, dict) else None
    return listed_pages(pages if isinstance(pages, list) else [])


def listed_pages(found: Iterable[object]) -> list[ListedPage]:
    """The pages in a list of JSON objects with `url` and `ts` (or `timestamp`)."""
    pages = []
    for item in found:
        if isinstance(item, dict) and isinstance(item.get("url"), str):
            date = item.get("ts") or item.get("timestamp")
            pages.append(ListedPage(item["url"], date if isinstance(date, str) and "-" in date else ""))
    return pages


def _is_method(method: str) -> bool:
    return method.isascii() and method.isalpha()


def _text(body: Iterable[bytes]) -> str:
    text = bytearray()
    for piece in body:
        if len(text) < _MOST_LISTED:
            text += piece
    return text.decode("utf-8", errors="replace")


_MOST_LINE = 1 << 18
_MOST_HEADER = 1 << 20
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        number: Its number in the file, from 1.
        type: `response`, `request`, `resource`, `revisit`, `warcinfo`...
        fields: Fields of the WARC header.
        first_line: First line of the HTTP message in it, or empty.
        http: Header fields of the HTTP message in it.
        body: The rest, piece by piece; must be read before the next record.
    """

    number: int
    type: str
    fields: dict[str, str]
    first_line: str
    http: list[tuple[str, str]]
    body: Iterator[bytes]

    @property
    def uri(self) -> str:
        """The URI that the record is about."""
        return self.fields.get("warc-target-uri", "").strip("<>")


def records(file: IO[bytes], place: str, budget: Budget) -> Iterator[Record]:
    """Reads the records of `file`, gzipped or not.

    Args:
        file: The WARC.
        place: The file, named in errors.
        budget: The budget of the archive; every record counts, read or not.

    Raises:
        PageInputError: It is not a WARC, a record is damaged or incomplete, or the budget is exceeded.
    """
    number = 0
    try:
        source = _Records(_plain(file, budget))
        while (found := source.next()) is not None:
            number += 1
            budget.member()
            yield _record(found, number, f"{place}: record {number}")
    except PageInputError:
        raise
    except Exception as error:  # warcio raises any exception, depending on its input
        raise _refusal(f"{place}: record {number or 1}", error) from None
    if not number:
        raise PageInputError(f"{place}: no WARC record in it", "record the page again")


class _DamagedError(Exception):
    """A record contradicts its header."""


def _refusal(place: str, error: Exception) -> PageInputError:
    words = "".join(c for c in str(error).strip() if c.isprintable())[:160] or type(error).__name__
    return PageInputError(f"{place}: {words}", "the file is not a WARC, or it is damaged or truncated")


class _Lines(BufferedReader):  # type: ignore[misc]
    """A reader with a maximum length for lines, and for all lines of a header together."""

    header_bytes = 0

    def readline(self, length: int | None = None) -> bytes:
        line: bytes = super().readline(min(length or _MOST_LINE, _MOST_LINE))
        self.header_bytes += len(line)
        if self.header_bytes > _MOST_HEADER or (len(line) == _MOST_LINE and not line.endswith(b"\n")):
            raise _DamagedError("its header does not end")
        return line


class _Records(ArchiveIterator):  # type: ignore[misc]
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, verify_http=False)
        self.known_format = "warc"
        self._lines = self.reader = _Lines(self.fh)

    def next(self) -> ArcWarcRecord | None:
        """The next record, or None at the end of the file."""
        self._lines.header_bytes = 0
        return next(self.the_iter, None)

    def _consume_blanklines(self) -> tuple[bytes | None, int]:
        """As warcio's method; but raises where that method writes to stderr that a record is too long.

        Threads open pages at the same time and share standard error, so it cannot be redirected.
        """
        empty_bytes = 0
        while line := self.reader.readline():
            if line.rstrip():
                if not empty_bytes:
                    raise _DamagedError("it does not end where its Content-Length says")
                return line, empty_bytes
            empty_bytes += len(line)
        return None, empty_bytes

    def _next_record(self, next_line: str | None) -> ArcWarcRecord:
        """As warcio's method; but an end of file within a header is not the end of the archive."""
        before = self._lines.header_bytes
        try:
            return super()._next_record(next_line)
        except EOFError:
            if next_line or self._lines.header_bytes > before:
                raise _DamagedError("its header does not end") from None
            raise


def _plain(file: IO[bytes], budget: Budget) -> IO[bytes]:
    counted = budget.reader(file)
    zipped = counted.peek(2)[:2] == b"\x1f\x8b"
    return budget.reader(cast("IO[bytes]", _Unzipped(fileobj=counted))) if zipped else counted


class _Unzipped(gzip.GzipFile):
    def read(self, size: int | None = -1) -> bytes:
        """As `GzipFile`; but raises another error, as warcio takes `EOFError` for the archive's end."""
        try:
            return super().read(size)
        except EOFError:
            raise _DamagedError("its gzip stream does not end") from None


def _record(found: ArcWarcRecord, number: int, place: str) -> Record:
    http = found.http_headers
    fields = {name.lower(): value for name, value in found.rec_headers.headers}
    if not fields.get("content-length", "").isdecimal():
        raise _DamagedError("it has no Content-Length")
    return Record(
        number=number,
        type=found.rec_type or "",
        fields=fields,
        first_line=f"{http.protocol} {http.statusline}" if http else "",
        http=list(http.headers) if http else [],
        body=_pieces(found.raw_stream, place),
    )


def _pieces(stream: LimitReader, place: str) -> Iterator[bytes]:
    try:
        while data := stream.read(_PIECE):
            yield data
        if stream.limit:
            raise _DamagedError(f"{stream.limit} bytes of it are missing")
    except PageInputError:
        raise
    except Exception as error:  # from gzip, zlib or the system
        raise _refusal(place, error) from None
