"""Chooses a page of a recording with several pages, and a run of it if a tool loaded it more than once.

WebPageTest (`_run` of a page) and sitespeed.io's browsertime load a page several times. Of such runs the
median by load event is used, for an even number the lower of the two in the middle, as WebPageTest does. Runs
of WebPageTest with a filled cache (`_cached`) do not count. Pages with one URL from other tools, such as
browsers in which the user reloaded, are not runs: the first one is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.exchange import HTML
from firstflight.pages.fields import mime_of
from firstflight.pages.readers.har_entry import Node, node, nodes, number, positive, text
from firstflight.pages.urls import normal_url


@dataclass(frozen=True, slots=True)
class Chosen:
    """A page of a HAR, or the run that represents it.

    Attributes:
        page: The HAR's entry for the page.
        entries: Its requests.
        foreign: How many entries belong to other pages.
        said: Which of the runs it is, in words; empty if there is one run.
    """

    page: Node
    entries: list[Node]
    foreign: int
    said: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One load of a page.

    Attributes:
        name: Its id; in a folder with the file.
        on_load_ms: When its load event fired; `None`: not recorded, as for a load that failed.
    """

    name: str
    on_load_ms: float | None


def choose(log: Node, path: Path, url: str) -> Chosen:
    """The page at `url`, or without `url` the first; of several runs the median.

    Raises:
        PageInputError: No page of the HAR at `path` begins with `url`.
    """
    begins = page_urls(log)
    if not begins:
        raise PageInputError(f"{path}: no request in it", "record the page again")
    first = next(iter(begins))
    found = [name for name in begins if normal_url(url) in begins[name]] if url else [first]
    if not found:
        known = ", ".join(f"'{path}#{urls[-1]}'" for urls in list(begins.values())[:3] if urls)
        raise PageInputError(f"{path}: no page in it begins with {url[:80]}", f"it has {known}")
    runs = runs_of(log, found[0], begins)
    chosen, said = (runs[0].name, "") if len(runs) == 1 else median(runs)
    return page_named(log, chosen, said)


def page_named(log: Node, chosen: str, said: str) -> Chosen:
    """The page with the id `chosen`; `said` as in `Chosen`."""
    entries, pages = nodes(log, "entries"), nodes(log, "pages")
    own = [entry for entry in entries if text(entry, "pageref") in (chosen, "")]
    page = next((page for page in pages if text(page, "id") == chosen), pages[0] if pages else {})
    return Chosen(page, own, len(entries) - len(own), said)


def page_urls(log: Node) -> dict[str, list[str]]:
    """For each page with requests, by its id: the URLs of its document and of the redirects to it."""
    entries, pages = nodes(log, "entries"), nodes(log, "pages")
    own: dict[str, list[Node]] = {}
    for entry in entries:
        own.setdefault(text(entry, "pageref"), []).append(entry)
    listed = [text(page, "id") for page in pages if text(page, "id") in own]
    return {name: _begins(own[name]) for name in dict.fromkeys([*listed, *own])}


def runs_of(log: Node, name: str, begins: Mapping[str, list[str]]) -> list[Run]:
    """The page `name` and its other runs, if the tool repeats loads; at least one.

    Args:
        log: The HAR's log.
        name: Id of the page.
        begins: From `page_urls`.
    """
    pages = {text(page, "id"): page for page in nodes(log, "pages")}
    one = Run(name, _on_load(pages.get(name, {})))
    browsertime = "browsertime" in text(node(log, "creator"), "name").lower()
    if not browsertime and "_run" not in pages.get(name, {}):
        return [one]
    same = [
        Run(other, _on_load(pages.get(other, {})))
        for other, urls in begins.items()
        if urls[:1] == begins[name][:1] and not number(pages.get(other, {}), "_cached")
    ]
    return same or [one]


def median(runs: list[Run]) -> tuple[str, str]:
    """The name of the median of at least two runs, and a line that states it."""
    loaded = sorted((run.on_load_ms, place) for place, run in enumerate(runs) if run.on_load_ms is not None)
    if not loaded:
        return runs[0].name, f"run 1 of {len(runs)}: none has a load event recorded, so there is no median"
    on_load_ms, place = loaded[(len(loaded) - 1) // 2]
    name = runs[place].name
    without = f"; {len(runs) - len(loaded)} have no load event" if len(loaded) < len(runs) else ""
    return name, (
        f"run {place + 1} of {len(runs)} ({name[:80]}), the median by load event: {on_load_ms:,.0f} ms of "
        f"{loaded[0][0]:,.0f} to {loaded[-1][0]:,.0f} ms{without}"
    )


def _on_load(page: Node) -> float | None:
    return positive(node(page, "pageTimings"), "onLoad")


def _begins(entries: list[Node]) -> list[str]:
    urls = []
    for entry in entries:
        urls.append(normal_url(text(node(entry, "request"), "url")))
        if mime_of(text(node(node(entry, "response"), "content"), "mimeType")) in HTML:
            return urls
    return urls[:1]
