"""A HAR file (HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/), gzipped or not, as JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.archives.fields import mime_of
from firstflight.pages.archives.har_fields import Node, node, nodes, text
from firstflight.pages.archives.urls import normal_url

_DOCUMENTS = ("text/html", "application/xhtml+xml")
# JSON is read as a whole, and takes several times its size in memory.
MOST_BYTES = 1 << 27


def read_har(path: Path) -> Node:
    """The `log` object of the HAR at `path`, with at least one entry.

    Raises:
        PageInputError: The file cannot be read, is too long, or is no HAR.
    """
    data = _read(path)
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"{path}: byte {error.start} is not UTF-8"
        raise PageInputError(problem, "export the HAR again, or save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        problem = f"{path}: not JSON: {str(error)[:120] or 'empty'}"
        raise PageInputError(problem, "export the HAR again: it is damaged or its end is missing") from None
    log = node(document, "log") if isinstance(document, dict) else {}
    if not nodes(log, "entries"):
        problem = f"{path}: no HAR: there is no log.entries with a request in it"
        raise PageInputError(problem, "record the page again with the network panel open, and export it")
    return log


def entries_of_page(log: Node, path: Path, url: str) -> tuple[Node, list[Node], int]:
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
            if mime_of(text(node(node(entry, "response"), "content"), "mimeType")) in _DOCUMENTS:
                return urls
    return urls[:1]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PageInputError(f"{path}: not whole gzip: {error}", "copy or export the file again") from None
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        raise PageInputError(problem, "check the path and its permissions") from None
    if len(data) > MOST_BYTES:
        problem = f"{path}: more than {MOST_BYTES >> 20} MiB"
        raise PageInputError(problem, "export it without bodies, or as WARC or WACZ")
    return data
