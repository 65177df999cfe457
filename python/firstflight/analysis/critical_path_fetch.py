"""A request's life cut into components, from its discovery to any moment of its response.

What the rows tell apart is measured: waiting for a connection, its handshake, the wait for the first byte,
the body. What happens inside a wait is computed from the path and the page: each part gets what it must take
at least, in the order below, and what is left over is queueing. Left out: lost packets. Recovering from one
counts as handshake (a SYN), as queueing (before the first byte) or as congestion window (in a body).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from firstflight.analysis.critical_path_load import MSS_BYTES, Load, Row, started_ms

Component = Literal[
    "processing",
    "connection",
    "tcp",
    "tls",
    "request",
    "propagation",
    "server",
    "queueing",
    "window",
    "transfer",
]
"""What a part of the PLT was spent on; `docs/explain.md` says how each is found."""

_SYN_RTO_MS = 1000.0
"""Before a SYN is sent again, doubling each time (RFC 6298, section 2.1; Linux `TCP_TIMEOUT_INIT`)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of time spent on one component of one request.

    Attributes:
        request: Index of the resource.
        component: What the time was spent on.
        start_ms: After navigation start.
        end_ms: After navigation start.
    """

    request: int
    component: Component
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        """How long it took."""
        return self.end_ms - self.start_ms


def fetch(load: Load, row: Row, until_ms: float, body_bytes: int | None = None) -> list[Segment]:
    """What a request did from its discovery until a moment: segments without gaps, of more than no time.

    Args:
        load: Whose request it is.
        row: The request.
        until_ms: The moment. What the request was last known to do goes on until its next moment or this.
        body_bytes: Bytes of the body that had arrived by then; all by default.
    """
    segments: list[Segment] = []
    at = min(started_ms(row), until_ms)
    for end_ms, parts in _stages(load, row, until_ms, body_bytes):
        if end_ms > at:
            segments += _lay(int(row["index"]), parts, at, end_ms)
            at = end_ms
    return segments


def syn_timeouts_ms(load: Load, row: Row) -> float:
    """How long lost SYNs held up the connection of a request, ms."""
    lost = int(load.connection(row).get("syn_retransmits", 0))
    return _SYN_RTO_MS * float(2**lost - 1)


Parts = list[tuple[Component, float]]
"""Components with the least time each takes, ms. The last takes the rest."""


def _stages(load: Load, row: Row, until_ms: float, body_bytes: int | None) -> Iterator[tuple[float, Parts]]:
    """When each stage ends, and what is in it. A stage that never ended lasts until the moment asked for."""
    start, connected, sent = row["connect_start_ms"], row["connect_end_ms"], row["sent_ms"]
    if start is None:
        yield _clip(sent, until_ms), [("connection", 0.0)]
    else:
        yield _clip(start, until_ms), [("connection", 0.0)]
        written = min((at for at in (connected, sent) if at is not None), default=None)
        yield _clip(written, until_ms), _handshake(load, row)
    yield _clip(sent, until_ms), [("request", 0.0)]
    first_byte = _clip(row["first_byte_ms"], until_ms)
    if sent is not None:
        yield first_byte, _answer(load, row)
    yield _clip(row["end_ms"], until_ms), _body(load, row, first_byte, until_ms, body_bytes)


def _clip(at_ms: float | None, until_ms: float) -> float:
    return until_ms if at_ms is None else min(float(at_ms), until_ms)


def _handshake(load: Load, row: Row) -> Parts:
    """A connection being opened: without TLS all of it is TCP's; with it TCP has what it needs at least."""
    if not str(row["url"]).startswith("https:"):
        return [("tcp", 0.0)]
    return [("tcp", _tcp_handshake_ms(load, row)), ("tls", 0.0)]


def _answer(load: Load, row: Row) -> Parts:
    """From the request to its first byte. A SYN whose data were refused hides a handshake in here."""
    resource, refused = load.resource(row), load.opened(row) and not _over_tls(row) and _offered(load, row)
    return [
        ("tcp", _tcp_handshake_ms(load, row) if refused else 0.0),
        ("propagation", load.rtt_ms),
        ("server", resource.server_ms if resource else 0.0),
        ("request", load.up_ms(resource.request_bytes if resource else 0)),
        ("transfer", load.down_ms(_first_bytes(row))),
        ("queueing", 0.0),
    ]


def _body(load: Load, row: Row, start_ms: float, until_ms: float, body_bytes: int | None) -> Parts:
    """From the first byte on: its own bytes, those of others on the link, and the rest waits for ACKs."""
    wire_bytes, whole = row["wire_bytes"] or 0, row["body_bytes"] or 0
    arrived = wire_bytes - whole + min(whole if body_bytes is None else body_bytes, whole)
    end_ms = _clip(row["end_ms"], until_ms)
    others = sum(_arriving(other, start_ms, end_ms) for other in load.neighbours(row))
    return [
        ("transfer", load.down_ms(max(0.0, arrived - MSS_BYTES))),
        ("queueing", load.down_ms(others)),
        ("window", 0.0),
    ]


def _tcp_handshake_ms(load: Load, row: Row) -> float:
    """What the TCP handshake takes at least: nothing if the SYN's data were accepted."""
    if load.connection(row).get("syn_data_acked"):
        return 0.0
    return load.rtt_ms + syn_timeouts_ms(load, row)


def _offered(load: Load, row: Row) -> bool:
    return bool(load.connection(row).get("syn_payload_bytes"))


def _over_tls(row: Row) -> bool:
    return str(row["url"]).startswith("https:")


def _first_bytes(row: Row) -> float:
    return min(float(MSS_BYTES), float(row["wire_bytes"] or 0))


def _arriving(row: Row, start_ms: float, end_ms: float) -> float:
    """Bytes of a response that arrived within a time: its first segment at once, the rest evenly."""
    if row["first_byte_ms"] is None:
        return 0.0
    first_ms, last_ms = float(row["first_byte_ms"]), float(row["end_ms"] or end_ms)
    first = _first_bytes(row) if start_ms <= first_ms < end_ms else 0.0
    common = min(end_ms, last_ms) - max(start_ms, first_ms)
    if common <= 0:
        return first
    rest = float(row["wire_bytes"] or 0) - _first_bytes(row)
    return first + rest * common / (last_ms - first_ms)


def _lay(request: int, parts: Parts, start_ms: float, end_ms: float) -> Iterator[Segment]:
    """Gives each part its least time while there is some, and the last one the rest.

    Where in a wait each part lies is not known; they stand one after the other.
    """
    at = start_ms
    for number, (component, least_ms) in enumerate(parts, start=1):
        end = end_ms if number == len(parts) else min(end_ms, at + least_ms)
        if end > at:
            yield Segment(request, component, at, end)
        at = max(at, end)
