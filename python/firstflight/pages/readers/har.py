"""HAR files (HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/), gzipped or not.

They have the requests of one or more pages with times, and bodies if the tool kept them.
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
from firstflight.pages.exchange import Carried, Exchange, Stated
from firstflight.pages.hosts import round_trips
from firstflight.pages.link import cross, placed
from firstflight.pages.mentions import RecordedFiles, collect_mentions
from firstflight.pages.readers.har_entry import (
    Dropped,
    Node,
    moment_ms,
    node,
    positive,
    read_entry,
    read_har,
)
from firstflight.pages.readers.runs import Chosen, choose
from firstflight.pages.readers.wpt_times import restated
from firstflight.pages.waits import LOAD_SLACK_MS, wait_times


def open_har(path: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the HAR at `path`; without `url`, the first.

    Raises:
        PageInputError: The file is not a HAR, or has no page that can be loaded.
    """
    return page_of_log(read_har(path), path, f"HAR {path.name}", url)


def page_of_log(log: Node, path: Path, source: str, url: str = "") -> LoadedPage:
    """The page at `url` in the log of a HAR or the equivalent from another reader; without `url`, the first.

    Args:
        log: The HAR's log, with `pages` and `entries`.
        path: The file, named in errors.
        source: The source that the page is to state.
        url: The first URL of the page.

    Raises:
        PageInputError: There is no such page, or it cannot be loaded.
    """
    return page_of(choose(log, path, url), path, source)


def page_of(chosen: Chosen, path: Path, source: str) -> LoadedPage:
    """The page for a chosen part of a HAR; arguments and errors as `page_of_log`."""
    notes = Counter[str]()
    entries, on_load_ms = _exchanges(chosen, path, notes)
    loaded = timed_page(entries, on_load_ms, source, notes, _link(chosen.page))
    return replace(loaded, notes=[*([chosen.said] if chosen.said else []), *loaded.notes])


def timed_page(
    exchanges: list[Exchange],
    on_load_ms: float | None,
    source: str,
    notes: Counter[str],
    link: Link | None = None,
) -> LoadedPage:
    """The page of `exchanges`, which are in order of their start; its load event came at `on_load_ms`.

    `link`: the link that they crossed; `None`: not known.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    files = RecordedFiles(exchanges)
    discovery = discover_recorded(exchanges, collect_mentions(exchanges, files), files)
    crossed = cross(exchanges, discovery.kinds, link, round_trips(exchanges)) if link else None
    if crossed:
        discovery = placed(exchanges, discovery, crossed.crossing)
    times = wait_times(exchanges, discovery, on_load_ms, crossed)
    loaded = assemble(exchanges, discovery, times, source=source, notes=notes, crossed=crossed)
    shared = sum(exchange.carried.http in ("2", "3") for exchange in exchanges)
    return replace(loaded, multiplexed=shared / len(exchanges))


def _link(page: Node) -> Link | None:
    """The link that WebPageTest recorded for a page; `None` if it is missing or has no rate."""
    names = (("_latency_rtt_ms", "_latency"), ("_bwDown_kbps", "_bwDown"), ("_bwUp_kbps", "_bwUp"))
    rtt_ms, down, up = (positive(page, now) or positive(page, before) for now, before in names)
    if rtt_ms is None or not down or not up:
        return None
    return Link(min(rtt_ms, LONGEST_MS), round(down * 1_000), round(up * 1_000))


def entries_of_har(path: Path, notes: Counter[str], url: str = "") -> tuple[list[Exchange], float | None]:
    """A page's entries from its document on, and its load event, ms since the page began.

    Args:
        path: The HAR.
        notes: Counts of what is left out, by reason.
        url: The first URL of the page; empty: the first page.

    Raises:
        PageInputError: The file is not a HAR, or has no such page.
    """
    return _exchanges(choose(read_har(path), path, url), path, notes)


def _exchanges(chosen: Chosen, path: Path, notes: Counter[str]) -> tuple[list[Exchange], float | None]:
    page, own = chosen.page, [restated(entry) for entry in chosen.entries]
    check_count(len(own), str(path))
    notes["requests of other pages in the file"] += chosen.foreign
    on_load_ms = positive(node(page, "pageTimings"), "onLoad")
    read = _entries(own, _began_ms(page, own), on_load_ms or 0.0, BodyStore(str(path)), notes)
    entries = _with_connections(_network(read, notes))
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
    """The entries in order of their start; an entry without a time keeps its position in the file.

    A request without a response is included if the load event may have waited for it.
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


def _with_connections(entries: list[Exchange]) -> list[Exchange]:
    """Copies what one exchange records of its connection to all others on it: WebPageTest records it once."""
    known: dict[str, Carried] = {}
    for entry in entries:
        carried = entry.carried
        if carried.connection and (carried.tls or carried.certified):
            known.setdefault(carried.connection, carried)
    return [
        replace(entry, carried=replace(known[name], http=entry.carried.http))
        if (name := entry.carried.connection) in known
        else entry
        for entry in entries
    ]


def _network(entries: list[Exchange], notes: Counter[str]) -> list[Exchange]:
    """Removes entries from the cache. Their initiators become the initiators of what they requested."""
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
    """The entries from the page's own document on, or from the redirects that lead to it.

    Raises:
        PageInputError: The recording began after the document: other requests come before the first document,
            and the `Referer` of most requests is on another host.
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
