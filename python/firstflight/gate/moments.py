"""The moments of a load that the gate compares, and the requests that each of them waits for.

`first_byte`: the document, after its redirects, begins to arrive. `stylesheets`: the last stylesheet that the
document refers to, or that such a stylesheet imports, could have arrived. No browser paints before, unless a
media query excludes the stylesheet, which recordings do not show. `plt`: the load event.

The first two come from a load of only the document, its stylesheets and what these wait for. A browser gives
them precedence. In a load of the whole page a longer stylesheet may even arrive earlier, since it delays the
document's requests for images that would share its link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from firstflight.analysis.critical_path.walk import critical_path
from firstflight.model.page import Page
from firstflight.results import LoadRecord, RequestRow
from firstflight.results.records import plt_ms

MomentName = Literal["first_byte", "stylesheets", "plt"]

Differences = dict[MomentName, float]
"""By how much the moments of two loads differ, ms; moments that a page lacks are left out."""

NAMES: tuple[MomentName, ...] = ("first_byte", "stylesheets", "plt")


@dataclass(frozen=True)
class Moments:
    """The moments of a load.

    Attributes:
        at_ms: Their times, ms after navigation start; moments that the page lacks are left out.
        stylesheets_ms: When each stylesheet could have arrived, by its URL.
    """

    at_ms: dict[MomentName, float]
    stylesheets_ms: dict[str, float]


@dataclass(frozen=True)
class Later:
    """By how much a moment is later on one side, for several pairs.

    Attributes:
        each_ms: The difference of each pair, signed.
        of: The number of series of differences from which this one was chosen.
    """

    each_ms: list[float]
    of: int = 1


def later(name: MomentName, pairs: Sequence[tuple[Moments, Moments]]) -> Later | None:
    """By how much a moment is later in the second load of each pair; `None` if a load lacks the moment.

    For stylesheets it is the delay of the most delayed one, if that is larger than the delay of the last one.
    The last one may hide it only by the time of another server, which differs between visits. The same
    stylesheet is used for all pairs: the worst of each pair would be late wherever loads differ by chance.
    """
    if not all(name in side.at_ms for pair in pairs for side in pair):
        return None
    whole = Later([after.at_ms[name] - before.at_ms[name] for before, after in pairs])
    if name != "stylesheets":
        return whole
    urls = set[str].intersection(*({*side.stylesheets_ms} for pair in pairs for side in pair))
    series = [
        [now.stylesheets_ms[url] - before.stylesheets_ms[url] for before, now in pairs]
        for url in sorted(urls)
    ]
    worst = max(series, key=median, default=whole.each_ms)
    if median(worst) <= abs(median(whole.each_ms)):
        worst = whole.each_ms
    return Later(worst, max(1, len(urls)))


def render_page(page: Page) -> Page:
    """The document, its stylesheets and the requests that these wait for, as a separate page."""
    kept = sorted(_before_stylesheets(page))
    index = {old: new for new, old in enumerate(kept)}
    resources = []
    for old in kept:
        by = page.resources[old].initiator
        after = None if by is None or by.after is None else index[by.after]
        linked = by and replace(by, resource=index[by.resource], after=after)
        resources.append(replace(page.resources[old], initiator=linked, blocks_load=True))
    return replace(page, name=f"{page.name}-stylesheets", resources=tuple(resources)).checked()


def moments(whole: LoadRecord, rendered: LoadRecord, render: Page) -> Moments:
    """The moments of a page, ms after navigation start.

    Args:
        whole: A load of the page.
        rendered: A load of the page that `render_page` returns, on the same path.
        render: The page that `render_page` returns.
    """
    rows = {row["index"]: row for row in reversed(rendered["requests"])}
    found: dict[MomentName, float] = {"plt": plt_ms(whole)}
    if (first := _at(rows, max(_documents(render)), "first_byte_ms")) is not None:
        found["first_byte"] = first
    ends = {render.resources[index].url: _at(rows, index, "end_ms") for index in _stylesheets(render)}
    arrived = {url: end for url, end in ends.items() if end is not None}
    return Moments({**found, "stylesheets": max(arrived.values())} if arrived else found, arrived)


def waited_for(name: MomentName, record: LoadRecord, page: Page, other: LoadRecord) -> set[int]:
    """Indices of the requests of the whole page that a moment of a load waited for.

    For the load event these are the requests on its critical path. Blocking requests that ended after the
    load event of the other side count too: main-thread work of other requests may have hidden their end.

    Args:
        name: The moment.
        record: The load.
        page: The page that it loaded.
        other: The load of the other side.
    """
    if name != "plt":
        return _documents(page) if name == "first_byte" else _before_stylesheets(page)
    earlier_ms = plt_ms(other)
    late = {
        row["index"]
        for row in record["requests"]
        if (row["end_ms"] or 0.0) > earlier_ms and page.resources[row["index"]].blocks_load
    }
    return late | {*critical_path(record, page).requests}


def _at(rows: dict[int, RequestRow], index: int, column: Literal["first_byte_ms", "end_ms"]) -> float | None:
    moment = rows[index][column] if index in rows else None
    return None if moment is None else float(moment)


def _documents(page: Page) -> set[int]:
    """The document and the redirects before it."""
    found = {0}
    for index, resource in enumerate(page.resources):
        by = resource.initiator
        if by and by.via == "redirect" and by.resource in found:
            found.add(index)
    return found


def _stylesheets(page: Page) -> set[int]:
    """The stylesheets of the document, those that they import, and the redirects to them.

    A stylesheet that does not block the load event was requested after it, and painting does not wait for it.
    """
    documents, found = _documents(page), set[int]()
    for index, resource in enumerate(page.resources):
        by = resource.initiator
        if by is not None and resource.kind == "style" and resource.blocks_load:
            from_document = by.resource in documents and by.via == "parser"
            if from_document or by.resource in found:
                found.add(index)
    return found


def _before_stylesheets(page: Page) -> set[int]:
    """Stylesheets, their initiators, and the scripts that block the parser before them."""
    found: set[int] = set()
    waiting = [*_documents(page), *_stylesheets(page)]
    while waiting:
        index = waiting.pop()
        if index in found:
            continue
        found.add(index)
        by = page.resources[index].initiator
        if by is not None:
            waiting += [by.resource] if by.after is None else [by.resource, by.after]
    return found
