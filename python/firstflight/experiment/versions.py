"""Versions of the pages of a plan: which versions belong together, and which pages are loaded for them.

Two recordings of an unchanged page differ. The built-in loader therefore loads the baseline's version and,
for each other version, the baseline with the changes applied (`analysis.changes`), as `firstflight gate`
does. A browser's requests depend on the content of the page, so it gets each recording as it is, noise
included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from firstflight.analysis.changes import UNTIMED, WITH_TIMES, check_times, find_changes
from firstflight.errors import PageInputError
from firstflight.model.load import recording_name
from firstflight.model.page import Page
from firstflight.observer import Observer
from firstflight.text import plural

_Opened = TypeVar("_Opened")

_FEW = 5


def paired(
    versions: Mapping[str, Mapping[str, _Opened]], observer: Observer
) -> dict[str, dict[str, _Opened]]:
    """The pages that all versions have, by name and version. If each has one page, names need not match.

    Args:
        versions: The pages of each version by name, the baseline first.
        observer: Is warned of pages that some versions lack.

    Raises:
        PageInputError: They have no page in common.
    """
    first, *_ = versions.values()
    if all(len(pages) == 1 for pages in versions.values()):
        [name] = first
        return {name: {version: page for version, pages in versions.items() for page in pages.values()}}
    common = [name for name in first if all(name in pages for pages in versions.values())]
    if not common:
        have = "; ".join(f"{version} has {_listed(list(pages))}" for version, pages in versions.items())
        raise PageInputError(
            f"page: versions are paired by the names of their pages, and no name is in all: {have}",
            "name one page of each, as FILE#http://host/path",
        )
    if alone := sorted({name for pages in versions.values() for name in pages} - {*common}):
        observer.warn(f"left out, since not every version has them: {_listed(alone)}")
    return {name: {version: pages[name] for version, pages in versions.items()} for name in common}


def changed(name: str, versions: Mapping[str, Page], observer: Observer) -> dict[str, Page]:
    """The baseline's version of a page and, for each other version, the baseline with the changes applied.

    Args:
        name: The page's name.
        versions: The recordings by version, the baseline's first.
        observer: Is told the number of changes, and warned where there are none.

    Raises:
        PageInputError: They are not recordings of one page, or some lack the times of servers.
    """
    if not check_times([*versions.items()]):
        observer.warn(f"{name}: {UNTIMED}", WITH_TIMES)
    (baseline, base), *others = versions.items()
    found: dict[str, Page] = {}
    for version, head in others:
        changes = find_changes([base], [head])
        found.setdefault(baseline, changes.version((), recording_name(name, baseline)).page)
        found[version] = changes.version(changes.found, recording_name(name, version)).page
        if changes.found:
            observer.note(f"{name}: {plural(len(changes.found), 'change')} from {baseline} to {version}")
        else:
            is_same = base.resources == head.resources
            what = "hold the same page" if is_same else "differ by no more than two visits of one page do"
            observer.warn(
                f"{name}: {baseline} and {version} {what}",
                "name recordings of before and after the change; docs/gate.md says what counts as one",
            )
    return found or {baseline: base}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
