"""Normalises and checks URLs: as archives and mirrors write them, and as browsers request them."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import urlsplit

from firstflight import _core
from firstflight.errors import PageInputError
from firstflight.model.page import FORMAT

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def absolute_url(reference: str, base_url: str) -> str:
    """The http or https URL of `reference` in `base_url`, without fragment; '' if it has none."""
    return _core.canonical_url(_scalar(reference), _scalar(base_url)) or ""


def normal_url(url: str) -> str:
    """`url` as browsers request it, without fragment; unchanged if it is not an http or https URL."""
    return _core.canonical_url(_scalar(url)) or url


def location_of(url: str, status: int, location: str) -> str:
    """The absolute URL to which a response redirects, or empty."""
    if not 300 <= status <= 399 or status == 304 or not location.strip():
        return ""
    return absolute_url(location, url)


@lru_cache(maxsize=50_000)
def usable_url(url: str) -> bool:
    """Whether the page model accepts `url`: http or https, a valid host, no user, no fragment."""
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


def check_url(url: str, *, place: str) -> None:
    """Refuses anything but an absolute http or https URL with a valid host.

    Raises:
        PageInputError: It is something else; the message names `place`.
    """
    hint = "write an absolute URL, as 'http://www.example.org/'"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise PageInputError(f"{place}: '{shorten(url)}': {error}", hint) from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise PageInputError(f"{place}: '{shorten(url)}' is not an http or https URL", hint)
    # RFC 1035 section 2.3.4
    if len(host) > 253 or any(len(label) > 63 for label in host.split(".")):
        problem = f"{place}: host name '{shorten(host)}' has {len(host)} characters"
        raise PageInputError(problem, "a host name has at most 253 characters, 63 between two dots")


def shorten(text: str) -> str:
    """`text` shortened to 80 characters for an error message."""
    return text if len(text) <= 80 else text[:80] + "…"


def page_name(url: str) -> str:
    """A short name for the page at `url`: host and path in characters that names may have."""
    plain = _NAME.sub("-", re.sub(r"^https?://", "", url)).strip("-")
    return plain[:100].rstrip("-") or "page"
