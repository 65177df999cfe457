"""Removes the effects of a recording's access link, if that link is known.

The recorded end of a response is when the browser had finished it. Two things come before: its bytes crossed
a link that other responses shared, and a busy browser read them. A replay has its own link, so the first must
not count twice. The second is a property of the page. To separate them, the recorded responses cross the
recorded link as a fluid. All active responses share the link's rate equally. None is faster than slow start
permits: its window doubles each round trip, from the initial window plus what its connection had carried
before. A recorded end that is earlier counts as it is.

A busy link has a queue, which delays every packet. Its length at a time is the excess of the shortest
handshake or response within `NEAR_MS` over the link's own round trip, but at most the time for which the link
had been busy without a break. It is part neither of a host's round-trip time nor of its server time.

Server time is as in `waits`, but without the queue. A file's wait while the link was idle counts as server
time.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace

from firstflight.model.page import INITIAL_WINDOW_BYTES, Initiator, Kind, Link
from firstflight.pages.discovery import Discovery
from firstflight.pages.exchange import Exchange
from firstflight.pages.hosts import HUNG_MS, carriers
from firstflight.pages.times import is_made

NEAR_MS = 500.0
# Bytes on the link per byte of data: a segment of 1,448 bytes plus the headers of TCP and IP.
_ON_THE_LINK = 1500 / 1448
# Fraction of the link's rate above which a millisecond counts as busy.
_BUSY = 0.9
_MOST_STEPS = 600_000


@dataclass(slots=True)
class _Flow:
    index: int
    began: int
    left: float
    trip_ms: float
    connection: str
    window: float
    had: float = 0.0

    def limit(self, now: int) -> float:
        """The most bytes that can arrive now: what slow start has sent, and no more than there are."""
        windows = math.exp2(min((now - self.began) // self.trip_ms + 1, 40)) - 1
        return min(windows * self.window - self.had, self.left)


class Crossing:
    """The recorded responses while they cross the link. Times: ms since the page began, in steps of 1 ms."""

    def __init__(
        self, exchanges: list[Exchange], link: Link, trips: dict[str, float], began_ms: list[float]
    ) -> None:
        """Lets `exchanges` cross `link`.

        Args:
            exchanges: In order of their start.
            link: The link.
            trips: The round-trip times of their hosts, ms.
            began_ms: When the first byte of each would arrive if the link were idle.
        """
        self._exchanges = exchanges
        self.end_ms = [exchange.end_ms for exchange in exchanges]
        self._began = [math.ceil(ms) for ms in began_ms]
        self._arrived: list[list[float]] = [[] for _ in exchanges]
        self._rate = link.down_bps / 8_000 / _ON_THE_LINK
        self._carried: dict[str, float] = defaultdict(float)
        self._busy: set[int] = set()
        self._cross(trips)

    def _cross(self, trips: dict[str, float]) -> None:
        order = sorted(range(len(self._exchanges)), key=lambda index: self._began[index])
        flows: list[_Flow] = []
        at, now = 0, self._began[order[0]]
        for _ in range(_MOST_STEPS):
            while at < len(order) and self._began[order[at]] <= now:
                flows.append(self._flow(order[at], trips))
                at += 1
            if not flows:
                if at == len(order):
                    break
                now = self._began[order[at]]
                continue
            self._step(flows, now)
            flows = [flow for flow in flows if flow.left > 0]
            now += 1

    def _flow(self, index: int, trips: dict[str, float]) -> _Flow:
        exchange = self._exchanges[index]
        size = float(exchange.header_bytes + exchange.body_bytes)
        trip_ms = max(trips.get(exchange.host, 1.0), 1.0)
        connection = exchange.carried.connection or exchange.url
        window = INITIAL_WINDOW_BYTES + self._carried[connection]
        return _Flow(index, self._began[index], size, trip_ms, connection, window)

    def _step(self, flows: list[_Flow], now: int) -> None:
        """One millisecond: the slowest responses use what they can; the others share the rest."""
        left = self._rate
        limits = [(flow.limit(now), at) for at, flow in enumerate(flows)]
        for position, (limit, at) in enumerate(sorted(limits)):
            flow = flows[at]
            taken = max(min(limit, left / (len(limits) - position)), 0.0)
            left -= taken
            flow.left -= taken
            flow.had += taken
            self._carried[flow.connection] += taken
            history = self._arrived[flow.index]
            history.append((history[-1] if history else 0.0) + taken)
            if flow.left <= 1e-6:
                flow.left = 0.0
                self.end_ms[flow.index] = min(self.end_ms[flow.index], now + 1.0)
        if left < (1 - _BUSY) * self._rate:
            self._busy.add(now)

    def arrived(self, index: int, at_ms: float) -> int:
        """Bytes of a response's body that had arrived at `at_ms`."""
        exchange, history = self._exchanges[index], self._arrived[index]
        if at_ms >= self.end_ms[index] or not history:
            return exchange.body_bytes
        steps = math.floor(at_ms) - self._began[index]
        had = history[min(steps, len(history)) - 1] - exchange.header_bytes if steps > 0 else 0.0
        return round(min(max(had, 0.0), exchange.body_bytes))

    def reached_ms(self, index: int, at_byte: int) -> float:
        """When `at_byte` bytes of a response's body had arrived, ms."""
        exchange = self._exchanges[index]
        if at_byte >= exchange.body_bytes:
            return self.end_ms[index]
        past = bisect_left(self._arrived[index], at_byte + exchange.header_bytes)
        return min(self._began[index] + past + 1.0, self.end_ms[index])

    def busy_ms(self, at_ms: float) -> float:
        """How long the link had been busy without a break at `at_ms`, ms."""
        first = at = math.ceil(at_ms) - 1
        while at in self._busy:
            at -= 1
        return float(first - at)


class _Standing:
    """The queue in front of the link."""

    def __init__(self, exchanges: list[Exchange], link: Link, crossing: Crossing) -> None:
        beyond: list[tuple[float, float]] = []
        for exchange in exchanges:
            clock = exchange.clock
            if clock.wait_ms is not None:
                beyond.append((clock.first_byte_ms, max(clock.wait_ms - link.rtt_ms, 0.0)))
            if clock.handshake_ms is not None:
                beyond.append((_shaken_ms(exchange), max(clock.handshake_ms - link.rtt_ms, 0.0)))
        self._beyond = sorted(beyond)
        self._times = [at_ms for at_ms, _ in self._beyond]
        self._crossing = crossing

    def ms(self, at_ms: float) -> float:
        """The delay of the queue at `at_ms`, ms."""
        first, last = bisect_left(self._times, at_ms - NEAR_MS), bisect_right(self._times, at_ms + NEAR_MS)
        quickest = min((beyond for _, beyond in self._beyond[first:last]), default=0.0)
        return min(quickest, self._crossing.busy_ms(at_ms))


def _shaken_ms(exchange: Exchange) -> float:
    """When the TCP handshake of an exchange that opened a connection was complete."""
    clock = exchange.clock
    return clock.first_byte_ms - (clock.wait_ms or 0.0) - (clock.tls_ms or 0.0)


@dataclass(frozen=True, slots=True)
class Crossed:
    """A recording without the effects of its link.

    Attributes:
        link: The link.
        crossing: When the bytes of each response had crossed it.
        trips: Round-trip time of each host, without the queue in front of the link, ms.
        server_ms: Server time of each response.
    """

    link: Link
    crossing: Crossing
    trips: dict[str, float]
    server_ms: list[float]


def cross(exchanges: list[Exchange], kinds: list[Kind], link: Link, trips: dict[str, float]) -> Crossed:
    """Removes the effects of the link from `exchanges`.

    Args:
        exchanges: In order of their start.
        kinds: Their kinds.
        link: The link that they crossed.
        trips: Round-trip time of each host, with the queue in front of the link, ms.
    """
    seen = Crossing(exchanges, link, trips, [exchange.clock.first_byte_ms for exchange in exchanges])
    standing = _Standing(exchanges, link, seen)
    trips = _trips(exchanges, link, standing)
    servers = _servers(exchanges, kinds, trips, seen, standing)
    ready = [
        min(
            e.clock.first_byte_ms,
            e.clock.first_byte_ms - (e.clock.wait_ms or 0.0) + trips.get(e.host, 0.0) + ms,
        )
        for e, ms in zip(exchanges, servers, strict=True)
    ]
    return Crossed(link, Crossing(exchanges, link, trips, ready), trips, servers)


def _trips(exchanges: list[Exchange], link: Link, standing: _Standing) -> dict[str, float]:
    trips: dict[str, float] = {}
    for exchange in exchanges:
        clock = exchange.clock
        samples = [(clock.wait_ms, clock.first_byte_ms), (clock.handshake_ms, _shaken_ms(exchange))]
        for length_ms, at_ms in samples:
            if length_ms is not None and length_ms < HUNG_MS:
                alone_ms = max(length_ms - standing.ms(at_ms), link.rtt_ms)
                trips[exchange.host] = min(alone_ms, trips.get(exchange.host, math.inf))
    for name, carrier in carriers(exchanges).items():
        trips[name] = trips.get(carrier, link.rtt_ms)
    return trips


def _servers(
    exchanges: list[Exchange],
    kinds: list[Kind],
    trips: dict[str, float],
    seen: Crossing,
    standing: _Standing,
) -> list[float]:
    waits, idle = [], []
    quickest: dict[str, float] = {}
    for exchange, kind in zip(exchanges, kinds, strict=True):
        at_ms = exchange.clock.first_byte_ms
        wait = (exchange.clock.wait_ms or 0.0) - trips.get(exchange.host, 0.0)
        alone = max(wait - standing.ms(at_ms), 0.0)
        waits.append(alone)
        if is_made(exchange, kind):
            idle.append(alone)
        else:
            idle.append(max(wait - seen.busy_ms(at_ms), 0.0))
            quickest[exchange.host] = min(alone, quickest.get(exchange.host, math.inf))
    return [
        alone if is_made(exchange, kind) else max(quickest[exchange.host], while_idle)
        for exchange, kind, alone, while_idle in zip(exchanges, kinds, waits, idle, strict=True)
    ]


def placed(exchanges: list[Exchange], discovery: Discovery, crossing: Crossing) -> Discovery:
    """A reference whose position in a document is not known is put where the link had come at its request."""

    def at(index: int, by: Initiator | None) -> Initiator | None:
        if by is None or by.via != "parser" or exchanges[by.resource].text is not None:
            return by
        return replace(by, at_byte=crossing.arrived(by.resource, exchanges[index].start_ms))

    return replace(discovery, initiators=[at(index, by) for index, by in enumerate(discovery.initiators)])
