"""What a recording tells of its hosts: how far they were, and what they spoke.

Round-trip time of a host: its quickest TCP handshake, but no longer than its quickest answer: a handshake may
have queued behind other packets. Without a handshake it is the quickest answer. An answer that came quicker
than the quickest handshake of all hosts was under way before it was asked for (HTTP/2 push): it says no more
than that handshake.

Lookup of a host: the longest of the requests that were made before its first answer came; those after it find
the name known.

Carrier of a host: one connection of HTTP/2 may carry the requests of several hosts (RFC 9113, section 9.1.1).
A host that opened none of its own is as far as the host that opened the connection.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Literal

from firstflight.model.page import Host
from firstflight.pages.exchange import Exchange

# What is longer than this hung: a load would take it for a dead connection.
MOST_VERIFY_MS = 20_000.0
# No round trip is as long.
HUNG_MS = 5_000.0


def hosts_of(exchanges: list[Exchange], trips: dict[str, float] | None = None) -> list[Host]:
    """What the exchanges tell of their hosts; hosts of which they tell nothing are not in it.

    `trips`: the hosts' round trips, ms; without, those of `round_trips`.
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
    """The version of HTTP over TLS that carried most requests to a host; HTTP/3 counts as HTTP/2 over TCP."""
    secure = (exchange for exchange in exchanges if exchange.url.startswith("https:"))
    spoken = Counter(_shares(exchange) for exchange in secure if exchange.carried.http)
    return ("2" if spoken.most_common(1)[0][0] else "1.1") if spoken else None


def _shares(exchange: Exchange) -> bool:
    """Whether it went over a connection that carries several requests at a time."""
    return exchange.carried.http in ("2", "3")


def _handshake(exchanges: list[Exchange], trip_ms: float) -> tuple[int, float]:
    """Round trips of a TLS handshake with a host, and what the first took beyond them, ms.

    The quickest handshake has the round trips. The certificate is verified once: connections that were opened
    before the host's first answer wait for that.
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
    """The host whose connection carried a host's requests, of those that opened none of their own."""
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
    """Round-trip time of each host that has one recorded, ms."""
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
