"""URLs as archives write them, and which of them a page can ask for."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import urldefrag, urljoin, urlsplit

from firstflight import _core
from firstflight.pages.model import FORMAT

# Names as DNS, certificates and browsers take them; other characters only a damaged recording has.
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+")


def normal_url(url: str) -> str:
    """`url` without fragment and outer blanks, scheme and host in lower case, with a path."""
    try:
        parts = urlsplit(urldefrag(url.strip()).url.strip())
        return parts._replace(
            netloc=parts.netloc.lower(), path=parts.path or "/" * bool(parts.netloc)
        ).geturl()
    except ValueError:
        return url


def location_of(url: str, status: int, location: str) -> str:
    """The absolute URL that a response redirects to, or empty."""
    if not 300 <= status <= 399 or status == 304 or not location.strip():
        return ""
    try:
        return normal_url(urljoin(url, location.strip()))
    except ValueError:
        return ""


@lru_cache(maxsize=50_000)
def usable_url(url: str) -> bool:
    """Whether the page model accepts `url`: http or https, a possible host, no user, no fragment."""
    if not _has_possible_host(url):
        return False
    document = {"url": url, "kind": "document", "mime": "", "request_bytes": 0, "header_bytes": 0}
    page = {"format": FORMAT, "name": "x", "resources": [{**document, "body_bytes": 0}]}
    try:
        _core.check_page(json.dumps(page))
    except _core.PageError:
        return False
    return True


def _has_possible_host(url: str) -> bool:
    try:
        return bool(_HOST.fullmatch(urlsplit(url).hostname or ""))
    except ValueError:
        return False
