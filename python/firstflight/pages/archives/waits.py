"""Server, processing and waiting times of an archive with times, and what the load event waits for.

Server time (`server_ms`): the recorded wait for the first byte less the round trip of the host, at most
`MOST_SERVER_MS`. Round trip of a host: its quickest TCP handshake; where none is recorded its quickest
wait, so that a host's quickest answer then counts as having none. Answers that no program makes (files, see
`times.is_made`) all have the time of the host's quickest: what the others waited longer was a busy link, or
their turn on a shared connection, which a replay has of its own.

Processing (`cpu_ms`): what the recording says, else as for mirrors: of what scripts and style sheets
discover, the quiet time (see `gaps`) between the initiator's end and the child's start; the quickest
child's, up to 50 ms, is processing of the initiator, the rest is the child's `delay_ms`, at most
`MOST_DELAY_MS`. So is the quiet time between a document's end and what its markup or inline scripts ask for
afterwards.

Load event (`blocks_load`): with a recorded load event, what had ended by then; else by the mirror importer's
rule (`times.load_event_ms`) what had begun by then.
"""

from __future__ import annotations

import math
from urllib.parse import urlsplit

from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.timed import Discovered
from firstflight.pages.discovery import AT_ONCE_MS
from firstflight.pages.exchanges import Exchange
from firstflight.pages.gaps import quiet_between
from firstflight.pages.model import Kind
from firstflight.pages.times import Times, is_made, load_event_ms

MOST_SERVER_MS = 2_000.0
MOST_DELAY_MS = 5_000.0
# The browser's clock of the load event and the recorder's of responses are two.
LOAD_SLACK_MS = 10.0


def wait_times(
    entries: list[Entry], exchanges: list[Exchange], discovered: Discovered, on_load_ms: float | None
) -> Times:
    """Times of each entry by the rules of this module; `on_load_ms` counts from the page's beginning."""
    cpu, delay = _processing(entries, discovered)
    if on_load_ms is None:
        load = load_event_ms(exchanges, discovered.kinds)
        blocking = [entry.clock.start_ms < load for entry in entries]
    else:
        blocking = _blocking(entries, discovered, on_load_ms)
    return Times(_servers(entries, exchanges, discovered.kinds), cpu, delay, blocking)


def _servers(entries: list[Entry], exchanges: list[Exchange], kinds: list[Kind]) -> list[float]:
    trips = _round_trips(entries)
    waits = [max((entry.clock.wait_ms or 0.0) - trips.get(_host(entry), 0.0), 0.0) for entry in entries]
    made = [is_made(exchange, kind) for exchange, kind in zip(exchanges, kinds, strict=True)]
    quickest: dict[str, float] = {}
    for entry, wait, is_program in zip(entries, waits, made, strict=True):
        if not is_program:
            quickest[_host(entry)] = min(wait, quickest.get(_host(entry), math.inf))
    own = [
        wait if is_program else quickest[_host(entry)]
        for entry, wait, is_program in zip(entries, waits, made, strict=True)
    ]
    return [_rounded(min(wait, MOST_SERVER_MS)) for wait in own]


def _round_trips(entries: list[Entry]) -> dict[str, float]:
    shaken: dict[str, float] = {}
    waited: dict[str, float] = {}
    for entry in entries:
        for found, length in ((shaken, entry.clock.handshake_ms), (waited, entry.clock.wait_ms)):
            if length is not None:
                found[_host(entry)] = min(length, found.get(_host(entry), math.inf))
    return waited | shaken


def _processing(entries: list[Entry], discovered: Discovered) -> tuple[list[float], list[float]]:
    waits = _waits(entries, discovered)
    quickest = [math.inf] * len(entries)
    for initiator, wait in zip(discovered.initiators, waits, strict=True):
        if initiator is not None and initiator.via in ("script", "style"):
            quickest[initiator.resource] = min(quickest[initiator.resource], wait, AT_ONCE_MS)
    cpu = [
        _rounded(entry.clock.cpu_ms or (found if math.isfinite(found) else 0.0))
        for entry, found in zip(entries, quickest, strict=True)
    ]
    delay = [
        _rounded(
            min(max(wait - (cpu[by.resource] if by and by.via != "parser" else 0.0), 0.0), MOST_DELAY_MS)
        )
        for by, wait in zip(discovered.initiators, waits, strict=True)
    ]
    return cpu, delay


def _waits(entries: list[Entry], discovered: Discovered) -> list[float]:
    """Quiet time between the initiator's end and each entry's start, ms."""
    spans = sorted(
        (entry.clock.start_ms, entry.clock.end_ms)
        for entry in entries
        if entry.is_script or entry.is_style or entry.is_html or _is_data(entry)
    )
    waits = []
    for index, initiator in enumerate(discovered.initiators):
        if initiator is None or initiator.via == "redirect":
            waits.append(0.0)
            continue
        end = entries[initiator.resource].clock.end_ms
        waits.append(quiet_between(spans, end, entries[index].clock.start_ms))
    return waits


def _is_data(entry: Entry) -> bool:
    return entry.kind == "xhr" or entry.mime.endswith(("json", "xml"))


def _blocking(entries: list[Entry], discovered: Discovered, on_load_ms: float) -> list[bool]:
    document = discovered.kinds.count("document") - 1
    return [
        index <= document or entry.clock.end_ms <= on_load_ms + LOAD_SLACK_MS
        for index, entry in enumerate(entries)
    ]


def _host(entry: Entry) -> str:
    return urlsplit(entry.url).netloc.lower()


def _rounded(ms: float) -> float:
    return round(min(ms, 600_000.0), 1)
