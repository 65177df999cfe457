"""Combines what the laboratory and the browser reported of a load.

The laboratory reports what crossed the wire: connections, bytes, status. The browser reports times, and
requests that were never sent.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from firstflight.engines.clients.job import BLOCKED, Drive, Fetch
from firstflight.engines.engine import Answer
from firstflight.pages import Page
from firstflight.results.records import RequestRow
from firstflight.text import plural

_TIMES = ("queued_ms", "connect_start_ms", "connect_end_ms", "sent_ms", "first_byte_ms", "end_ms")


def join(answer: Answer, drive: Drive, page: Page) -> Answer:
    """The laboratory's answer with the browser's times added.

    Args:
        answer: The laboratory's answer.
        drive: The driver's result.
        page: The page that was loaded.
    """
    indices = _indices(page)
    waiting = _by_url(drive.fetches)
    rows = [_timed(row, waiting[row["url"]], indices) for row in answer["requests"]]
    unsent = [fetch for fetches in waiting.values() for fetch in fetches if _was_lost(fetch)]
    strays = sum(row["index"] >= len(page.resources) for row in rows)
    for fetch in unsent:
        index = indices.get(_bare(fetch.url))
        if index is None:
            index, strays = len(page.resources) + strays, strays + 1
        rows.append(_unsent_row(fetch, index, indices))
    joined: Answer = {
        **answer,
        "requests": sorted(rows, key=lambda row: (row["queued_ms"] is None, row["queued_ms"])),
        "unmatched_requests": answer["unmatched_requests"]
        + sum(_bare(fetch.url) not in indices for fetch in unsent),
        "browser": {"version": drive.browser, "sandboxed": drive.sandboxed, **drive.marks},
    }
    early = [row for row in answer["connections"] if (row["opened_ms"] or 0.0) < 0]
    if drive.broken:
        return {**joined, "broken": True}
    if early and answer["status"] == "ok":
        error = f"the browser opened {plural(len(early), 'connection')} before navigation"
        return {**joined, "status": "failed", "error": error}
    return joined


def in_the_clear(url: str) -> str:
    """The URL where the laboratory serves an https origin without TLS (`clear_scheme` in crates/page)."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return url
    return urlunsplit(parts._replace(scheme="http", netloc=re.sub(r":(443|80)$", "", parts.netloc)))


def _indices(page: Page) -> dict[str, int]:
    """Indices of resources by URL, with TLS and without. Of several with the same URL the first counts."""
    indices: dict[str, int] = {}
    for index, resource in enumerate(page.resources):
        indices.setdefault(_bare(resource.url), index)
        indices.setdefault(in_the_clear(_bare(resource.url)), index)
    return indices


def _by_url(fetches: Iterable[Fetch]) -> defaultdict[str, deque[Fetch]]:
    """Requests that may have reached a server, by URL, in the order in which they were sent."""
    waiting: defaultdict[str, deque[Fetch]] = defaultdict(deque)
    network = (fetch for fetch in fetches if not fetch.cached and fetch.error != BLOCKED)
    for fetch in sorted(network, key=lambda fetch: fetch.sent_ms or fetch.queued_ms):
        waiting[_bare(fetch.url)].append(fetch)
    return waiting


def _timed(row: RequestRow, fetches: deque[Fetch], indices: dict[str, int]) -> RequestRow:
    if not fetches:
        return row
    fetch = fetches.popleft()
    # The browser calls a response aborted if no script reads it. The laboratory knows whether it arrived, and
    # when.
    times = {key: getattr(fetch, key) for key in _TIMES if getattr(fetch, key) is not None}
    reused = {} if fetch.connect_start_ms is not None else {"connect_start_ms": None, "connect_end_ms": None}
    alone = _interleaved(row, fetch, indices)
    return cast(RequestRow, {**row, **times, **reused, **alone, "initiator": _initiator(fetch, indices)})


def _interleaved(row: RequestRow, fetch: Fetch, indices: dict[str, int]) -> dict[str, object]:
    """HTTP/2 and 3 interleave responses: only the browser knows the size of each, and if it was complete."""
    if (
        fetch.protocol not in {"h2", "h3"}
        or fetch.error
        or fetch.end_ms is None
        or _bare(row["url"]) not in indices
    ):
        return {}
    return {"wire_bytes": fetch.wire_bytes, "error": None}


def _was_lost(fetch: Fetch) -> bool:
    """Whether the browser meant to send it, and no server received it."""
    return fetch.sent_ms is None and fetch.status is None


def _unsent_row(fetch: Fetch, index: int, indices: dict[str, int]) -> RequestRow:
    row = {
        "index": index,
        "url": fetch.url,
        "origin": _origin(fetch.url),
        "connection": None,
        **{key: getattr(fetch, key) for key in _TIMES},
        "status": None,
        "mime": None,
        "body_bytes": None,
        "wire_bytes": None,
        "initiator": _initiator(fetch, indices),
        "error": fetch.error or "never sent",
    }
    return cast(RequestRow, row)


def _initiator(fetch: Fetch, indices: dict[str, int]) -> int | None:
    return indices.get(_bare(fetch.initiator)) if fetch.initiator else None


def _bare(url: str) -> str:
    """The URL without its fragment, which is not sent to servers."""
    return url.partition("#")[0]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
