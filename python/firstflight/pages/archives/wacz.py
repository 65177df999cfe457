"""WACZ files (https://specs.webrecorder.net/wacz/1.1.1/): a zip with WARC files and a list of pages.

Nothing is unpacked by the names in the zip: its members are read where they are.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath

from firstflight.errors import PageInputError
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.archives.warc import Collected, ListedPage, collect, listed_pages, page_of_records
from firstflight.pages.loaded import LoadedPage

_MOST_LIST = 1 << 24
_MOST_MEMBERS = 10_000


def open_wacz(path: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the WACZ at `path`; without `url`, the first that it lists.

    Raises:
        PageInputError: The file is no WACZ or damaged, or there is no such page.
    """
    hint = "copy or record the archive again: it is damaged or no WACZ"
    try:
        with zipfile.ZipFile(path) as archive:
            collected = _collected(archive, path)
    except PageInputError:
        raise
    except Exception as error:  # zipfile raises whatever its input provokes
        raise PageInputError(f"{path}: {str(error)[:160] or type(error).__name__}", hint) from None
    return page_of_records(collected, str(path), f"WACZ {path.name}", url)


def _collected(archive: zipfile.ZipFile, path: Path) -> Collected:
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
        problem = f"{path}: no WACZ: there is no archive/*.warc.gz in it"
        raise PageInputError(problem, "unpack a collection of WACZ files and name one of them")
    collected = Collected(pages=_pages(archive))
    store = BodyStore(str(path))
    for name in warcs:
        collect(lambda name=name: archive.open(name), f"{path}: {name}", store, collected)  # type: ignore[misc]
    return collected


def _pages(archive: zipfile.ZipFile) -> list[ListedPage]:
    """What `pages/pages.jsonl` lists; its first line describes the list itself."""
    if "pages/pages.jsonl" not in archive.namelist():
        return []
    with archive.open("pages/pages.jsonl") as file:
        lines = file.read(_MOST_LIST).decode("utf-8", errors="replace").splitlines()
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return listed_pages(found)
