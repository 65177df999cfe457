"""A request's life cut into phases, and the requests of two loads put on common rows. No drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PHASES = ("queued", "connect", "wait", "receive")
"""Waiting for a connection; opening one; waiting for the first byte; receiving."""

PHASE_NAMES = {
    "queued": "waiting for a connection",
    "connect": "connecting",
    "wait": "waiting for the answer",
    "receive": "receiving",
}
"""Phases as views name them."""

Request = Mapping[str, Any]
RowKey = tuple[str, int]


@dataclass(frozen=True)
class Bar:
    """One phase of one request, from `start_ms` to `end_ms` after navigation start."""

    row: RowKey
    phase: str
    start_ms: float
    end_ms: float


def bars(requests: Sequence[Request]) -> Iterator[Bar]:
    """The phases of a load's requests; phases that took no time are left out."""
    for row, request in rows(requests).items():
        for phase, (start_ms, end_ms) in phases(request).items():
            if end_ms > start_ms:
                yield Bar(row, phase, start_ms, end_ms)


def phases(request: Request) -> dict[str, tuple[float, float]]:
    """Start and end of each phase of one request, ms; a request that broke off has none after its last event.

    Connecting ends when the request is written. With TFO that is before the handshake ends: the point of it.
    """
    events = moments(request)
    found = {}
    for phase, begin, end in zip(PHASES, events, events[1:], strict=False):
        if begin is not None and end is not None:
            found[phase] = (float(begin), max(float(begin), float(end)))
    return found


def moments(request: Request) -> tuple[float | None, ...]:
    """When each phase of a request begins and, last, when the last one ends, ms; None where not known."""
    sent = request["sent_ms"]
    start = request["connect_start_ms"] if request["connect_start_ms"] is not None else sent
    connected = sent if sent is not None else request["connect_end_ms"]
    return (request["queued_ms"], start, connected, request["first_byte_ms"], request["end_ms"])


def broke_off(requests: Sequence[Request]) -> Iterator[tuple[RowKey, float]]:
    """Requests that got no complete response, with the time of their last event, ms."""
    for row, request in rows(requests).items():
        if request["end_ms"] is None:
            yield (
                row,
                max((float(request[name]) for name in _EVENTS if request[name] is not None), default=0.0),
            )


def rows(requests: Sequence[Request]) -> dict[RowKey, Request]:
    """Requests by URL and how many of the same URL came before: one row is one URL in every load."""
    seen: Counter[str] = Counter()
    found: dict[RowKey, Request] = {}
    for request in sorted(requests, key=lambda request: int(request["index"])):
        url = str(request["url"])
        found[url, seen[url]] = request
        seen[url] += 1
    return found


def row_order(baseline: Sequence[Request], treatment: Sequence[Request]) -> list[RowKey]:
    """Rows from top to bottom: by start in the baseline, then what only the other load asked for."""
    first, second = _by_start(baseline), _by_start(treatment)
    known = set(first)
    return [*first, *(row for row in second if row not in known)]


_EVENTS = ("queued_ms", "connect_start_ms", "sent_ms", "first_byte_ms")


def _by_start(requests: Sequence[Request]) -> list[RowKey]:
    found = rows(requests)
    return sorted(found, key=lambda row: (_start_ms(found[row]), int(found[row]["index"])))


def _start_ms(request: Request) -> float:
    return min((float(request[name]) for name in _EVENTS if request[name] is not None), default=float("inf"))
