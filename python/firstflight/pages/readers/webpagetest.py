"""Results of WebPageTest: the JSON of its API, and the files of its agent (a ZIP or folder).

Both have the same requests. A request has its phases in ms since the test of the page began (`created`,
`dns_start`, `connect_start`, `ssl_start`, `load_start`, `ttfb_end`, `load_end`), values from the browser
(`priority`, `initiator`, `renderBlocking`, `securityDetails`, `socket`), and the main thread's time
(`cpuTime`, ms). They become entries of a HAR. Bodies are in the agent's `N_bodies.zip`. The HARs of
WebPageTest and HTTP Archive have the same fields after an underscore.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.bodies import Budget
from firstflight.pages.readers.chrome import certificate_bytes, iso_time, listed
from firstflight.pages.readers.har import page_of_log
from firstflight.pages.readers.har_entry import MOST_BYTES, Node, node, nodes, parsed, positive, text
from firstflight.pages.readers.wpt_times import Times

_AGENT = re.compile(r"(?:.*/)?(\d{1,4})(_Cached)?(?:_(\d{1,4}))?_devtools_requests\.json(?:\.gz)?")
"""Names of the agent's files: run, cached or not, step."""
_ORDERED = "testinfo.json"
"""The agent's description of the test."""
_HINT = "copy or download the result again: it is damaged or its end is missing"
_MOST_FILES = 10_000
_MOST_ZIPPED = 1 << 28
_NAMED = b"PK\x01\x02"
"""The first bytes of an entry in a ZIP's directory."""


def is_result(document: Node) -> bool:
    """Whether it is a result of the API: `jsonResult.php?test=ID`."""
    return bool(_runs(document))


def open_result(document: Node, path: Path, url: str) -> LoadedPage:
    """The page at `url` of a result; without `url`, the first page; of several runs the median.

    Raises:
        PageInputError: No run of it has requests, or there is no such page.
    """
    found = _Result(_link(node(document, "data") or document, "bwDown", "bwUp"))
    for run, views in _runs(document).items():
        for view, is_cached in (("firstView", False), ("repeatView", True)):
            steps = nodes(node(views, view), "steps") or [node(views, view)]
            for place, step in enumerate(steps):
                found.add(run, place + 1, step, nodes(step, "requests"), is_cached=is_cached)
    if not found.entries:
        problem = f"{path}: WebPageTest's result, without the requests of any run"
        raise PageInputError(problem, "download it with its requests: jsonResult.php?test=ID&requests=1")
    return found.page(path, url)


def open_agent(path: Path, url: str = "") -> LoadedPage:
    """The page at `url` in the agent's files, in the ZIP or folder at `path`; as `open_result`.

    Raises:
        PageInputError: It is damaged, or has no such page.
    """
    with _files_of(path) as files:
        found = _Result(_link_of_agent(files, path))
        named = [(match, name) for name in files.names if (match := _AGENT.fullmatch(name))]
        for match, name in sorted(named, key=lambda pair: pair[1]):
            document = parsed(files.read(name), f"{path}: {name}", _HINT)
            result: Node = document if isinstance(document, dict) else {}
            bodies = _bodies(files, re.sub(r"devtools_requests\.json(\.gz)?$", "bodies.zip", name))
            data, run, step = node(result, "pageData"), match[1], int(match[3] or 1)
            found.add(run, step, data, nodes(result, "requests"), bodies, is_cached=match[2] is not None)
    if not found.entries:
        problem = f"{path}: no requests of WebPageTest's agent in it (1_devtools_requests.json.gz)"
        raise PageInputError(problem, "give it as the agent left it, or the result's JSON or HAR")
    return found.page(path, url)


def _runs(document: Node) -> dict[str, Node]:
    runs = node(node(document, "data"), "runs") or node(document, "runs")
    return {
        name: views for name, views in runs.items() if isinstance(views, dict) and node(views, "firstView")
    }


def _link(said: Node, down: str, up: str) -> Node:
    """The link of a test in the form of WebPageTest's HARs: ms and kbit/s."""
    names = {"_latency_rtt_ms": "latency", "_bwDown_kbps": down, "_bwUp_kbps": up}
    return {noted: found for noted, name in names.items() if (found := positive(said, name)) is not None}


def _link_of_agent(files: _Files, path: Path) -> Node:
    if _ORDERED not in files.names:
        return {}
    ordered = parsed(files.read(_ORDERED), f"{path}: {_ORDERED}", _HINT)
    return _link(ordered, "bwIn", "bwOut") if isinstance(ordered, dict) else {}


Bodies = Callable[[str], bytes | None]


def _no_bodies(name: str) -> bytes | None:
    return None


class _Result:
    """Builds the log of a HAR, run by run."""

    def __init__(self, link: Node) -> None:
        self.link = link
        self.pages: list[Node] = []
        self.entries: list[Node] = []

    def add(
        self,
        run: str,
        step: int,
        data: Node,
        requests: list[Node],
        bodies: Bodies = _no_bodies,
        *,
        is_cached: bool,
    ) -> None:
        """Adds the requests of one step of a run; `data` describes the step."""
        name, began_ms = (
            f"run {run}" + (f", step {step}" if step > 1 else ""),
            (positive(data, "date") or 0.0) * 1000,
        )
        name += ", repeat view" if is_cached else ""
        self.pages.append(
            {
                "id": name,
                "startedDateTime": iso_time(began_ms),
                "pageTimings": {"onLoad": positive(data, "loadTime") or positive(data, "docTime") or -1},
                "_run": run,
                "_cached": int(is_cached),
                **self.link,
            }
        )
        self.entries += [_entry(request, name, began_ms, bodies) for request in requests]

    def page(self, path: Path, url: str) -> LoadedPage:
        """The page at `url`."""
        return page_of_log(
            {"pages": self.pages, "entries": self.entries}, path, f"WebPageTest {path.name}", url
        )


def _entry(request: Node, page: str, began_ms: float, bodies: Bodies) -> Node:
    asked, answered = (_fields(node(request, "headers").get(side)) for side in ("request", "response"))
    times, protocol = Times.of(request), text(request, "protocol")
    mime = text(request, "contentType") or _value(answered, "content-type")
    kept = bodies(text(request, "body_file"))
    content: Node = {"size": request.get("objectSizeUncompressed"), "mimeType": mime}
    if kept is not None:
        content |= {"size": len(kept), "text": base64.b64encode(kept).decode(), "encoding": "base64"}
    posted = _value(asked, "content-length")
    return {
        "pageref": page,
        "startedDateTime": iso_time(began_ms + times.asked_ms),
        "time": times.length_ms,
        "request": {
            "method": text(request, "method") or "GET",
            "url": text(request, "full_url"),
            "httpVersion": protocol,
            "headers": listed(asked),
            "headersSize": None if asked else request.get("bytesOut"),
            "bodySize": int(posted) if posted.isascii() and posted.isdigit() and len(posted) < 12 else -1,
        },
        "response": {
            "status": request.get("responseCode"),
            "httpVersion": protocol,
            "headers": listed(answered),
            "content": content,
            "redirectURL": _value(answered, "location"),
            "headersSize": -1,
            "bodySize": request.get("objectSize"),
        },
        "timings": times.phases,
        "_resourceType": text(request, "request_type"),
        "_initiator": text(request, "initiator"),
        "_initiator_type": text(request, "initiator_type"),
        "_initiator_detail": text(request, "initiator_detail"),
        "_priority": text(request, "priority"),
        "_initial_priority": text(request, "initial_priority"),
        "_renderBlocking": text(request, "renderBlocking"),
        "_cpuTime": request.get("cpuTime"),
        "_socket": request.get("socket"),
        "_ip_addr": text(request, "ip_addr"),
        "_securityDetails": request.get("securityDetails"),
        "_tls_version": text(request, "tls_version"),
        "_bytesIn": request.get("bytesIn"),
        "_certificate_bytes": certificate_bytes(request.get("certificates")),
    }


def _fields(lines: object) -> list[tuple[str, str]]:
    """Header fields from lines `name: value`. Status and request lines are left out."""
    parts = (
        (line.partition(": ") for line in lines if isinstance(line, str)) if isinstance(lines, list) else ()
    )
    return [(name, value) for name, colon, value in parts if colon and not name.startswith("HTTP/")]


def _value(fields: list[tuple[str, str]], name: str) -> str:
    return next((value for key, value in fields if key.lower() == name), "")


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a result, by name; their sizes are limited."""

    names: list[str]
    read: Callable[[str], bytes]


@contextmanager
def _files_of(path: Path) -> Iterator[_Files]:
    budget = Budget(str(path))
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.is_file())[:_MOST_FILES]
        yield _Files(names, lambda name: _unzipped(_whole(path / name), f"{path}/{name}", budget))
        return
    with _zip(_whole(path), str(path)) as archive:
        yield _Files(
            archive.namelist(),
            lambda name: _unzipped(_member(archive, name, str(path), budget), f"{path}: {name}", budget),
        )


def _whole(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_ZIPPED + 1)
    except OSError as error:
        raise PageInputError(
            f"{file}: {error.strerror or error}", "check the path and its permissions"
        ) from None
    if len(data) > _MOST_ZIPPED:
        raise PageInputError(
            f"{file}: more than {_MOST_ZIPPED >> 20} MiB", "give one result alone, without video"
        )
    return data


@contextmanager
def _zip(data: bytes, place: str) -> Iterator[zipfile.ZipFile]:
    # `zipfile` makes an object for each name, without a limit.
    if (count := data.count(_NAMED)) > _MOST_FILES:
        raise PageInputError(f"{place}: {count} files in it are too many", "give one result alone")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # zipfile raises any exception, depending on its input
        raise PageInputError(f"{place}: no ZIP: {str(error)[:120] or type(error).__name__}", _HINT) from None
    with archive:
        yield archive


def _member(archive: zipfile.ZipFile, name: str, place: str, budget: Budget) -> bytes:
    budget.member()
    try:
        with archive.open(name) as file:
            data = file.read(MOST_BYTES + 1)
    except Exception as error:  # as above
        raise PageInputError(
            f"{place}: {name[:80]}: {str(error)[:120] or type(error).__name__}", _HINT
        ) from None
    return _bounded(data, f"{place}: {name[:80]}", budget)


def _bounded(data: bytes, place: str, budget: Budget) -> bytes:
    budget.spend(len(data))
    if len(data) > MOST_BYTES:
        raise PageInputError(
            f"{place}: more than {MOST_BYTES >> 20} MiB", "give one result alone, without bodies"
        )
    return data


def _unzipped(data: bytes, place: str, budget: Budget) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            return _bounded(file.read(MOST_BYTES + 1), place, budget)
    except (EOFError, OSError, zlib.error) as error:
        raise PageInputError(f"{place}: not whole gzip: {error}", _HINT) from None


def _bodies(files: _Files, name: str) -> Bodies:
    """A function that returns a body from the agent's ZIP of bodies, or `None` if there is no such ZIP."""
    if name not in files.names:
        return _no_bodies
    data, budget = files.read(name), Budget(name)
    with _zip(data, name) as archive:
        held = {member: _member(archive, member, name, budget) for member in archive.namelist()[:_MOST_FILES]}
    return held.get
