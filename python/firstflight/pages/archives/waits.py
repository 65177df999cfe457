"""Server, processing and waiting times of an archive with times, and what the load event waits for.

Server time (`server_ms`): the recorded wait for the first byte less the round trip of the host (see `hosts`),
at most `MOST_SERVER_MS`. Answers that no program makes (files, see `times.is_made`) all have the time of the
host's quickest: what the others waited longer was a busy link, or their turn on a shared connection, which a
replay has of its own.

Waiting (`after`): of the scripts, style sheets, documents and data that ended between an initiator's end and
the child's start, the last; of several that ended within 50 ms a script, of several scripts the largest. The
initiator only says who named the URL: a parser that a script holds, or a browser that puts images off until
the head is there, asks for it later. A request that the browser held back although a shared connection was
there (`held_ms`) waits for whatever ended last, its turn in the browser's queue; others wait for no image.

Processing (`cpu_ms`): what the recording says, else, of what runs right before a request (`after`, else the
script or style sheet that asks), the time between its end and the request; the quickest request's, up to 50
ms, is processing, the rest is the request's `delay_ms`, at most `MOST_DELAY_MS`. So is the time between a
document's end and what its markup or inline scripts ask for afterwards.

Load event (`blocks_load`): with a recorded load event, what had ended by then; else by the mirror importer's
rule (`times.load_event_ms`) what had begun by then.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.hosts import host_of, round_trips, sent_ms
from firstflight.pages.archives.timed import Discovered
from firstflight.pages.discovery import AT_ONCE_MS
from firstflight.pages.exchanges import Exchange
from firstflight.pages.model import Initiator, Kind
from firstflight.pages.times import Times, is_made, load_event_ms

# What is longer than this hung: a load would take it for a dead connection.
MOST_SERVER_MS = 20_000.0
MOST_DELAY_MS = 20_000.0
# The browser's clock of the load event and the recorder's of responses are two.
LOAD_SLACK_MS = 10.0


class Waits(NamedTuple):
    """Times of each entry, and the index of what holds it back after it was discovered, if anything does."""

    times: Times
    after: list[int | None]


class Hold(NamedTuple):
    """What an entry waited for after its initiator, if for anything, and for how long after that, ms."""

    after: int | None
    wait_ms: float


def wait_times(
    entries: list[Entry], exchanges: list[Exchange], discovered: Discovered, on_load_ms: float | None
) -> Waits:
    """Times of each entry by the rules of this module; `on_load_ms` counts from the page's beginning."""
    holds = _holds(entries, discovered)
    cpu, delay = _processing(entries, discovered, holds)
    if on_load_ms is None:
        load = load_event_ms(exchanges, discovered.kinds)
        blocking = [entry.clock.start_ms < load for entry in entries]
    else:
        blocking = _blocking(entries, discovered, on_load_ms)
    times = Times(_servers(entries, exchanges, discovered.kinds), cpu, delay, blocking)
    return Waits(times, [hold.after for hold in holds])


def _servers(entries: list[Entry], exchanges: list[Exchange], kinds: list[Kind]) -> list[float]:
    trips = round_trips(entries)
    waits = [max((entry.clock.wait_ms or 0.0) - trips.get(host_of(entry), 0.0), 0.0) for entry in entries]
    made = [is_made(exchange, kind) for exchange, kind in zip(exchanges, kinds, strict=True)]
    quickest: dict[str, float] = {}
    for entry, wait, is_program in zip(entries, waits, made, strict=True):
        if not is_program:
            quickest[host_of(entry)] = min(wait, quickest.get(host_of(entry), math.inf))
    own = [
        wait if is_program else quickest[host_of(entry)]
        for entry, wait, is_program in zip(entries, waits, made, strict=True)
    ]
    return [_rounded(min(wait, MOST_SERVER_MS)) for wait in own]


def _processing(
    entries: list[Entry], discovered: Discovered, holds: list[Hold]
) -> tuple[list[float], list[float]]:
    runs = [
        _runs(entries, initiator, hold) for initiator, hold in zip(discovered.initiators, holds, strict=True)
    ]
    quickest = [math.inf] * len(entries)
    for run, hold in zip(runs, holds, strict=True):
        if run is not None:
            quickest[run] = min(quickest[run], hold.wait_ms, AT_ONCE_MS)
    cpu = [
        _rounded(entry.clock.cpu_ms or (found if math.isfinite(found) else 0.0))
        for entry, found in zip(entries, quickest, strict=True)
    ]
    delay = [
        _rounded(min(max(hold.wait_ms - (0.0 if run is None else cpu[run]), 0.0), MOST_DELAY_MS))
        for run, hold in zip(runs, holds, strict=True)
    ]
    return cpu, delay


def _runs(entries: list[Entry], initiator: Initiator | None, hold: Hold) -> int | None:
    """What has to be processed right before an entry is asked for."""
    if hold.after is not None:
        return hold.after if _can_hold(entries[hold.after]) else None
    return initiator.resource if initiator and initiator.via in ("script", "style") else None


def _holds(entries: list[Entry], discovered: Discovered) -> list[Hold]:
    ends = sorted((entry.clock.end_ms, index) for index, entry in enumerate(entries))
    waited_for = [(ended_ms, index) for ended_ms, index in ends if _can_hold(entries[index])]
    sent = sent_ms(entries)
    return [
        _hold(entries, waited_for if sent[index] == entries[index].clock.start_ms else ends, by, index, sent)
        for index, by in enumerate(discovered.initiators)
    ]


def _hold(
    entries: list[Entry],
    ends: list[tuple[float, int]],
    initiator: Initiator | None,
    index: int,
    sent: list[float],
) -> Hold:
    if initiator is None or initiator.via == "redirect":
        return Hold(None, 0.0)
    found_ms, start_ms = entries[initiator.resource].clock.end_ms, sent[index]
    if initiator.via == "parser":
        found_ms = min(found_ms, entries[index].clock.start_ms)
    between = ends[bisect_right(ends, (found_ms, len(entries))) : bisect_right(ends, (start_ms, index))]
    last = [(ended_ms, after) for ended_ms, after in between if after < index]
    if not last:
        return Hold(None, max(start_ms - found_ms, 0.0))
    at_once = [after for ended_ms, after in last if ended_ms >= last[-1][0] - AT_ONCE_MS]
    after = max(at_once, key=lambda i: (entries[i].is_script, entries[i].body_bytes))
    return Hold(after, start_ms - entries[after].clock.end_ms)


def _can_hold(entry: Entry) -> bool:
    return entry.is_script or entry.is_style or entry.is_html or _is_data(entry)


def _is_data(entry: Entry) -> bool:
    return entry.kind == "xhr" or entry.mime.endswith(("json", "xml"))


def _blocking(entries: list[Entry], discovered: Discovered, on_load_ms: float) -> list[bool]:
    document = discovered.kinds.count("document") - 1
    return [
        index <= document or entry.clock.end_ms <= on_load_ms + LOAD_SLACK_MS
        for index, entry in enumerate(entries)
    ]


def _rounded(ms: float) -> float:
    return round(min(ms, 600_000.0), 1)
