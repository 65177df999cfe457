"""The common part of archives without times: WARC, WACZ without a HAR, and Mahimahi.

Recorded messages become exchanges. The page's first request is found, and the page is followed from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.assemble import assemble, check_count
from firstflight.pages.bodies import BodyStore, keep
from firstflight.pages.exchange import Exchange, needs_text, recorded_kind
from firstflight.pages.fields import (
    is_chunked,
    mime_of,
    repeatable,
    request_sizes,
    size_of,
    value_of,
    without,
)
from firstflight.pages.times import Times
from firstflight.pages.urls import location_of, normal_url
from firstflight.pages.walk import walk_archive

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
    """A recorded response.

    Attributes:
        url: The normalised URL of the request.
        status: HTTP status, 200 to 599.
        first_line: First line of its header.
        fields: Fields of its header.
        body: The body as recorded.
    """

    url: str
    status: int
    first_line: str
    fields: Fields
    body: Iterable[bytes]


def recorded_exchange(recorded: Recorded, asked: Asked | None, store: BodyStore) -> Exchange:
    """One recorded exchange.

    Args:
        recorded: The response.
        asked: The request; `None`: not recorded, so a GET of typical size is assumed.
        store: Stores the body.

    Raises:
        PageInputError: The body cannot be stored.
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
    return Exchange(
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


def start_of(
    exchanges: list[Exchange], place: str, *, wanted: str = "", listed: str = "", recorded: bool
) -> int:
    """The index of the page's first request.

    Args:
        exchanges: All exchanges of the archive.
        place: The archive, named in errors.
        wanted: The start page that the user named, or empty.
        listed: The start page that the archive lists, or empty.
        recorded: Whether `exchanges` are in the order of their recording. If so, the page begins with the
            first document; else with the document that most requests have as their `Referer`.

    Raises:
        PageInputError: There is no such document.
    """
    if wanted:
        return _named(exchanges, normal_url(wanted), place)
    asked = {exchange.url for exchange in exchanges}
    if normal_url(listed) in asked:
        return _before(exchanges, _first(exchanges, normal_url(listed)))
    documents = [i for i, exchange in enumerate(exchanges) if _is_document(exchange)]
    if not documents:
        problem = f"{place}: no page: none of its {len(exchanges)} answers is an HTML document"
        raise PageInputError(problem, "record a page together with its own document")
    if recorded:
        return _before(exchanges, documents[0])
    named = Counter(exchange.referer for exchange in exchanges)
    best = max(documents, key=lambda i: (named[exchanges[i].url], -i))
    return _before(exchanges, best)


def _is_document(exchange: Exchange) -> bool:
    return exchange.is_html and exchange.status == 200 and exchange.body_bytes > 0 and exchange.kind != "xhr"


def _named(exchanges: list[Exchange], url: str, place: str) -> int:
    for index, exchange in enumerate(exchanges):
        if exchange.url == url:
            return index
    starts = [exchange.url for exchange in exchanges if _is_document(exchange)][:3]
    raise PageInputError(f"{place}: no answer for the start page {url[:80]}", f"it has {', '.join(starts)}")


def _first(exchanges: list[Exchange], url: str) -> int:
    return next(index for index, exchange in enumerate(exchanges) if exchange.url == url)


def _before(exchanges: list[Exchange], document: int) -> int:
    """The first of the redirects that lead to `document`; without redirects `document`."""
    seen = {document}
    first = document
    while True:
        leading = (i for i, e in enumerate(exchanges) if i not in seen and e.redirect == exchanges[first].url)
        index = next(leading, None)
        if index is None:
            return first
        seen.add(index)
        first = index


def untimed_page(exchanges: list[Exchange], start: int, source: str, notes: Counter[str]) -> LoadedPage:
    """The page that begins with `exchanges[start]`; its server, processing and waiting times are zero.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    check_count(len(exchanges), source)
    walked = walk_archive(exchanges, start)
    notes["answers that the page does not ask for"] += walked.left_out
    times = Times.none(len(walked.exchanges))
    return assemble(walked.exchanges, walked.discovery, times, source=source, notes=notes)
