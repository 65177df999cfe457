"""A load's rows in the form that critical paths need: what each request did, and which others it waited for.

A request's time is divided into components, from its discovery to any moment of its response. The parts that
the rows show are measured: waiting for a connection, its handshake, the wait for the first byte, the body.
The parts of a wait are computed from the path and the page: each gets its minimum, and the remainder is
queueing. Lost packets are not modelled. Recovery from a loss counts as handshake (a SYN), as queueing (before
the first byte) or as congestion window (in a body).

A browser opens at most six connections to an origin. A seventh request waits until one is free. It thereby
waits for the handshakes of earlier requests on that connection, or, without keep-alive, of the connection
before. TFO saves those as well, so they count as time that it could save.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from firstflight.model.page import Page, Resource
from firstflight.results import ConnectionRow, LoadRecord, RequestRow

Row = RequestRow

MSS_BYTES = 1448
"""Data in a full segment over IPv4: an MTU of 1,500 bytes minus the headers."""

HEADER_BYTES = 52
"""IPv4 and TCP headers with the timestamp option."""

IPV6_HEADER_BYTES = 72
"""IPv6 and TCP headers with the timestamp option."""


class Load:
    """A load's rows with its page.

    Args:
        record: One load: its row of `loads`, its rows of `requests` and `connections`.
        page: The page as it was loaded.
    """

    def __init__(self, record: LoadRecord, page: Page) -> None:
        self.row = record["load"]
        self.requests: list[Row] = [row for row in record["requests"] if times(row)]
        self.page = page
        self.rtt_ms = float(self.row["rtt_ms"])
        self._connections = {row["connection"]: row for row in record["connections"]}

    @property
    def is_modelled(self) -> bool:
        """Whether the built-in loader made it. Only then can the main thread be computed from the rows."""
        return bool(self.row["client"] == "loader")

    @cached_property
    def by_index(self) -> dict[int, Row]:
        """The first request for each resource, in order of index."""
        ordered = sorted(self.requests, key=lambda row: (-int(row["index"]), -started_ms(row)))
        return {int(row["index"]): row for row in reversed(ordered)}

    def resource(self, row: Row) -> Resource | None:
        """The page's resource of a request; `None` for one that the page does not have."""
        index = int(row["index"])
        return self.page.resources[index] if index < len(self.page.resources) else None

    def initiator(self, row: Row) -> Row | None:
        """The request whose response caused this one.

        If that one was never sent, its own initiator; if none is known, the document.
        """
        document = self.by_index.get(0, self.requests[0])
        index = row["initiator"]
        while index is not None and index not in self.by_index:
            above = self.page.resources[index].initiator if index < len(self.page.resources) else None
            index = above.resource if above else None
        found = document if index is None else self.by_index[index]
        return None if found is row or row is document else found

    def connection(self, row: Row) -> ConnectionRow | None:
        """The connection of a request as the relay's ledger has it; empty if the request was never sent."""
        return None if row["connection"] is None else self._connections.get(row["connection"])

    def carried_in_syn(self, row: Row) -> bool:
        """Whether the SYN of a request's connection carried data that the SYN-ACK acknowledged."""
        connection = self.connection(row)
        return bool(connection and connection["syn_data_acked"])

    def connections(self) -> Iterable[ConnectionRow]:
        """All connections of the load."""
        return self._connections.values()

    def opened(self, row: Row) -> bool:
        """Whether the request waited for its connection to be opened."""
        return row["connect_start_ms"] is not None

    @cached_property
    def _answers(self) -> list[tuple[Row, float, float | None, float, float]]:
        """Responses that began: row, first byte and end, ms; bytes of the first segment and of the rest."""
        return [
            (
                row,
                float(row["first_byte_ms"]),
                None if row["end_ms"] is None else float(row["end_ms"]),
                first_bytes(row),
                float(row["wire_bytes"] or 0) - first_bytes(row),
            )
            for row in self.requests
            if row["first_byte_ms"] is not None
        ]

    def beside_bytes(self, row: Row, start_ms: float, end_ms: float) -> float:
        """Bytes of other responses that crossed the link of a request within a time.

        The first segment of a response counts at its first byte, the rest evenly until its end.
        """
        star, found = self.row["topology"] == "star", 0.0
        for other, first_ms, last_ms, first, rest in self._answers:
            if first_ms >= end_ms or (last_ms is not None and last_ms < start_ms) or other is row:
                continue
            if star and other["origin"] != row["origin"]:
                continue
            if first_ms >= start_ms:
                found += first
            last = last_ms or end_ms
            common = min(end_ms, last) - max(start_ms, first_ms)
            if common > 0:
                found += rest * common / (last - first_ms)
        return found

    def down_ms(self, data_bytes: float) -> float:
        """How long full segments with this data keep the link towards the client busy, ms."""
        return _busy_ms(data_bytes, self.row["down_mbps"], self.row["ip"])

    def up_ms(self, data_bytes: float) -> float:
        """How long full segments with this data keep the link from the client busy, ms."""
        return _busy_ms(data_bytes, self.row["up_mbps"], self.row["ip"])


def times(row: Row) -> list[float]:
    """The known times of a request in their order, ms; empty if it was never discovered."""
    known = (
        row["queued_ms"],
        row["connect_start_ms"],
        row["connect_end_ms"],
        row["sent_ms"],
        row["first_byte_ms"],
        row["end_ms"],
    )
    return [float(moment) for moment in known if moment is not None]


def ended_ms(row: Row) -> float:
    """When the response was complete, ms.

    Raises:
        ValueError: It was never complete.
    """
    if row["end_ms"] is None:
        raise ValueError(f"{row['url']}: no complete response")
    return float(row["end_ms"])


def first_bytes(row: Row) -> float:
    """Bytes of a response in its first segment."""
    return min(float(MSS_BYTES), float(row["wire_bytes"] or 0))


def started_ms(row: Row) -> float:
    """When the request was discovered, ms: its first known time."""
    return max(0.0, times(row)[0])


def _busy_ms(data_bytes: float, rate_mbps: float | None, ip: str) -> float:
    if not rate_mbps or data_bytes <= 0:
        return 0.0
    header_bytes = IPV6_HEADER_BYTES if ip == "6" else HEADER_BYTES
    segments = -(-data_bytes // (MSS_BYTES + HEADER_BYTES - header_bytes))
    return (data_bytes + segments * header_bytes) * 8 / (rate_mbps * 1000)


Component = Literal[
    "tcp",
    "tls",
    "quic",
    "connection",
    "request",
    "propagation",
    "server",
    "queueing",
    "window",
    "transfer",
    "processing",
]
"""What a part of the PLT was spent on, in the order of views; `docs/explain.md` explains each."""

_SYN_RTO_MS = 1000.0
"""Time before the first retransmission of a SYN; it doubles (RFC 6298, section 2.1; `TCP_TIMEOUT_INIT`)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A period that one request spent on one component.

    Attributes:
        request: Index of the resource.
        component: What the time was spent on.
        start_ms: Start, ms after navigation start.
        end_ms: End, ms after navigation start.
    """

    request: int
    component: Component
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        """Its duration, ms."""
        return self.end_ms - self.start_ms


def fetch(load: Load, row: Row, until_ms: float, body_bytes: int | None = None) -> list[Segment]:
    """What a request did from its discovery until `until_ms`: segments without gaps; none is empty.

    Args:
        load: The load that the request belongs to.
        row: The request.
        until_ms: The end. The last known stage of the request continues until its next time or this one.
        body_bytes: Bytes of the body that had arrived by then; `None`: all.
    """
    segments: list[Segment] = []
    at = min(started_ms(row), until_ms)
    for end_ms, parts in _stages(load, row, until_ms, body_bytes):
        if end_ms > at:
            segments += _lay(int(row["index"]), parts, at, end_ms)
            at = end_ms
    return segments


def syn_timeouts_ms(load: Load, row: Row) -> float:
    """By how much lost SYNs delayed the connection of a request, ms."""
    connection = load.connection(row)
    lost = connection["syn_retransmits"] if connection else 0
    return _SYN_RTO_MS * float(2**lost - 1)


Parts = list[tuple[Component, float]]
"""Components with the minimum time of each, ms. The last one takes the remainder."""


def _stages(load: Load, row: Row, until_ms: float, body_bytes: int | None) -> Iterator[tuple[float, Parts]]:
    """The end of each stage and its parts. A stage that never ended lasts until `until_ms`."""
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
    """The handshakes of a connection. With TLS, TCP gets its minimum, and TLS the remainder."""
    connection = load.connection(row)
    if connection and connection.get("protocol") == "udp":
        return [("quic", 0.0)]
    if not str(row["url"]).startswith("https:"):
        return [("tcp", 0.0)]
    return [("tcp", _tcp_handshake_ms(load, row)), ("tls", 0.0)]


def _answer(load: Load, row: Row) -> Parts:
    """From the request to its first byte. If the server refused the SYN's data, it includes a handshake."""
    resource, refused = load.resource(row), load.opened(row) and not _over_tls(row) and _offered(load, row)
    return [
        ("tcp", _tcp_handshake_ms(load, row) if refused else 0.0),
        ("propagation", load.rtt_ms),
        ("server", resource.server_ms if resource else 0.0),
        ("request", load.up_ms(resource.request_bytes if resource else 0)),
        ("transfer", load.down_ms(first_bytes(row))),
        ("queueing", 0.0),
    ]


def _body(load: Load, row: Row, start_ms: float, until_ms: float, body_bytes: int | None) -> Parts:
    """From the first byte on: its own bytes, other responses on the link; the remainder waits for ACKs."""
    wire_bytes, whole = row["wire_bytes"] or 0, row["body_bytes"] or 0
    arrived = wire_bytes - whole + min(whole if body_bytes is None else body_bytes, whole)
    end_ms = _clip(row["end_ms"], until_ms)
    others = load.beside_bytes(row, start_ms, end_ms)
    return [
        ("transfer", load.down_ms(max(0.0, arrived - MSS_BYTES))),
        ("queueing", load.down_ms(others)),
        ("window", 0.0),
    ]


def _tcp_handshake_ms(load: Load, row: Row) -> float:
    """The minimum time of the TCP handshake; 0 if the SYN's data were accepted."""
    if load.carried_in_syn(row):
        return 0.0
    return load.rtt_ms + syn_timeouts_ms(load, row)


def _offered(load: Load, row: Row) -> bool:
    connection = load.connection(row)
    return bool(connection and connection["syn_payload_bytes"])


def _over_tls(row: Row) -> bool:
    return str(row["url"]).startswith("https:")


def _lay(request: int, parts: Parts, start_ms: float, end_ms: float) -> Iterator[Segment]:
    """Gives each part its minimum while time remains, and the last part the remainder.

    The real order of the parts within a wait is not known; they are put one after the other.
    """
    at = start_ms
    for number, (component, least_ms) in enumerate(parts, start=1):
        end = end_ms if number == len(parts) else min(end_ms, at + least_ms)
        if end > at:
            yield Segment(request, component, at, end)
        at = max(at, end)


_RELEASE_MS = 5.0
"""A connection, or its slot, is reused within this time of the end of the previous response."""

_AT_ONCE_MS = 0.5
"""A request that was sent so soon after its discovery found a free connection."""

_OPENING_MS = 2.0
"""The relay sees a SYN within this time of the request that made the client open the connection."""


@dataclass(frozen=True)
class Wait:
    """A period of waiting for a connection.

    Attributes:
        request: Index of the resource that waited.
        ms: Its duration.
        behind: Indices of the resources that used the connection or its slot before, the last one first.
        handshakes: The parts of their TCP handshakes that lie within the period.
        opening: Whether the client was opening a connection for it, and another one became free first.
    """

    request: int
    ms: float
    behind: tuple[int, ...]
    handshakes: tuple[Segment, ...]
    opening: bool


def explain_wait(load: Load, segment: Segment) -> Wait:
    """What happened during a `connection` segment of a path."""
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
    """The request whose end freed, at `free_ms`, the connection or slot that this one took."""
    found = [
        other
        for other in load.requests
        if other is not row
        and other["origin"] == row["origin"]
        and other["end_ms"] is not None
        and free_ms - _RELEASE_MS <= other["end_ms"] <= free_ms
        and (load.opened(row) or other["connection"] == row["connection"])
    ]
    return max(found, key=ended_ms, default=None)


def _opening(load: Load, segment: Segment) -> bool:
    """Whether the client opened a connection for each request to the origin that began to wait then."""
    origin = load.by_index[segment.request]["origin"]
    opened = [row["opened_ms"] for row in load.connections() if row["origin"] == origin]
    waiting = [row for row in load.requests if row["origin"] == origin and _waited(row)]
    began = [started_ms(row) for row in waiting]
    return _count_near(opened, segment.start_ms) >= _count_near(began, segment.start_ms)


def _waited(row: Row) -> bool:
    return row["sent_ms"] is None or row["sent_ms"] - started_ms(row) > _AT_ONCE_MS


def _count_near(moments: Sequence[float | None], at_ms: float) -> int:
    return sum(at is not None and abs(at - at_ms) <= _OPENING_MS for at in moments)
