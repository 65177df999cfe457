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


def recorded_kind(words: Iterable[str], fields: list[tuple[str, str]], mime: str) -> Kind | None:
    """The kind that one of `words` or the request's `fields` say; None if they do not.

    A navigation is told by what it accepts: browsers ask for `text/html` first only there.
    """
    for word in (*words, value_of(fields, "sec-fetch-dest")):
        if word.lower() in _KINDS:
            return _KINDS[word.lower()]
    navigates = value_of(fields, "accept").startswith("text/html")
    return "frame" if mime in HTML and navigates else None


def browser_kind(words: Iterable[str], fields: list[tuple[str, str]], mime: str) -> Kind | None:
    """As `recorded_kind`, of requests that surely a browser made: HTML that it fetched is data."""
    if (found := recorded_kind(words, fields, mime)) is not None:
        return found
    return "xhr" if mime in HTML and value_of(fields, "accept") else None
