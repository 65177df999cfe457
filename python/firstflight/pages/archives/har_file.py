"""A HAR file (HTTP Archive 1.2, http://www.softwareishard.com/blog/har-12-spec/), gzipped or not, as JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.archives.har_fields import Node, node, nodes, text

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


def entries_of_first_page(log: Node) -> tuple[Node, list[Node], int]:
    """The first page that has entries, its entries, and how many entries belong to other pages."""
    entries, pages = nodes(log, "entries"), nodes(log, "pages")
    used = {text(entry, "pageref") for entry in entries}
    listed = [text(page, "id") for page in pages if text(page, "id") in used]
    first = listed[0] if listed else text(entries[0], "pageref")
    own = [entry for entry in entries if text(entry, "pageref") in (first, "")]
    page = next((page for page in pages if text(page, "id") == first), pages[0] if pages else {})
    return page, own, len(entries) - len(own)


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
