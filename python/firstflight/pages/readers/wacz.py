"""WACZ files (https://specs.webrecorder.net/wacz/1.1.1/): a zip with WARC files and a list of pages.

Nothing is unpacked by the names in the zip: its members are read in place. If a page's line in the list names
a HAR in the archive, as `firstflight record` writes it, the HAR has the initiators and times. An entry of the
HAR names its response in the WARC (`_warcRecordId`), which has bodies, fields and sizes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.assemble import check_count
from firstflight.pages.bodies import BodyStore, Budget
from firstflight.pages.exchange import Exchange
from firstflight.pages.readers.har import timed_page
from firstflight.pages.readers.har_entry import (
    MOST_BYTES,
    Dropped,
    Node,
    moment_ms,
    node,
    nodes,
    positive,
    read_entry,
    text,
)
from firstflight.pages.readers.warc import Collected, collect, listed_pages, page_of_records
from firstflight.pages.urls import normal_url

_MOST_LIST = 1 << 24
_MOST_MEMBERS = 10_000
_MOST_DIRECTORY = _MOST_MEMBERS * 512
"""Limit, bytes; a name of an archive takes about a hundred."""
_MOST_PAGES = 1_000


def open_wacz(path: Path, url: str = "") -> list[LoadedPage]:
    """Reads the page at `url` from the WACZ at `path`.

    Without `url`, it reads all pages with a HAR, or else the first page in the list.

    Raises:
        PageInputError: The file is not a WACZ or is damaged, or there is no such page.
    """
    return _read(path, lambda archive: _pages_of(archive, path, url))


def _read(path: Path, read: Callable[[zipfile.ZipFile], list[LoadedPage]]) -> list[LoadedPage]:
    hint = "copy or record the archive again: it is damaged or no WACZ"
    try:
        with _Directory(path) as file, zipfile.ZipFile(file) as archive:
            file.is_read = True
            return read(archive)
    except PageInputError:
        raise
    except Exception as error:  # zipfile raises any exception, depending on its input
        raise PageInputError(f"{path}: {str(error)[:160] or type(error).__name__}", hint) from None


class _Directory(io.BufferedReader):
    """A zip file whose directory has a limited size.

    `zipfile` reads the directory at once and makes an object for each name in it, without a limit.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._path = path
        self.is_read = False

    def read(self, size: int | None = -1) -> bytes:
        if not self.is_read and (size or 0) > _MOST_DIRECTORY:
            raise PageInputError(
                f"{self._path}: its directory has {size} bytes, too many for {_MOST_MEMBERS} files",
                "split the archive",
            )
        return super().read(size)


def _pages_of(archive: zipfile.ZipFile, path: Path, url: str) -> list[LoadedPage]:
    store = BodyStore(str(path))
    listed = _listed(archive, store.budget)
    collected = _collected(archive, path, store, listed)
    hars = _hars(archive, str(path), listed, normal_url(url))
    if not hars:
        return [page_of_records(collected, str(path), f"WACZ {path.name}", url)]
    answers = dict(zip(collected.ids, collected.exchanges, strict=True))
    return [_timed_page(archive, str(path), member, answers, store) for member in hars]


def _hars(archive: zipfile.ZipFile, place: str, listed: list[object], url: str) -> list[str]:
    """HARs of the page `url`, or of all pages; if `url` was recorded several times, the first HAR."""
    names = set(archive.namelist())
    found = [
        line["har"]
        for line in listed
        if isinstance(line, dict)
        and isinstance(line.get("har"), str)
        and line["har"] in names
        and url in ("", normal_url(str(line.get("url"))))
    ]
    if len(found) > _MOST_PAGES and not url:
        raise PageInputError(
            f"{place}: {len(found)} pages are too many", "name one as 'FILE#http://host/path'"
        )
    return found[:1] if url else list(dict.fromkeys(found))


def _collected(archive: zipfile.ZipFile, path: Path, store: BodyStore, listed: list[object]) -> Collected:
    names = archive.namelist()
    if len(names) > _MOST_MEMBERS:
        raise PageInputError(f"{path}: {len(names)} files in it are too many", "split the archive")
    for name in names:
        if name.startswith("/") or ".." in PurePosixPath(name).parts:
            raise PageInputError(
                f"{path}: its member '{name[:80]}' leaves the archive", "do not trust this file"
            )
    warcs = [name for name in names if name.startswith("archive/") and name.endswith((".warc", ".warc.gz"))]
    if not warcs:
        problem = f"{path}: not a WACZ: it contains no archive/*.warc.gz"
        raise PageInputError(problem, "unpack a collection of WACZ files and name one of them")
    collected = Collected(pages=listed_pages(listed))
    for name in warcs:
        store.budget.member()
        collect(lambda name=name: archive.open(name), f"{path}: {name}", store, collected)  # type: ignore[misc]
    return collected.whole()


def _listed(archive: zipfile.ZipFile, budget: Budget) -> list[object]:
    """The entries of `pages/pages.jsonl` without its first line, which describes the list itself."""
    if "pages/pages.jsonl" not in archive.namelist():
        return []
    with archive.open("pages/pages.jsonl") as file:
        data = file.read(_MOST_LIST)
    budget.spend(len(data))
    lines = data.decode("utf-8", errors="replace").splitlines()
    found: list[object] = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def _timed_page(
    archive: zipfile.ZipFile, place: str, member: str, answers: Mapping[str, Exchange], store: BodyStore
) -> LoadedPage:
    """The page whose HAR is `member`.

    Args:
        archive: The WACZ.
        place: The WACZ, named in errors.
        member: The HAR's name in it.
        answers: The responses in the WARC, by record id.
        store: The store of the archive.

    Raises:
        PageInputError: The HAR is damaged, too long, or names no response.
    """
    notes = Counter[str]()
    log = _log(archive, place, member, store.budget)
    pages = nodes(log, "pages")
    page: Node = pages[0] if pages else {}
    check_count(len(nodes(log, "entries")), f"{place}: {member}")
    began = moment_ms(page, "startedDateTime") or 0.0
    exchanges: list[Exchange] = []
    for raw in nodes(log, "entries"):
        answer, listed = answers.get(text(raw, "_warcRecordId")), read_entry(raw, began, store)
        if answer is None or isinstance(listed, Dropped):
            notes["requests whose answer the archive does not hold"] += 1
        else:
            exchanges.append(_both(answer, listed))
    if not exchanges:
        raise PageInputError(f"{place}: {member}: none of its answers is in the archive", "record it again")
    exchanges.sort(key=lambda exchange: exchange.start_ms)
    on_load_ms = positive(node(page, "pageTimings"), "onLoad")
    return timed_page(exchanges, on_load_ms, f"WACZ {Path(place).name}", notes)


def _both(answer: Exchange, listed: Exchange) -> Exchange:
    """The response with what the browser reported. Of a redirect's body only the length is recorded."""
    known = replace(
        answer,
        timing=listed.timing,
        stated=listed.stated,
        kind=listed.kind or answer.kind,
        carried=listed.carried,
        priority=listed.priority,
        render_blocking=listed.render_blocking,
    )
    if answer.body_bytes or not listed.body_bytes or not answer.redirect:
        return known
    return replace(known, body=None, text=None, body_bytes=listed.body_bytes)


def _log(archive: zipfile.ZipFile, place: str, member: str, budget: Budget) -> Node:
    with archive.open(member) as file:
        data = file.read(MOST_BYTES + 1)
    budget.spend(len(data))
    try:
        document = json.loads(data) if len(data) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise PageInputError(f"{place}: {member} is not a HAR", "record the pages again")
    return node(document, "log")
