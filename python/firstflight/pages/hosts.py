"""What a recording shows of its hosts: their round-trip times, lookups and protocols.

Round-trip time of a host: its shortest TCP handshake, but at most its shortest response, since a handshake
may have waited in a queue. Without a handshake it is the shortest response. A response that is shorter than
the shortest handshake of all hosts was sent before it was requested (HTTP/2 push). It then counts as that
handshake.

Lookup of a host: the longest of the requests that were made before its first response. Later requests find
the name cached.

Carrier of a host: one connection of HTTP/2 may carry the requests of several hosts (RFC 9113, section 9.1.1).
A host without a connection of its own has the round-trip time of the host whose connection it used.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Literal

from firstflight.model.page import Host
from firstflight.pages.exchange import Exchange

# Longer ones hung: a load would treat the connection as dead.
MOST_VERIFY_MS = 20_000.0
# No round trip is this long.
HUNG_MS = 5_000.0


def hosts_of(exchanges: list[Exchange], trips: dict[str, float] | None = None) -> list[Host]:
    """Hosts and what the exchanges show of them. Hosts of which they show nothing are left out.

    `trips`: the hosts' round-trip times, ms; `None`: those of `round_trips`.
    """
    trips = round_trips(exchanges) if trips is None else trips
    carried_by = carriers(exchanges)
    lookups = _lookups(exchanges)
    by_host: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        by_host.setdefault(exchange.host, []).append(exchange)
    hosts = [
        Host(
            name,
            round(trips.get(name, 0.0), 1),
            lookups.get(name, 0.0),
            _spoken(own),
            *_handshake(own, trips.get(name, 0.0)),
            carried_by.get(name),
        )
        for name, own in by_host.items()
    ]
    return [host for host in hosts if replace(host, host="") != Host("")]


def _spoken(exchanges: list[Exchange]) -> Literal["1.1", "2"] | None:
    """The version of HTTP over TLS of most requests to a host; HTTP/3 counts as HTTP/2 over TCP."""
    secure = (exchange for exchange in exchanges if exchange.url.startswith("https:"))
    spoken = Counter(_shares(exchange) for exchange in secure if exchange.carried.http)
    return ("2" if spoken.most_common(1)[0][0] else "1.1") if spoken else None


def _shares(exchange: Exchange) -> bool:
    """Whether its connection carries several requests at a time."""
    return exchange.carried.http in ("2", "3")


def _handshake(exchanges: list[Exchange], trip_ms: float) -> tuple[int, float]:
    """Round trips of a TLS handshake with a host, and the additional time of the first handshake, ms.

    The shortest handshake gives the round trips. The browser verifies the certificate once; connections that
    were opened before the host's first response wait for that.
    """
    handshakes = [e for e in exchanges if e.clock.tls_ms is not None and e.url.startswith("https:")]
    if not handshakes or not trip_ms:
        return 0, 0.0
    answered = min(e.clock.first_byte_ms for e in exchanges)
    quickest = min(e.clock.tls_ms or 0.0 for e in handshakes)
    first = [e.clock.tls_ms or 0.0 for e in handshakes if e.start_ms <= answered]
    is_newer = any(e.carried.tls == "1.3" for e in handshakes)
    count = 2 if quickest >= 2 * trip_ms and not is_newer else 1
    beyond = min(first, default=quickest) - count * trip_ms
    return count, round(min(max(beyond, 0.0), MOST_VERIFY_MS), 1)


def carriers(exchanges: list[Exchange]) -> dict[str, str]:
    """For each host without a connection of its own: the host whose connection carried its requests."""
    opened: dict[str, str] = {}
    own: set[str] = set()
    for exchange in exchanges:
        if exchange.clock.handshake_ms is not None:
            own.add(exchange.host)
            if exchange.carried.connection and _shares(exchange):
                opened.setdefault(exchange.carried.connection, exchange.host)
    found: dict[str, Counter[str]] = {}
    for exchange in exchanges:
        by = opened.get(exchange.carried.connection)
        if by is not None and exchange.host not in own and _shares(exchange):
            found.setdefault(exchange.host, Counter())[by] += 1
    return {name: count.most_common(1)[0][0] for name, count in found.items()}


def round_trips(exchanges: list[Exchange]) -> dict[str, float]:
    """Round-trip time of each host for which one can be derived, ms."""
    handshakes = [e.clock.handshake_ms for e in exchanges if e.clock.handshake_ms is not None]
    nearest = min(handshakes, default=0.0)
    trips: dict[str, float] = {}
    for exchange in exchanges:
        for length in (exchange.clock.handshake_ms, exchange.clock.wait_ms):
            if length is not None and length < HUNG_MS:
                trips[exchange.host] = max(min(length, trips.get(exchange.host, math.inf)), nearest)
    for name, carrier in carriers(exchanges).items():
        trips[name] = trips.get(carrier, trips.get(name, nearest))
    return trips


def _lookups(exchanges: list[Exchange]) -> dict[str, float]:
    answered: dict[str, float] = {}
    for exchange in exchanges:
        first = min(exchange.clock.first_byte_ms, answered.get(exchange.host, math.inf))
        answered[exchange.host] = first
    lookups: dict[str, float] = {}
    for exchange in exchanges:
        name, length = exchange.host, exchange.clock.lookup_ms
        if length is not None and exchange.start_ms <= answered[name]:
            lookups[name] = round(max(length, lookups.get(name, 0.0)), 1)
    return lookups
