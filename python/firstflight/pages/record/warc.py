"""Exchanges become WARC records (ISO 28500), with warcio: a gzip member each, for readers that jump."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from firstflight.pages.record.har import iso_time
from firstflight.pages.record.wire import Head, Pair, WireExchange


@dataclass(frozen=True, slots=True)
class Indexed:
    """Where in the WARC an answer is.

    Attributes:
        url: What was asked for.
        date: ISO 8601.
        record: Its `WARC-Record-ID`.
        digest: Of its payload.
        offset: First byte of its gzip member.
        length: Bytes of its gzip member.
    """

    url: str
    method: str
    date: str
    mime: str
    status: int
    record: str
    digest: str
    offset: int
    length: int


class _Fields(StatusAndHeaders):  # type: ignore[misc]
    """As they came: warcio would rewrite what is not ASCII."""

    def to_ascii_bytes(self, filter_func: Any = None) -> bytes:  # noqa: ANN401
        """A byte for each character."""
        found: bytes = self.to_bytes(filter_func, "latin-1")
        return found


class Warc:
    """Writes one WARC.

    Args:
        file: Where to.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer = WARCWriter(file, gzip=True, warc_version="1.1")

    def add_info(self, software: str) -> None:
        """Says who wrote it."""
        info = {"software": software, "format": "WARC File Format 1.1"}
        self._writer.write_record(self._writer.create_warcinfo_record("data.warc.gz", info))

    def add(self, pair: Pair, epoch_ms: float) -> Indexed:
        """Writes an answer and its request.

        Args:
            pair: Both; there is an answer.
            epoch_ms: Added to the monotonic clock it gives ms since 1970.
        """
        exchange, posted = pair.exchange, _posted(pair)
        fields = {"WARC-Date": iso_time(epoch_ms + exchange.sent_ms)}
        if pair.fetch and pair.fetch.protocol:
            fields["WARC-Protocol"] = pair.fetch.protocol
        offset = self._file.tell()
        with _payload(exchange) as payload:
            size = exchange.body.stat().st_size if exchange.body_bytes else 0
            stated = {**fields, **_truncated(exchange)}
            answer = self._write(exchange, "response", exchange.answer, payload, size, stated)
        length = self._file.tell() - offset
        record = answer.get_header("WARC-Record-ID")
        linked = {**fields, "WARC-Concurrent-To": record}
        self._write(exchange, "request", exchange.request, BytesIO(posted), len(posted), linked)
        mime = exchange.answer.value("content-type").partition(";")[0].strip() if exchange.answer else ""
        digest = answer.get_header("WARC-Payload-Digest")
        return Indexed(
            exchange.url,
            exchange.method,
            fields["WARC-Date"],
            mime,
            exchange.status,
            record,
            digest,
            offset,
            length,
        )

    def _write(  # noqa: PLR0917
        self,
        exchange: WireExchange,
        kind: str,
        head: Head | None,
        payload: IO[bytes],
        size: int,
        fields: dict[str, str],
    ) -> StatusAndHeaders:
        found = head or Head("", [])
        first, _, rest = found.first_line.partition(" ")
        headers = _Fields(rest, found.fields, protocol=first)
        record = self._writer.create_warc_record(
            exchange.url, kind, payload=payload, length=size, warc_headers_dict=fields, http_headers=headers
        )
        self._writer.write_record(record)
        return record.rec_headers


def _truncated(exchange: WireExchange) -> dict[str, str]:
    if not exchange.whole:
        return {"WARC-Truncated": "disconnect"}
    return {"WARC-Truncated": "unspecified"} if exchange.location and exchange.stated_bytes else {}


def _posted(pair: Pair) -> bytes:
    pieces = pair.fetch.posted if pair.fetch else []
    return b"".join(base64.b64decode(piece) for piece in pieces)


@contextmanager
def _payload(exchange: WireExchange) -> Iterator[IO[bytes]]:
    with exchange.body.open("rb") if exchange.body_bytes else BytesIO() as file:
        yield file
