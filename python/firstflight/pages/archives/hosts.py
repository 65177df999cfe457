"""How far the hosts of an archive with times were, and how long their names were looked up.

Round-trip time of a host: its quickest TCP handshake, but no longer than its quickest answer: a handshake may
have queued behind other packets. Without a handshake it is the quickest answer. An answer that came quicker
than the quickest handshake of all hosts was under way before it was asked for (HTTP/2 push): it says no more
than that handshake.

Lookup of a host: the longest of the requests that were made before its first answer came; those after it find
the name known.
"""

from __future__ import annotations

import math
from urllib.parse import urlsplit

from firstflight.pages.archives.entry import Entry
from firstflight.pages.model import Host


def hosts_of(entries: list[Entry]) -> list[Host]:
    """What the entries tell of their hosts; hosts of which they tell nothing are not in it."""
    trips = {name: round(ms, 1) for name, ms in round_trips(entries).items()}
    lookups = _lookups(entries)
    names = dict.fromkeys(host_of(entry) for entry in entries)
    hosts = (Host(name, trips.get(name, 0.0), lookups.get(name, 0.0)) for name in names)
    return [host for host in hosts if host.rtt_ms or host.lookup_ms]


def round_trips(entries: list[Entry]) -> dict[str, float]:
    """Round-trip time of each host that has one recorded, ms."""
    handshakes = [e.clock.handshake_ms for e in entries if e.clock.handshake_ms is not None]
    nearest = min(handshakes, default=0.0)
    trips: dict[str, float] = {}
    for entry in entries:
        for length in (entry.clock.handshake_ms, entry.clock.wait_ms):
            if length is not None:
                trips[host_of(entry)] = max(min(length, trips.get(host_of(entry), math.inf)), nearest)
    return trips


def _lookups(entries: list[Entry]) -> dict[str, float]:
    answered: dict[str, float] = {}
    for entry in entries:
        first = min(entry.clock.first_byte_ms, answered.get(host_of(entry), math.inf))
        answered[host_of(entry)] = first
    lookups: dict[str, float] = {}
    for entry in entries:
        name, length = host_of(entry), entry.clock.lookup_ms
        if length is not None and entry.clock.start_ms <= answered[name]:
            lookups[name] = round(max(length, lookups.get(name, 0.0)), 1)
    return lookups


def host_of(entry: Entry) -> str:
    """The host name of an entry, as a page writes it."""
    name = urlsplit(entry.url).hostname or ""
    return f"[{name}]" if ":" in name else name


def sent_ms(entries: list[Entry]) -> list[float]:
    """When each entry was let go by the browser, ms: at its start, or after it was held back (`held_ms`).

    While its host's first connection was still being opened it waited for that.
    """
    ready: dict[str, float] = {}
    for entry in entries:
        clock = entry.clock
        if clock.handshake_ms is not None:
            name, at_ms = host_of(entry), clock.first_byte_ms - (clock.wait_ms or 0.0)
            ready[name] = min(at_ms, ready.get(name, math.inf))
    released = ((entry.clock.start_ms, entry.clock.held_ms, host_of(entry)) for entry in entries)
    return [
        start_ms + held_ms if start_ms + held_ms > max(ready.get(name, start_ms), start_ms) else start_ms
        for start_ms, held_ms, name in released
    ]
