"""One recorded HTTP exchange, as its bytes were on the wire, becomes an entry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firstflight.pages.archives.bodies import keep
from firstflight.pages.archives.entry import Entry, needs_text
from firstflight.pages.archives.fields import is_chunked, mime_of, repeatable, size_of, value_of, without
from firstflight.pages.archives.kinds import recorded_kind
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.archives.urls import location_of, normal_url
from firstflight.pages.sizes import request_sizes

_MOST_HEADER = 1 << 20
_MOST_REQUEST = 1 << 30
Fields = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A recorded request: first line, fields and size of its body."""

    method: str
    first_line: str
    fields: Fields
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded answer.

    Attributes:
        url: What was asked for, normal.
        status: 200 to 599.
        first_line: Of its header.
        fields: Of its header.
        body: As recorded.
    """

    url: str
    status: int
    first_line: str
    fields: Fields
    body: Iterable[bytes]


def entry_of(recorded: Recorded, asked: Asked | None, store: BodyStore) -> Entry:
    """The entry of one exchange.

    Args:
        recorded: The answer.
        asked: The request; None where it is not recorded: then a GET of typical size.
        store: Keeps the body.

    Raises:
        PageInputError: The body cannot be kept.
    """
    url, status, fields = recorded.url, recorded.status, recorded.fields
    mime, coding = mime_of(value_of(fields, "content-type")), value_of(fields, "content-encoding")
    chunked = is_chunked(fields)
    scan = needs_text(mime, url)
    kept = keep(store, recorded.body, url[:80], chunked=chunked, encoding=coding, scan=scan)
    headers = repeatable(fields)
    if not kept.coded:
        headers = without(headers, "content-encoding")
    asks = asked.fields if asked else []
    bodiless = status in (204, 205, 304) or (asked is not None and asked.method == "HEAD")
    return Entry(
        url=url,
        method=asked.method if asked else "GET",
        status=status,
        mime=mime,
        request_bytes=_request_bytes(asked, url),
        header_bytes=min(size_of(recorded.first_line, fields), _MOST_HEADER),
        body_bytes=0 if bodiless else kept.file.stat().st_size,
        headers=headers,
        redirect=location_of(url, status, value_of(fields, "location")),
        referer=normal_url(value_of(asks, "referer")),
        kind=recorded_kind((), asks, mime),
        body=None if bodiless else kept.file,
        text=None if bodiless else kept.text,
    )


def _request_bytes(asked: Asked | None, url: str) -> int:
    if asked is None:
        return request_sizes([url])[0]
    header = min(size_of(asked.first_line, asked.fields), _MOST_HEADER)
    return header + min(asked.body_bytes, _MOST_REQUEST)
