"""Folders with HARs, from sitespeed.io or browsertime, or with several loads of a page.

sitespeed.io writes `pages/NAME/data/browsertime.har` for each page, browsertime `browsertime.har`. Each has
all runs of a page. In a folder with several HARs of one page, each HAR is a run. Pages are distinguished by
their first URL. For each page the median run is used (`runs.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.readers import HARS_IN_FOLDERS
from firstflight.pages.readers.har import page_of
from firstflight.pages.readers.har_entry import read_har
from firstflight.pages.readers.runs import Run, median, page_named, page_urls, runs_of
from firstflight.pages.urls import normal_url

_MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class _Load:
    """One run of a page: where it is, and when its load event fired."""

    file: Path
    run: Run


def open_folder(path: Path, url: str = "") -> list[LoadedPage]:
    """The median run of each page in the HARs of the folder `path`; with `url`, that page alone.

    Raises:
        PageInputError: A HAR is damaged, there are too many, or none has such a page.
    """
    loads = _loads(path)
    if url and normal_url(url) not in loads:
        known = ", ".join(f"'{path}#{found}'" for found in list(loads)[:3])
        raise PageInputError(f"{path}: no page in its HARs begins with {url[:80]}", f"it has {known}")
    chosen = [normal_url(url)] if url else list(loads)
    return [_page(path, loads[found]) for found in chosen]


def _files(path: Path) -> list[Path]:
    found = next((files for pattern in HARS_IN_FOLDERS if (files := sorted(path.glob(pattern)))), [])
    if len(found) > _MOST_FILES:
        hint = f"at most {_MOST_FILES} are read: name one of them"
        raise PageInputError(f"{path}: {len(found)} HARs in it are too many", hint)
    return found


def _loads(path: Path) -> dict[str, list[_Load]]:
    """All runs of each page, by its first URL, in order."""
    loads: dict[str, list[_Load]] = {}
    for file in _files(path):
        log = read_har(file)
        urls = page_urls(log)
        known: set[str] = set()
        for name, begins in urls.items():
            if begins and begins[0] not in known:
                known.add(begins[0])
                loads.setdefault(begins[0], []).extend(_Load(file, run) for run in runs_of(log, name, urls))
    return loads


def _page(folder: Path, loads: list[_Load]) -> LoadedPage:
    place, said = 0, ""
    if len(loads) > 1:
        names = [f"{load.file.relative_to(folder)} {load.run.name}" for load in loads]
        runs = [replace(load.run, name=name) for load, name in zip(loads, names, strict=True)]
        chosen, said = median(runs)
        place = names.index(chosen)
    file = loads[place].file
    found = page_named(read_har(file), loads[place].run.name, said)
    return page_of(found, file, f"HAR {file.relative_to(folder)}")
