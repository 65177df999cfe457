"""What happened while a request waited for a connection: whom it waited behind, and their handshakes.

A browser opens six connections to an origin at most. A seventh request waits until one is free, and with it
for the handshakes of those before it on that connection (or, without keep-alive, in its place). TFO saves
those, too, so they count towards what it could save.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firstflight.analysis.critical_path_fetch import Segment, fetch
from firstflight.analysis.critical_path_load import Load, Row, started_ms

_RELEASE_MS = 5.0
"""A connection, or its place, is taken within this time of the end of the response before."""

_AT_ONCE_MS = 0.5
"""A request sent so soon after its discovery found a connection that was free."""

_OPENING_MS = 2.0
"""The relay sees a SYN within this time of the request that made the client open a connection."""


@dataclass(frozen=True)
class Wait:
    """A stretch of waiting for a connection.

    Attributes:
        request: Index of the resource that waited.
        ms: How long.
        behind: Indices of the resources that held its connection or its place, last one first.
        handshakes: TCP handshakes of those within the stretch, whole or in part.
        opening: A connection was being opened for it meanwhile, and another became free first.
    """

    request: int
    ms: float
    behind: tuple[int, ...]
    handshakes: tuple[Segment, ...]
    opening: bool


def explain_wait(load: Load, segment: Segment) -> Wait:
    """What happened in a `connection` segment of a path."""
    row = load.by_index[segment.request]
    behind: list[int] = []
    handshakes: list[Segment] = []
    free_ms, holder = segment.end_ms, _holder(load, row, segment.end_ms)
    while holder is not None and int(holder["index"]) not in behind and free_ms > segment.start_ms:
        use = [part for part in fetch(load, holder, free_ms) if part.component != "connection"]
        handshakes += [part for part in use if part.component == "tcp" and part.end_ms > segment.start_ms]
        behind.append(int(holder["index"]))
        free_ms = use[0].start_ms if use else started_ms(holder)
        holder = _holder(load, holder, free_ms)
    within = (replace(part, start_ms=max(part.start_ms, segment.start_ms)) for part in handshakes)
    return Wait(segment.request, segment.ms, tuple(behind), tuple(within), _opening(load, segment))


def _holder(load: Load, row: Row, free_ms: float) -> Row | None:
    """The request whose end set free what this one took at that moment."""
    found = [
        other
        for other in load.requests
        if other is not row
        and other["origin"] == row["origin"]
        and other["end_ms"] is not None
        and free_ms - _RELEASE_MS <= other["end_ms"] <= free_ms
        and (load.opened(row) or other["connection"] == row["connection"])
    ]
    return max(found, key=lambda other: float(other["end_ms"]), default=None)


def _opening(load: Load, segment: Segment) -> bool:
    """Whether as many connections to the origin were opened as requests began to wait at that moment."""
    origin = load.by_index[segment.request]["origin"]
    opened = [row["opened_ms"] for row in load.connections() if row["origin"] == origin]
    waiting = [row for row in load.requests if row["origin"] == origin and _waited(row)]
    began = [started_ms(row) for row in waiting]
    return _count_near(opened, segment.start_ms) >= _count_near(began, segment.start_ms)


def _waited(row: Row) -> bool:
    return row["sent_ms"] is None or row["sent_ms"] - started_ms(row) > _AT_ONCE_MS


def _count_near(moments: list[float], at_ms: float) -> int:
    return sum(at is not None and abs(at - at_ms) <= _OPENING_MS for at in moments)
