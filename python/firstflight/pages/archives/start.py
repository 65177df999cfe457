"""Which entry of an archive without times is where the page begins."""

from __future__ import annotations

from collections import Counter

from firstflight.errors import PageInputError
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.urls import normal_url


def start_of(entries: list[Entry], place: str, *, wanted: str = "", listed: str = "", recorded: bool) -> int:
    """The index of the page's first request.

    Args:
        entries: All of the archive.
        place: The archive, named in errors.
        wanted: The start page that the user names, or empty.
        listed: The start page that the archive names, or empty.
        recorded: Whether `entries` are in the order of their recording. Then the page begins with its first
            document; else with the document that most requests name as their `Referer`.

    Raises:
        PageInputError: There is no such document.
    """
    if wanted:
        return _named(entries, normal_url(wanted), place)
    asked = {entry.url for entry in entries}
    if normal_url(listed) in asked:
        return _before(entries, _first(entries, normal_url(listed)))
    documents = [i for i, entry in enumerate(entries) if _is_document(entry)]
    if not documents:
        problem = f"{place}: no page: none of its {len(entries)} answers is an HTML document"
        raise PageInputError(problem, "record a page together with its own document")
    if recorded:
        return _before(entries, documents[0])
    named = Counter(entry.referer for entry in entries)
    best = max(documents, key=lambda i: (named[entries[i].url], -i))
    return _before(entries, best)


def _is_document(entry: Entry) -> bool:
    return entry.is_html and entry.status == 200 and entry.body_bytes > 0 and entry.kind != "xhr"


def _named(entries: list[Entry], url: str, place: str) -> int:
    for index, entry in enumerate(entries):
        if entry.url == url:
            return index
    starts = [entry.url for entry in entries if _is_document(entry)][:3]
    raise PageInputError(f"{place}: no answer for the start page {url[:80]}", f"it has {', '.join(starts)}")


def _first(entries: list[Entry], url: str) -> int:
    return next(index for index, entry in enumerate(entries) if entry.url == url)


def _before(entries: list[Entry], document: int) -> int:
    """The first of the redirects that lead to `document`, or `document`."""
    seen = {document}
    first = document
    while True:
        leading = (i for i, e in enumerate(entries) if i not in seen and e.redirect == entries[first].url)
        index = next(leading, None)
        if index is None:
            return first
        seen.add(index)
        first = index
