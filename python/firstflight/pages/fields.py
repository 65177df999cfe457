"""Header fields, as recorded and as servers may send them again, and sizes of messages.

Sizes are bytes on the wire. If a recording has none, or only a sum, typical sizes are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import unquote_to_bytes, urlsplit

from firstflight.model.page import Headers

# RFC 9110 section 5.6.2
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 9110 section 7.6.1, and fields of the message framing, which the server sets itself.
_OF_THE_CONNECTION = {
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_CHUNKED = ("Transfer-Encoding", "chunked")
_MOST_VALUE = 16_384
# Accept, User-Agent, Referer, Cookie...: 280 to 430 on the four pages of the course, without the request line
# and Host.
_TYPICAL_REQUEST_FIELDS = 330
# Status line, Date, Server, Content-Type, Content-Length, Cache-Control...: 300 to 560 on the course's pages.
TYPICAL_HEADER = 350
_ESCAPED = "%ESCAPED:\u200b "


def value_of(headers: Iterable[tuple[str, str]], name: str) -> str:
    """The value of the first field `name` (lower case), or empty."""
    return next((value for key, value in headers if key.lower() == name), "")


def repeatable(headers: Iterable[tuple[str, str]]) -> Headers:
    """The fields that a server may send again: well-formed, and not about the connection or the framing.

    `Transfer-Encoding: chunked` is kept, so that the response is sent in chunks again. DevTools joins
    repeated fields with newlines; they become separate fields.
    """
    recorded = list(headers)
    fields = (
        (name, value.strip())
        for name, joined in recorded
        for value in joined.split("\n")
        if _TOKEN.fullmatch(name) and name.lower() not in _OF_THE_CONNECTION and _is_value(value)
    )
    return (*fields, *([_CHUNKED] if is_chunked(recorded) else []))


def is_chunked(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a header says that its body comes in chunks (RFC 9112 section 6.1)."""
    return value_of(headers, "transfer-encoding").lower().rpartition(",")[2].strip() == "chunked"


def unescaped(line: str) -> str:
    """A header line as it was on the wire, one character per byte, from a line of Chromium's net log.

    The log marks a line with characters other than ASCII, and writes it percent-encoded (`NetLogStringValue`
    in net/log/net_log_values.cc).
    """
    if not line.startswith(_ESCAPED):
        return line
    return unquote_to_bytes(line.removeprefix(_ESCAPED)).decode("latin-1")


def without(headers: Headers, name: str) -> Headers:
    """`headers` without the fields `name` (lower case)."""
    return tuple((key, value) for key, value in headers if key.lower() != name)


def size_of(first_line: str, headers: Iterable[tuple[str, str]]) -> int:
    """Bytes of a header in the form of HTTP/1.1; the pseudo-fields of HTTP/2 are in the first line."""
    lines = (name_value for name_value in headers if not name_value[0].startswith(":"))
    fields = (len(f"{name}: {value}\r\n".encode(errors="replace")) for name, value in lines)
    return len(f"{first_line}\r\n\r\n".encode(errors="replace")) + sum(fields)


def status_line(status: int) -> str:
    """The first line of a response."""
    try:
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP/1.1 {status} "


def mime_of(content_type: str) -> str:
    """The MIME type in a `Content-Type`, without parameters; empty if there is none."""
    mime = content_type.partition(";")[0].strip().lower()
    return mime if len(mime) <= 200 and all(" " <= c <= "~" for c in mime) else ""


def _is_value(value: str) -> bool:
    return len(value) <= _MOST_VALUE and all((" " <= c <= "ÿ" and c != "\x7f") or c == "\t" for c in value)


def request_sizes(urls: Sequence[str], total: int = 0) -> list[int]:
    """Size of a GET of each URL.

    Args:
        urls: The requested URLs.
        total: The recorded sum of all requests. The part of it that is not request line or Host is divided
            evenly, since cookies and referrers of single requests are not known. If it is 0 or too small,
            typical fields are assumed.
    """
    least = [_least(url) for url in urls]
    spare = total - sum(least)
    if spare < 0:
        return [size + _TYPICAL_REQUEST_FIELDS for size in least]
    return [size + share for size, share in zip(least, even_shares(spare, len(urls)), strict=True)]


def even_shares(total: int, parts: int) -> list[int]:
    """Divides `total` into `parts` integers that differ by at most 1."""
    share, rest = divmod(total, parts)
    return [share + (index < rest) for index in range(parts)]


def _least(url: str) -> int:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return len(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
