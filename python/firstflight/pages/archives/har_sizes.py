"""Sizes on the wire of a HAR's entry: tools disagree on what the standard's fields mean.

Request: `headersSize` (or WebPageTest's `_bytesOut`), else its fields as HTTP/1.1 writes them, else what is
typical; and the body.

Response header: `headersSize`, else its fields as HTTP/1.1 writes them, else what is typical. HTTP/2 and
HTTP/3 compress headers: their size here is what HTTP/1.1 would send.

Response body, the first that is known:

1. `Content-Length`, unless more came or less than that was transferred (then it belongs to another response).
2. `bodySize`; less the header where it equals `_transferSize` (Chrome) or exceeds `content.size` by a header
   (Firefox): there it counts both.
3. `_transferSize` less the header.
4. WebPageTest's `_objectSize`, or `_bytesIn` less the header.
5. `content.size` less `content.compression`: the decoded size where no compression is given.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from firstflight.pages.archives.fields import size_of, status_line, value_of
from firstflight.pages.archives.har_fields import Node, node, number, pairs, positive, text
from firstflight.pages.sizes import TYPICAL_HEADER, request_sizes

# Longer headers no server accepts or sends: the field is not what it says.
_MOST_HEADER = 1 << 20


def request_bytes(entry: Node, url: str) -> int:
    """Request line, fields and body, bytes."""
    request = node(entry, "request")
    body = positive(request, "bodySize") or positive(node(request, "postData"), "size") or 0.0
    header = _header(positive(request, "headersSize") or positive(entry, "_bytesOut"))
    if header is None:
        header = _from_fields(request, url)
    return header + int(min(body, 1 << 30))


def header_bytes(entry: Node, status: int) -> int:
    """Status line and fields of the response, bytes."""
    response = node(entry, "response")
    header = _header(positive(response, "headersSize"))
    fields = pairs(response, "headers")
    if header is None:
        header = size_of(status_line(status), fields) if fields else TYPICAL_HEADER
    return min(header, _MOST_HEADER)


def body_bytes(entry: Node, header: int) -> int:
    """Body of the response, bytes on the wire as encoded. By the rules of this module."""
    response = node(entry, "response")
    content = node(response, "content")
    moved = positive(response, "_transferSize")
    size = positive(response, "bodySize")
    length = _length(response)
    most = moved or size
    if length and (most is None or length <= most):
        return length
    if size is not None:
        both = size == moved or (moved is None and _exceeds_by(size, positive(content, "size"), header))
        return max(round(size) - (header if both else 0), 0)
    if moved is not None:
        return max(round(moved) - header, 0)
    if (found := positive(entry, "_objectSize")) is not None:
        return round(found)
    if (found := positive(entry, "_bytesIn")) is not None:
        return max(round(found) - header, 0)
    decoded = positive(content, "size") or 0.0
    return max(round(decoded - (number(content, "compression") or 0.0)), 0)


def _length(response: Node) -> int | None:
    value = value_of(pairs(response, "headers"), "content-length").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 15 else None


def _exceeds_by(size: float, decoded: float | None, header: int) -> bool:
    return decoded is not None and abs(size - decoded - header) <= 2


def _header(size: float | None) -> int | None:
    return round(size) if size is not None and size <= _MOST_HEADER else None


def _from_fields(request: Node, url: str) -> int:
    fields = pairs(request, "headers")
    if not fields:
        return request_sizes([url])[0]
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = [] if value_of(fields, "host") else [("Host", parts.netloc)]
    return size_of(f"{text(request, 'method') or 'GET'} {target} HTTP/1.1", [*host, *fields])
