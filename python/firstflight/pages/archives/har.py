"""HAR files: the requests of one page, with bodies where the HAR holds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.pages.archives.assemble import assemble, check_count
from firstflight.pages.archives.entry import Entry, Stated
from firstflight.pages.archives.har_entry import Dropped, read_entry
from firstflight.pages.archives.har_fields import Node, moment_ms, node, positive
from firstflight.pages.archives.har_file import entries_of_page, read_har
from firstflight.pages.archives.recorded_files import RecordedFiles
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.archives.timed import discover_timed
from firstflight.pages.archives.waits import wait_times
from firstflight.pages.discovery import missing
from firstflight.pages.loaded import LoadedPage
from firstflight.pages.mentions import collect_mentions


def open_har(path: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the HAR at `path`; without `url`, the first.

    Raises:
        PageInputError: The file is no HAR, or no page can be made of it.
    """
    notes = Counter[str]()
    entries, on_load_ms = entries_of_har(path, notes, url)
    return timed_page(entries, on_load_ms, f"HAR {path.name}", notes)


def timed_page(
    entries: list[Entry], on_load_ms: float | None, source: str, notes: Counter[str]
) -> LoadedPage:
    """The page of `entries`, in order of their start, whose load event came `on_load_ms` after it began.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    files = RecordedFiles(entries)
    exchanges = [entry.exchange() for entry in entries]
    mentions = collect_mentions(exchanges, files)
    discovered = discover_timed(entries, exchanges, mentions)
    times, after = wait_times(entries, exchanges, discovered, on_load_ms)
    asked = {entry.url for entry in entries}
    return assemble(
        entries,
        discovered,
        times,
        missing(mentions, asked, files),
        source=source,
        notes=notes,
        after=after,
    )


def entries_of_har(path: Path, notes: Counter[str], url: str = "") -> tuple[list[Entry], float | None]:
    """A page's entries from its document on, and its load event, ms since it began.

    Args:
        path: The HAR.
        notes: Counts what is left out, by reason.
        url: Where the page begins; without it, the first page.

    Raises:
        PageInputError: The file is no HAR, or has no such page.
    """
    page, own, foreign = entries_of_page(read_har(path), path, url)
    check_count(len(own), str(path))
    notes["requests of other pages in the file"] += foreign
    entries = _network(_entries(own, _began_ms(page, own), BodyStore(str(path)), notes), notes)
    if not entries:
        hint = "record it again over http or https, with 'Disable cache' on"
        raise PageInputError(f"{path}: none of its {len(own)} requests has an answer", hint)
    return _from_document(entries, str(path), notes), positive(node(page, "pageTimings"), "onLoad")


def _began_ms(page: Node, own: list[Node]) -> float:
    moments = [moment_ms(page, "startedDateTime"), *(moment_ms(e, "startedDateTime") for e in own)]
    return next((moment for moment in moments if moment is not None), 0.0)


def _entries(own: list[Node], began: float, store: BodyStore, notes: Counter[str]) -> list[Entry]:
    """The entries in order of their start; one without a time comes where it stands in the file."""
    entries: list[Entry] = []
    for raw in own:
        entry = read_entry(raw, began, store)
        if isinstance(entry, Dropped):
            notes[entry.reason] += 1
            continue
        if entry.timing is None and entries:
            entry = replace(entry, timing=entries[-1].timing)
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry.clock.start_ms)


def _network(entries: list[Entry], notes: Counter[str]) -> list[Entry]:
    """Without what came from the cache; what that asked for counts as asked for by who asked for it."""
    kept: list[Entry] = []
    askers: dict[str, Stated] = {}
    for entry in entries:
        urls = tuple(u for url in entry.stated.urls for u in (askers[url].urls if url in askers else (url,)))
        known = replace(entry, stated=replace(entry.stated, urls=urls))
        if entry.cached and kept:
            askers[entry.url] = known.stated
            notes["answers from the browser's cache or a service worker"] += 1
        else:
            kept.append(known)
    return kept


def _from_document(entries: list[Entry], place: str, notes: Counter[str]) -> list[Entry]:
    """From the page's own document on, or the redirects that lead to it.

    Raises:
        PageInputError: The recording began after the document: other requests come before the first one, and
            what most requests name as their `Referer` is of another host.
    """
    document = next((i for i, entry in enumerate(entries) if entry.is_html), 0)
    first = document
    for index in range(document - 1, -1, -1):
        if entries[index].redirect == entries[first].url:
            first = index
    named = Counter(_host(entry.referer) for entry in entries if entry.referer)
    host = max(named, key=named.__getitem__, default="")
    if first and host and host not in {_host(entry.url) for entry in entries[first : document + 1]}:
        problem = f"{place}: the page itself is not in it, only what {host} asked for later"
        raise PageInputError(
            problem, "record it again, with the network panel open before the page is loaded"
        )
    notes["requests before the page's own"] += first
    return entries[first:]


def _host(url: str) -> str:
    return urlsplit(url).netloc
