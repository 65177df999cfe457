"""JSON files, gzipped or not, of any tool. The format is recognised by the content, not the name.

| format | how it is recognised |
|---|---|
| HAR | an object with `log.entries` |
| WebPageTest's result | an object with `data.runs`, or `runs` |
| DevTools' or Chromium's trace | an object with `traceEvents`, or a list of events with `ph` |
| log of the DevTools protocol | a list with events of `Network` |
| net log | an object with `constants` and `events` |
| profile | an object with `resources` |
"""

from __future__ import annotations

from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.profile import read_profile
from firstflight.pages.readers.devtools_log import is_devtools_log, open_devtools_log
from firstflight.pages.readers.har import page_of_log
from firstflight.pages.readers.har_entry import Node, node, nodes, read_json
from firstflight.pages.readers.netlog import is_netlog, open_netlog_page
from firstflight.pages.readers.trace import is_trace, open_trace
from firstflight.pages.readers.webpagetest import is_result, open_result

KNOWN = (
    "a HAR, WebPageTest's result, a trace, a DevTools protocol log, a net log, or a profile of firstflight"
)


def open_json(path: Path, url: str = "") -> LoadedPage:
    """The page at `url` in the JSON file at `path`; without `url`, the default of its format.

    Raises:
        PageInputError: The file cannot be read, is damaged, has an unknown format, or has no such page.
    """
    with path.open("rb") as file:
        begins = file.read(1 << 12)
    if b'"firstflight-profile' in begins:
        return _profile(path, url)
    named = path.name.lower().endswith((".json", ".json.gz"))
    if (
        not named
        and begins[:2] != b"\x1f\x8b"
        and begins.strip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"[")
    ):
        problem = f"{path}: of none of the formats that are read"
        raise PageInputError(problem, f"it may be {KNOWN}, a WARC or a WACZ: docs/archives.md")
    document = read_json(path, "export or copy it again: it is damaged or its end is missing")
    if is_trace(document):
        return open_trace(document, path, url)
    if is_devtools_log(document):
        return open_devtools_log(document, path, url)
    found = _of_object(document, path, url) if isinstance(document, dict) else None
    if found is None:
        raise PageInputError(f"{path}: JSON, but of none of the formats that are read", f"it may be {KNOWN}")
    return found


def _of_object(document: Node, path: Path, url: str) -> LoadedPage | None:
    if nodes(node(document, "log"), "entries"):
        return page_of_log(node(document, "log"), path, f"HAR {path.name}", url)
    if is_result(document):
        return open_result(document, path, url)
    if is_netlog(document):
        return open_netlog_page(document, path, url)
    return _profile(path, url) if "format" in document or "resources" in document else None


def _profile(path: Path, url: str) -> LoadedPage:
    if url:
        raise PageInputError(f"{path}: a profile is one page", "leave out what follows the #")
    return LoadedPage(read_profile(path))
