"""The records of a WARC file (ISO 28500), with warcio, in bounded memory.

What warcio leaves to its caller is done here: lines and headers have a longest length, a file that is one
gzip stream is read like one with a stream per record, and a record that is shorter than it says is an
error.

Not FastWARC (2.0.1, tried on two small damaged WARCs): at 566 of 597 places where a small WARC was cut off it
ends without an error, it panics on a stream that cannot seek, and warcio is needed for writing anyway.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]
from warcio.limitreader import LimitReader  # type: ignore[import-untyped]
from warcio.recordloader import ArcWarcRecord  # type: ignore[import-untyped]

from firstflight.errors import PageInputError
from firstflight.pages.bodies import Budget

_MOST_LINE = 1 << 18
_MOST_HEADER = 1 << 20
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        number: Its place in the file, from 1.
        type: `response`, `request`, `resource`, `revisit`, `warcinfo`...
        fields: Its own header.
        first_line: Of the HTTP message in it, or empty.
        http: Header of the HTTP message in it.
        body: The rest, piece by piece; to be read before the next record.
    """

    number: int
    type: str
    fields: dict[str, str]
    first_line: str
    http: list[tuple[str, str]]
    body: Iterator[bytes]

    @property
    def uri(self) -> str:
        """What it is about."""
        return self.fields.get("warc-target-uri", "").strip("<>")


def records(file: IO[bytes], place: str, budget: Budget) -> Iterator[Record]:
    """Reads the records of `file`, gzipped or not.

    Args:
        file: The WARC.
        place: Names it in errors.
        budget: That of the archive; every record counts, read or not.

    Raises:
        PageInputError: It is no WARC, a record is damaged or does not end, or the budget is spent.
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
    except Exception as error:  # warcio raises whatever its input provokes
        raise _refusal(f"{place}: record {number or 1}", error) from None
    if not number:
        raise PageInputError(f"{place}: no WARC record in it", "record the page again")


class _DamagedError(Exception):
    """A record is not what it says."""


def _refusal(place: str, error: Exception) -> PageInputError:
    words = "".join(c for c in str(error).strip() if c.isprintable())[:160] or type(error).__name__
    return PageInputError(f"{place}: {words}", "the file is no WARC, damaged, or its end is missing")


class _Lines(BufferedReader):  # type: ignore[misc]
    """A reader whose lines, and the lines of one header together, have a longest length."""

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
        """As warcio's; but where it writes to stderr that a record goes on, this raises.

        Threads open pages at the same time: standard error, which they share, is not to be redirected.
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
        """As warcio's; but an end inside a header is not the end of the archive."""
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
        """As `GzipFile`; but warcio takes an `EOFError` for the end of the archive."""
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
    except Exception as error:  # gzip's, zlib's and the system's
        raise _refusal(place, error) from None
