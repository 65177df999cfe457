"""HAR files (HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/), gzipped or not.

They hold the requests of one or more pages, with times, and with bodies where the tool kept them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import LONGEST_MS, Link, LoadedPage
from firstflight.pages.assemble import assemble, check_count
from firstflight.pages.bodies import BodyStore
from firstflight.pages.discovery import discover_recorded
from firstflight.pages.exchange import HTML, Exchange, Stated
from firstflight.pages.fields import mime_of
from firstflight.pages.hosts import round_trips
from firstflight.pages.link import cross, placed
from firstflight.pages.mentions import RecordedFiles, collect_mentions
from firstflight.pages.readers.har_entry import (
    Dropped,
    Node,
    moment_ms,
    node,
    nodes,
    positive,
    read_entry,
    read_har,
    text,
)
from firstflight.pages.urls import normal_url
from firstflight.pages.waits import LOAD_SLACK_MS, wait_times


def open_har(path: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the HAR at `path`; without `url`, the first.

    Raises:
        PageInputError: The file is no HAR, or no page can be made of it.
    """
    notes = Counter[str]()
    entries, on_load_ms = entries_of_har(path, notes, url)
    return timed_page(entries, on_load_ms, f"HAR {path.name}", notes, link_of_har(path, url))


def timed_page(
    exchanges: list[Exchange],
    on_load_ms: float | None,
    source: str,
    notes: Counter[str],
    link: Link | None = None,
) -> LoadedPage:
    """The page of `exchanges`, in order of their start, whose load event came `on_load_ms` after it began.

    `link`: what they crossed, where that is known.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    files = RecordedFiles(exchanges)
    discovery = discover_recorded(exchanges, collect_mentions(exchanges, files), files)
    crossed = cross(exchanges, discovery.kinds, link, round_trips(exchanges)) if link else None
    if crossed:
        discovery = placed(exchanges, discovery, crossed.crossing)
    times = wait_times(exchanges, discovery, on_load_ms, crossed)
    return assemble(exchanges, discovery, times, source=source, notes=notes, crossed=crossed)


def link_of_har(path: Path, url: str = "") -> Link | None:
    """The link that WebPageTest notes for a page; None where it is not noted, or has no rate.

    Raises:
        PageInputError: The file is no HAR, or has no such page.
    """
    page, _, _ = _entries_of_page(read_har(path), path, url)
    names = (("_latency_rtt_ms", "_latency"), ("_bwDown_kbps", "_bwDown"), ("_bwUp_kbps", "_bwUp"))
    rtt_ms, down, up = (positive(page, now) or positive(page, before) for now, before in names)
    if rtt_ms is None or not down or not up:
        return None
    return Link(min(rtt_ms, LONGEST_MS), round(down * 1_000), round(up * 1_000))


def entries_of_har(path: Path, notes: Counter[str], url: str = "") -> tuple[list[Exchange], float | None]:
    """A page's entries from its document on, and its load event, ms since it began.

    Args:
        path: The HAR.
        notes: Counts what is left out, by reason.
        url: Where the page begins; without it, the first page.

    Raises:
        PageInputError: The file is no HAR, or has no such page.
    """
    page, own, foreign = _entries_of_page(read_har(path), path, url)
    check_count(len(own), str(path))
    notes["requests of other pages in the file"] += foreign
    on_load_ms = positive(node(page, "pageTimings"), "onLoad")
    read = _entries(own, _began_ms(page, own), on_load_ms or 0.0, BodyStore(str(path)), notes)
    entries = _network(read, notes)
    if not entries:
        hint = "record it again over http or https, with 'Disable cache' on"
        raise PageInputError(f"{path}: none of its {len(own)} requests has an answer", hint)
    return _from_document(entries, str(path), notes), on_load_ms


def _began_ms(page: Node, own: list[Node]) -> float:
    moments = [moment_ms(page, "startedDateTime"), *(moment_ms(e, "startedDateTime") for e in own)]
    return next((moment for moment in moments if moment is not None), 0.0)


def _entries(
    own: list[Node], began: float, on_load_ms: float, store: BodyStore, notes: Counter[str]
) -> list[Exchange]:
    """The entries in order of their start; one without a time comes where it stands in the file.

    A request that never had an answer, and that the load event may have waited for, is among them.
    """
    entries: list[Exchange] = []
    for raw in own:
        entry = read_entry(raw, began, store)
        if isinstance(entry, Dropped):
            if not entries or entry.hung is None or entry.hung.end_ms > on_load_ms + LOAD_SLACK_MS:
                notes[entry.reason] += 1
                continue
            entry = entry.hung
        if entry.timing is None and entries:
            entry = replace(entry, timing=entries[-1].timing)
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry.clock.start_ms)


def _network(entries: list[Exchange], notes: Counter[str]) -> list[Exchange]:
    """Without what came from the cache; what that asked for counts as asked for by who asked for it."""
    kept: list[Exchange] = []
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


def _from_document(entries: list[Exchange], place: str, notes: Counter[str]) -> list[Exchange]:
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


def _entries_of_page(log: Node, path: Path, url: str) -> tuple[Node, list[Node], int]:
    """The page at `url`, without `url` the first, its entries, and how many entries belong to other pages.

    Raises:
        PageInputError: No page of the HAR at `path` begins with `url`.
    """
    entries, pages = nodes(log, "entries"), nodes(log, "pages")
    used = {text(entry, "pageref") for entry in entries}
    listed = [text(page, "id") for page in pages if text(page, "id") in used]
    ids = list(dict.fromkeys([*listed, *(text(entry, "pageref") for entry in entries)]))
    chosen = ids[0]
    if url:
        begins = {name: _begins(entries, name) for name in ids}
        found = [name for name in ids if normal_url(url) in begins[name]]
        if not found:
            known = ", ".join(f"'{path}#{urls[-1]}'" for urls in list(begins.values())[:3] if urls)
            raise PageInputError(f"{path}: no page in it begins with {url[:80]}", f"it has {known}")
        chosen = found[0]
    own = [entry for entry in entries if text(entry, "pageref") in (chosen, "")]
    page = next((page for page in pages if text(page, "id") == chosen), pages[0] if pages else {})
    return page, own, len(entries) - len(own)


def _begins(entries: list[Node], page: str) -> list[str]:
    """The URLs of a page's document and of the redirects before it."""
    urls = []
    for entry in entries:
        if text(entry, "pageref") == page:
            urls.append(normal_url(text(node(entry, "request"), "url")))
            if mime_of(text(node(node(entry, "response"), "content"), "mimeType")) in HTML:
                return urls
    return urls[:1]
