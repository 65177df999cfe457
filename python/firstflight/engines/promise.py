"""What a load promises besides its mode, where treatments differ in it; and whether its own rows keep it.

The laboratory and the simulator hold every load to its mode, its cookie state and its transport: initial
window, congestion control, ECN and key share of TLS (`crates/load/src/promise.rs`). Here it is held to the
other keys in which the treatments of its plan differ, as far as its rows of requests and connections are a
witness: `scheme`, `http` and `keep_alive`. Nothing holds a load to times and to what the path does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, cast

from firstflight.model.load import PlannedLoad
from firstflight.results.records import ConnectionRow, RequestRow

_AT_ONCE_MS = 1.0
"""A response may end, and the next request leave, this much out of order in rows of different clocks."""


def broken_promises(
    planned: PlannedLoad, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> list[str]:
    """How a load that ended ok breaks what its treatment promises; rows that were not kept say nothing.

    Args:
        planned: What was asked for.
        requests: Its rows of requests.
        connections: Its rows of connections.
    """
    keys = [key for key in planned.compared if key in _PROMISES]
    return [text for key in keys for text in _PROMISES[key](getattr(planned, key), requests, connections)]


def _scheme(
    scheme: str, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> Iterator[str]:
    if scheme == "recorded":
        return
    other = [row["origin"] for row in connections if row["origin"] and not _is_of(row, scheme)]
    if other:
        yield f"scheme={scheme}: {len(other)} of {len(connections)} connections to {other[0]}"


def _http(http: str, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]) -> Iterator[str]:
    """HTTP/2 has one connection an origin; HTTP/1.1 sends a request once the response before it has ended."""
    if http == "2":
        # An origin's connection that broke is opened anew: those that never carried a request do not count.
        used = {row["connection"] for row in requests if row["sent_ms"] is not None}
        secure = [row["origin"] for row in connections if _is_of(row, "https") and row["connection"] in used]
        failed = {row["origin"] for row in requests if row["end_ms"] is None}
        if several := sorted({origin for origin in secure if secure.count(origin) > 1} - failed):
            yield f"http=2: {secure.count(several[0])} connections to {several[0]}"
        return
    for connection, rows in _by_connection(requests).items():
        if not all(_is_of(row, "https") for _, row in rows):
            continue
        for (_, before), (sent_ms, after) in pairwise(rows):
            if before["end_ms"] is not None and sent_ms < before["end_ms"] - _AT_ONCE_MS:
                yield f"http=1.1: two requests at once on connection {connection} to {after['origin']}"
                return


def _keep_alive(
    keep_alive: bool, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> Iterator[str]:
    if keep_alive:
        return
    for connection, rows in _by_connection(requests).items():
        if len(rows) > 1:
            origin = rows[0][1]["origin"]
            yield f"keep_alive=false: {len(rows)} requests on connection {connection} to {origin}"
            return


_PROMISES: Mapping[str, Callable[[Any, Sequence[RequestRow], Sequence[ConnectionRow]], Iterator[str]]] = {
    "scheme": _scheme,
    "http": _http,
    "keep_alive": _keep_alive,
}


def _is_of(row: RequestRow | ConnectionRow, scheme: str) -> bool:
    return str(row["origin"]).startswith(f"{scheme}:")


def _by_connection(requests: Sequence[RequestRow]) -> dict[int, list[tuple[float, RequestRow]]]:
    """The requests that each connection carried, with when each was sent, ms, in that order."""
    sent = [(row["sent_ms"], row) for row in requests if row["connection"] is not None]
    known = [(sent_ms, row) for sent_ms, row in sent if sent_ms is not None]
    found: dict[int, list[tuple[float, RequestRow]]] = {}
    for sent_ms, row in sorted(known, key=itemgetter(0)):
        found.setdefault(cast(int, row["connection"]), []).append((sent_ms, row))
    return found
