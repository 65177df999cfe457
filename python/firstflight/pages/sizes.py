"""Sizes of requests and responses where a recording gives none or only a sum. All in bytes on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

# Accept, User-Agent, Referer, Cookie...: the four pages of the course have 280 to 430 beside request line and
# Host.
TYPICAL_REQUEST_FIELDS = 330
# Status line, Date, Server, Content-Type, Content-Length, Cache-Control...: 300 to 560 on the course's pages.
TYPICAL_HEADER = 350


@dataclass(frozen=True, slots=True)
class Sizes:
    """Per exchange: request, response header and response body, bytes."""

    request_bytes: list[int]
    header_bytes: list[int]
    body_bytes: list[int]


def request_sizes(urls: Sequence[str], total: int = 0) -> list[int]:
    """Size of a GET of each URL.

    Args:
        urls: What is asked for.
        total: The recorded sum; what request lines and Host fields leave of it is shared evenly, since
        cookies and referrers of single requests are not known. 0 or too small for them: typical fields are
        assumed.
    """
    least = [_least(url) for url in urls]
    spare = total - sum(least)
    if spare < 0:
        return [size + TYPICAL_REQUEST_FIELDS for size in least]
    return [size + share for size, share in zip(least, even_shares(spare, len(urls)), strict=True)]


def even_shares(total: int, parts: int) -> list[int]:
    """`total` in `parts` whole parts that differ by at most 1 and sum up to it."""
    share, rest = divmod(total, parts)
    return [share + (index < rest) for index in range(parts)]


def _least(url: str) -> int:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return len(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
