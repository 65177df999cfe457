"""URLs as archives and mirrors write them, as browsers request them, and which of them a page can ask for."""

from __future__ import annotations

import json
from functools import lru_cache

from firstflight import _core
from firstflight.pages.model import FORMAT


def absolute_url(reference: str, base_url: str) -> str:
    """The http or https URL that `reference` means in `base_url`, without fragment; '' if it means none."""
    return _core.canonical_url(_scalar(reference), _scalar(base_url)) or ""


def normal_url(url: str) -> str:
    """`url` as browsers request it, without fragment; unchanged where it is no http or https URL."""
    return _core.canonical_url(_scalar(url)) or url


def location_of(url: str, status: int, location: str) -> str:
    """The absolute URL that a response redirects to, or empty."""
    if not 300 <= status <= 399 or status == 304 or not location.strip():
        return ""
    return absolute_url(location, url)


@lru_cache(maxsize=50_000)
def usable_url(url: str) -> bool:
    """Whether the page model accepts `url`: http or https, a possible host, no user, no fragment."""
    document = {"url": url, "kind": "document", "mime": "", "request_bytes": 0, "header_bytes": 0}
    page = {"format": FORMAT, "name": "x", "resources": [{**document, "body_bytes": 0}]}
    try:
        _core.check_page(json.dumps(page))
    except _core.PageError:
        return False
    return True


def _scalar(text: str) -> str:
    """`text` without lone surrogates, which JSON can hold (WHATWG Infra: a scalar value string)."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
