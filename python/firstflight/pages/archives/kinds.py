"""What a browser took a response for, by what archives record beside its type."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.pages.archives.entry import HTML
from firstflight.pages.archives.fields import value_of
from firstflight.pages.model import Kind

# DevTools' resource types, WebPageTest's request types, and Fetch's destinations (`Sec-Fetch-Dest`).
_KINDS: dict[str, Kind] = {
    "document": "frame",
    "iframe": "frame",
    "frame": "frame",
    "stylesheet": "style",
    "style": "style",
    "script": "script",
    "font": "font",
    "image": "image",
    "xhr": "xhr",
    "fetch": "xhr",
    "preflight": "xhr",
    "empty": "xhr",
    "media": "other",
    "video": "other",
    "audio": "other",
    "track": "other",
    "ping": "other",
    "beacon": "other",
    "manifest": "other",
    "texttrack": "other",
    "object": "other",
    "embed": "other",
}


def recorded_kind(words: Iterable[str], request: Iterable[tuple[str, str]], mime: str) -> Kind | None:
    """The kind that one of `words` or the request's fields say; None if they do not.

    A navigation is told by what it accepts: browsers ask for `text/html` first only there.
    """
    fields = list(request)
    for word in (*words, value_of(fields, "sec-fetch-dest")):
        if word.lower() in _KINDS:
            return _KINDS[word.lower()]
    if mime in HTML and (accept := value_of(fields, "accept")):
        return "frame" if accept.startswith("text/html") else "xhr"
    return None
