"""Pages without TLS, as the paper's and the course's experiments load them.

Recorded bodies and header fields of an https page are changed to those of the same page over http. References
lose the `s` of their scheme and nothing else changes, so a body gets shorter by one byte per reference. Two
things would keep a browser from loading the result, and are removed: hashes of scripts, which no longer
match, and `upgrade-insecure-requests`. URLs that a script composes are not changed: its requests with https
fail.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from threading import Lock

from firstflight import _core
from firstflight.errors import UsageError
from firstflight.model.page import Headers, LoadedPage, Page, Resource, Spare
from firstflight.pages.bodies import MOST_TEXT_BYTES, BodyStore, CodingError, codings_of, decoded, encoded
from firstflight.pages.fields import value_of

_AT_HAND = 32
"""The most pages that are kept in memory for several schemes."""
# A URL from its scheme to its end. A URL inside its query is not changed, since it is part of what was
# recorded.
_URL = re.compile(rb"https(:(?://|\\/\\/)(?:(?!&quot;|&#34;)[^\s\"'<>()])*)")
_INTEGRITY = re.compile(rb"(?<=[\s\"'])integrity(?=\s*=)")
_UPGRADE = "upgrade-insecure-requests"
_TEXT = re.compile(r"text/|.*(?:javascript|ecmascript|json|xml|html)")
_COOKIE_OF_TLS = re.compile(r"\s*;\s*(?:secure|samesite=none)(?=\s*;|\s*$)", re.IGNORECASE)


class Deviation(Enum):
    """How the load of a page deviates from its recording; the value is the text of the warning."""

    CLEARED = (
        "recorded over https and loaded in the clear, as --scheme http asks: {}; "
        "their TLS handshakes are missing, so Fast Open looks better than it is (--scheme recorded has them)"
    )
    UNSHARED = (
        "recorded over HTTP/2 or HTTP/3 and loaded over HTTP/1.1: {}; browsers have one "
        "connection for each origin there, not up to six: handshakes weigh more here (--http recorded)"
    )
    UNTOLD = (
        "loaded over HTTP/1.1, since the recording does not say what its hosts spoke: {} "
        "(--http 2: one connection for each origin, as browsers have today)"
    )

    def warning(self, names: Sequence[str]) -> str:
        """The warning, given once a run, for pages of these names; at least one."""
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return self.value.format(", ".join(names[:3]) + more)


def under(scheme: str, page: LoadedPage) -> LoadedPage:
    """The page as it is to be loaded.

    Args:
        scheme: `recorded`: unchanged. `http`: every https URL becomes http, in the page and in the bodies and
            header fields of an archive. `https`: every http URL becomes https, in a profile.
        page: The page.

    Raises:
        UsageError: The scheme is `https` and the page is an archive.
    """
    urls = [*page.page.origins, *(spare.url for spare in page.spare)]
    if scheme == "recorded" or all(url.startswith(f"{scheme}:") for url in urls):
        return page
    if scheme == "https":
        return _secure(page)
    bodies, spare = _files(page)
    clear = _fitted(Page.from_json(_core.in_the_clear(page.page.to_json())), bodies)
    headers = {index: clear_headers(names) for index, names in page.headers.items()}
    return replace(page, page=clear, bodies=bodies, headers=headers, spare=spare)


class UnderSchemes:
    """Caches the results of `under` for the pages in use. Thread-safe."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, int], tuple[LoadedPage, LoadedPage]] = OrderedDict()
        self._lock = Lock()

    def __call__(self, scheme: str, page: LoadedPage) -> LoadedPage:
        """The page as it is to be loaded; see `under`."""
        key = (scheme, id(page))
        with self._lock:
            known = self._made.get(key)
            if known is None or known[0] is not page:
                known = self._made[key] = (page, under(scheme, page))
            self._made.move_to_end(key)
            while len(self._made) > _AT_HAND:
                self._made.popitem(last=False)
            return known[1]


def was_cleared(scheme: str, page: LoadedPage) -> bool:
    """Whether `under` removes TLS that the page was recorded with."""
    urls = [*page.page.origins, *(spare.url for spare in page.spare)]
    return scheme == "http" and any(url.startswith("https:") for url in urls)


def was_unshared(scheme: str, page: LoadedPage) -> bool:
    """Whether most of a page was recorded over HTTP/2 or HTTP/3, and `under` keeps its TLS."""
    return page.multiplexed > 1 / 2 and not was_cleared(scheme, page)


def _secure(page: LoadedPage) -> LoadedPage:
    if page.bodies:
        raise UsageError(
            f"scheme: https is for profiles, and {page.page.name} has recorded bodies, which refer to http",
            "make a profile of it: firstflight profile PAGE -o F.json",
        )
    return replace(page, page=Page.from_json(_core.over_tls(page.page.to_json())))


def _files(page: LoadedPage) -> tuple[dict[int, Path], tuple[Spare, ...]]:
    """The files of bodies and of spare responses; a changed body has a new file."""
    if not page.bodies:
        return page.bodies, page.spare
    store, bodies = BodyStore(page.page.name), {}
    for index, file in page.bodies.items():
        resource = page.page.resources[index]
        coding = value_of(page.headers.get(index, ()), "content-encoding")
        bodies[index] = _clear(file, resource.mime, coding, resource.url, store)
    return bodies, tuple(
        replace(spare, file=_clear(spare.file, spare.mime, "", spare.url, store)) for spare in page.spare
    )


def _clear(file: Path, mime: str, coding: str, url: str, store: BodyStore) -> Path:
    """The file of a body without https references; a new file if the body changes."""
    if not is_text(mime) or file.stat().st_size > MOST_TEXT_BYTES:
        return file
    body = file.read_bytes()
    clear = clear_body(body, coding)
    return file if clear == body else store.add([clear], url)


def _fitted(page: Page, bodies: dict[int, Path]) -> Page:
    """The page with the sizes of its changed bodies."""
    sizes = [resource.body_bytes for resource in page.resources]
    for index, file in bodies.items():
        sizes[index] = file.stat().st_size

    def fitted(resource: Resource, size: int) -> Resource:
        by = resource.initiator
        initiator = by and replace(by, at_byte=min(by.at_byte, sizes[by.resource]))
        return replace(resource, body_bytes=size, initiator=initiator)

    return replace(page, resources=tuple(map(fitted, page.resources, sizes))).checked()


def is_text(mime: str) -> bool:
    """Whether a body of this type can refer to other resources."""
    return bool(_TEXT.match(mime.lower()))


def clear_text(text: bytes) -> bytes:
    """A decoded body whose references are http."""
    text = _URL.sub(rb"http\1", text)
    return _INTEGRITY.sub(b"data-integrity", text).replace(_UPGRADE.encode(), b"")


def clear_body(body: bytes, content_encoding: str) -> bytes:
    """A body as it is served, changed within its coding; unchanged if it cannot be decoded.

    Args:
        body: The body in its coding.
        content_encoding: Its `Content-Encoding`; empty if it has none.
    """
    codings = codings_of(content_encoding)
    try:
        text = _whole(body, codings)
        if text is None or (clear := clear_text(text)) == text:
            return body
        return encoded(clear, codings, len(body))
    except CodingError:
        return body


def clear_headers(headers: Headers) -> Headers:
    """Header fields of the same response over http."""
    return tuple(
        (name, _value(name.lower(), value))
        for name, value in headers
        if name.lower() != "strict-transport-security"
    )


def _value(name: str, value: str) -> str:
    if name == "set-cookie":
        return _COOKIE_OF_TLS.sub("", value)
    return value.replace("https:", "http:").replace(_UPGRADE, "")


def _whole(body: bytes, codings: list[str]) -> bytes | None:
    """The decoded body; `None` if it is too large."""
    text = bytearray()
    for piece in decoded([body], codings):
        text += piece
        if len(text) > MOST_TEXT_BYTES:
            return None
    return bytes(text)
