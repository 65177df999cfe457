"""Opens the PAGE arguments of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.corpus import PREFIX, corpus_page
from firstflight.pages.profile import embedded_names, embedded_page, read_pages_list
from firstflight.pages.readers import MIRROR, by_content, format_of
from firstflight.pages.scheme import under
from firstflight.pages.urls import check_url

MOST_SYNTHESISED_BYTES = 1 << 29
"""Limit, for each load, of bodies and headers that the page lacks and that are synthesised in memory."""


def open_pages(specs: Sequence[str]) -> list[LoadedPage]:
    """Opens every PAGE in `specs`, in order; a list or a directory with a list gives several pages.

    Args:
        specs: Embedded names, `corpus:NAME` for the installed corpus, profiles, archives (HAR, WebPageTest's
            results, Chromium's traces and logs, WARC, WACZ, folders of browsertime and Lighthouse, Mahimahi
            recordings), mirror directories, `.pages` lists; a start page in an archive or mirror as
            `FILE#http://host/path`.

    Raises:
        PageInputError: A page cannot be read. The message names file and key, the hint a fix.
    """
    return [page for spec in specs for page in load_page(spec)]


def load_page(spec: str) -> list[LoadedPage]:
    """Opens one PAGE; see `open_pages`.

    The embedded pages have no https, as in the experiments of 2011 and 2013; four of their resources were
    recorded with https.
    """
    if spec in embedded_names():
        return [under("http", LoadedPage(embedded_page(spec)))]
    if spec.startswith(PREFIX) and not Path(spec).exists():
        return [LoadedPage(corpus_page(spec.removeprefix(PREFIX)))]
    if is_url(spec):
        _refuse_url(spec)
    path, _, url = spec.partition("#")
    try:
        return [_makeable(page, spec) for page in _open(Path(path), url, spec)]
    except (OSError, ValueError) as error:
        # The system refuses the path: too long for a file name, a null byte, no permission.
        raise PageInputError(
            f"{spec[:80]}: {getattr(error, 'strerror', None) or error}", "check the path"
        ) from None


def is_url(spec: str) -> bool:
    """Whether it is the URL of a page on the network."""
    return bool(re.match(r"https?://", spec, re.IGNORECASE))


def _refuse_url(url: str) -> NoReturn:
    check_url(url, place="pages")
    archive = f"{urlsplit(url).hostname}.wacz"
    raise PageInputError(
        f"{url[:80]}: a URL cannot be loaded: record it first",
        f"firstflight record {shlex.quote(url)} -o {archive}, then give {archive}",
    )


def _makeable(page: LoadedPage, spec: str) -> LoadedPage:
    """Refuses a page whose missing bodies and headers are too large to be synthesised."""
    resources = page.page.resources
    made = sum(r.body_bytes for index, r in enumerate(resources) if index not in page.bodies)
    made += sum(r.header_bytes + r.request_bytes for r in resources)
    if made > MOST_SYNTHESISED_BYTES:
        raise PageInputError(
            f"{spec[:80]}: {page.page.name}: {made >> 20} MiB of bodies and headers are not in it",
            f"at most {MOST_SYNTHESISED_BYTES >> 20} MiB are synthesised: record the page with its bodies",
        )
    return page


def _open(path: Path, url: str, spec: str) -> list[LoadedPage]:
    if not spec:
        raise PageInputError("a page without a name", "name a file, a directory or an embedded page")
    if not path.exists() and Path(spec).exists():
        path, url = Path(spec), ""
    if path.is_dir():
        return _open_directory(path, url)
    if path.exists() and not path.is_file():
        raise PageInputError(f"{path}: neither a file nor a directory", "save what it gives to a file first")
    if path.is_file():
        _check_start(url, path)
        if (found := format_of(path)) is not None:
            return found.open(path, url)
    if path.suffix == ".pages" and not url:
        return _open_list(path)
    if path.is_file():
        return by_content(path).open(path, url)
    if url:
        raise PageInputError(f"{path}: no such directory", "name a start page as 'DIR#http://host/path'")
    names = ", ".join(embedded_names())
    raise PageInputError(
        f"{spec[:80]}: no such file or directory", f"check the path; embedded pages are {names}"
    )


def _open_directory(path: Path, url: str) -> list[LoadedPage]:
    _check_start(url, path)
    if (found := format_of(path)) is not None:
        return found.open(path.absolute(), url)
    listed = path.absolute().with_name(f"{path.absolute().name}.pages")
    if listed.is_file() and not url:
        return _open_list(listed)
    return MIRROR.open(path.absolute(), url)


def _check_start(url: str, path: Path) -> None:
    if url:
        check_url(url, place=str(path))


def _open_list(path: Path) -> list[LoadedPage]:
    urls = read_pages_list(path)
    mirror = path.absolute().with_suffix("")
    if not mirror.is_dir():
        problem = f"{path}: the pages have not been recorded: no directory {mirror.name} in the same folder"
        raise PageInputError(problem, "record them, or name a profile or a mirror directory")
    return [page for url in urls for page in MIRROR.open(mirror, url)]
