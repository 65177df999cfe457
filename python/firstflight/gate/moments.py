"""The moments of a load that the gate compares, and the requests that each of them waits for.

`first_byte`: the document, behind its redirects, begins to arrive. `stylesheets`: the last stylesheet that the
document refers to, or that such a stylesheet imports, has arrived; no browser paints before, unless its media
query excludes it, which no recording tells. `plt`: the load event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from firstflight.analysis.critical_path.walk import critical_path
from firstflight.model.page import Page
from firstflight.results import LoadRecord, RequestRow
from firstflight.results.records import plt_ms

MomentName = Literal["first_byte", "stylesheets", "plt"]

Moments = dict[MomentName, float]
"""When they were, or by how much they differ, ms; without those that the page has not."""

NAMES: tuple[MomentName, ...] = ("first_byte", "stylesheets", "plt")


def moments(record: LoadRecord, page: Page) -> Moments:
    """The moments of a load that ended ok, ms after navigation start."""
    rows = {row["index"]: row for row in reversed(record["requests"])}
    found: Moments = {"plt": plt_ms(record)}
    if (first := _at(rows, max(_documents(page)), "first_byte_ms")) is not None:
        found["first_byte"] = first
    ends = [end for index in _stylesheets(page) if (end := _at(rows, index, "end_ms")) is not None]
    return {**found, "stylesheets": max(ends)} if ends else found


def waited_for(name: MomentName, record: LoadRecord, page: Page) -> set[int]:
    """Indices of the requests that a moment of a load waited for."""
    if name == "first_byte":
        return _documents(page)
    return _before_stylesheets(page) if name == "stylesheets" else set(critical_path(record, page).requests)


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
    """The stylesheets of the document, those that they import, and the redirects to them."""
    documents, found = _documents(page), set[int]()
    for index, resource in enumerate(page.resources):
        by = resource.initiator
        if by is not None and resource.kind == "style":
            from_document = by.resource in documents and by.via == "parser"
            if from_document or by.resource in found:
                found.add(index)
    return found


def _before_stylesheets(page: Page) -> set[int]:
    """Stylesheets, what asks for them, and the scripts that hold the parser before them."""
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
