"""Server, processing and waiting times of an archive with times, and what the load event waits for.

Server time (`server_ms`) is the recorded wait for the first byte minus the round trip of the host, at most
`MOST_SERVER_MS`. Responses that no program makes (files, see `times.is_made`) all have the time of the host's
quickest. The longer waits of the others come from a busy link, or from their turn on a shared connection,
which a replay has itself.

Waiting (`after`) is for the last script, style sheet, document or data that ended between the initiator's end
and the child's start. If several ended within 50 ms it is a script, of several scripts the largest. The
initiator only names the URL. A parser that a script blocks, or a browser that delays images until the head is
complete, makes the request later. A request that the browser held back although a shared connection was open
(`held_ms`) waits for whatever ended last, which is its turn in the browser's queue. Other requests do not
wait for images.

Processing (`cpu_ms`) is the recorded value, if there is one. Else it comes from requests right after a
resource: `after`, or the script or style sheet that is the initiator. The time between the resource's end and
the quickest of these requests, up to 50 ms, is processing. The rest is the request's `delay_ms`, at most
`MOST_DELAY_MS`. So is the time between a document's end and later requests of its markup or inline scripts.

Load event (`blocks_load`): it waits for what had ended at the recorded load event. If none is recorded, it
waits for what had begun at the time that the mirror importer's rule finds (`times.load_event_ms`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from firstflight.model.page import LONGEST_MS, Initiator, Kind
from firstflight.pages.discovery import AT_ONCE_MS, Discovery
from firstflight.pages.exchange import Exchange
from firstflight.pages.hosts import round_trips
from firstflight.pages.link import Crossed, Crossing
from firstflight.pages.times import Times, is_made, load_event_ms

# Longer ones hung: a load would treat the connection as dead.
MOST_SERVER_MS = 20_000.0
MOST_DELAY_MS = 20_000.0
# The load event and the responses were recorded with different clocks.
LOAD_SLACK_MS = 10.0


class _Hold(NamedTuple):
    """What delayed an exchange after its initiator, if anything, and the time from that to its request."""

    after: int | None
    wait_ms: float


def wait_times(
    exchanges: list[Exchange],
    discovery: Discovery,
    on_load_ms: float | None,
    crossed: Crossed | None = None,
) -> Times:
    """Times of each exchange by the rules of this module.

    Args:
        exchanges: In order of their start.
        discovery: The initiator of each.
        on_load_ms: The load event, ms since the page began; `None`: not recorded.
        crossed: The recording without the effects of its link; `None`: the link is not known.
    """
    crossing = crossed.crossing if crossed else None
    holds = _holds(exchanges, discovery, crossing)
    cpu, delay = _processing(exchanges, discovery, holds)
    if on_load_ms is None:
        load = load_event_ms(exchanges, discovery.kinds)
        blocking = [exchange.start_ms < load for exchange in exchanges]
    else:
        blocking = _blocking(exchanges, discovery, on_load_ms)
        if crossing:
            _last_work(blocking, cpu, on_load_ms, crossing)
    servers = crossed.server_ms if crossed else _servers(exchanges, discovery.kinds)
    server = [_rounded(min(wait, MOST_SERVER_MS)) for wait in servers]
    return Times(server, cpu, delay, blocking, [hold.after for hold in holds])


def _last_work(blocking: list[bool], cpu: list[float], on_load_ms: float, crossing: Crossing) -> None:
    """Sets the processing time of the last resource that crossed the link before the load event."""
    last = max((end, i) for i, end in enumerate(crossing.end_ms) if blocking[i])[1]
    cpu[last] = max(cpu[last], _rounded(min(max(on_load_ms - crossing.end_ms[last], 0.0), MOST_DELAY_MS)))


def _servers(exchanges: list[Exchange], kinds: list[Kind]) -> list[float]:
    trips = round_trips(exchanges)
    waits = [max((e.clock.wait_ms or 0.0) - trips.get(e.host, 0.0), 0.0) for e in exchanges]
    made = [is_made(exchange, kind) for exchange, kind in zip(exchanges, kinds, strict=True)]
    quickest: dict[str, float] = {}
    for exchange, wait, is_program in zip(exchanges, waits, made, strict=True):
        if not is_program:
            quickest[exchange.host] = min(wait, quickest.get(exchange.host, math.inf))
    return [
        wait if is_program else quickest[exchange.host]
        for exchange, wait, is_program in zip(exchanges, waits, made, strict=True)
    ]


def _processing(
    exchanges: list[Exchange], discovery: Discovery, holds: list[_Hold]
) -> tuple[list[float], list[float]]:
    runs = [
        _runs(exchanges, initiator, hold) for initiator, hold in zip(discovery.initiators, holds, strict=True)
    ]
    quickest = [math.inf] * len(exchanges)
    for run, hold in zip(runs, holds, strict=True):
        if run is not None:
            quickest[run] = min(quickest[run], hold.wait_ms, AT_ONCE_MS)
    cpu = [
        _rounded(exchange.clock.cpu_ms or (found if math.isfinite(found) else 0.0))
        for exchange, found in zip(exchanges, quickest, strict=True)
    ]
    delay = [
        _rounded(min(max(hold.wait_ms - (0.0 if run is None else cpu[run]), 0.0), MOST_DELAY_MS))
        for run, hold in zip(runs, holds, strict=True)
    ]
    return cpu, delay


def _runs(exchanges: list[Exchange], initiator: Initiator | None, hold: _Hold) -> int | None:
    """The resource whose processing comes right before an exchange is requested."""
    if hold.after is not None:
        return hold.after if _can_hold(exchanges[hold.after]) else None
    return initiator.resource if initiator and initiator.via in ("script", "style") else None


def _holds(exchanges: list[Exchange], discovery: Discovery, crossing: Crossing | None) -> list[_Hold]:
    ends = sorted((exchange.end_ms, index) for index, exchange in enumerate(exchanges))
    waited_for = [(ended_ms, index) for ended_ms, index in ends if _can_hold(exchanges[index])]
    sent = sent_ms(exchanges)
    holds = [
        _hold(exchanges, waited_for if sent[index] == exchanges[index].start_ms else ends, by, index, sent)
        for index, by in enumerate(discovery.initiators)
    ]
    if crossing is None:
        return holds
    return [
        hold._replace(wait_ms=_since_crossing(hold, by, sent[index], crossing))
        for index, (hold, by) in enumerate(zip(holds, discovery.initiators, strict=True))
    ]


def _since_crossing(hold: _Hold, by: Initiator | None, start_ms: float, crossing: Crossing) -> float:
    """As `_Hold.wait_ms`, but from when the bytes had arrived, not from when the browser was done."""
    if by is None or by.via == "redirect":
        return 0.0
    if hold.after is not None:
        return max(start_ms - crossing.end_ms[hold.after], 0.0)
    if by.via == "parser":
        return max(start_ms - crossing.reached_ms(by.resource, by.at_byte), 0.0)
    return max(start_ms - crossing.end_ms[by.resource], 0.0)


def _hold(
    exchanges: list[Exchange],
    ends: list[tuple[float, int]],
    initiator: Initiator | None,
    index: int,
    sent: list[float],
) -> _Hold:
    if initiator is None or initiator.via == "redirect":
        return _Hold(None, 0.0)
    found_ms, start_ms = exchanges[initiator.resource].end_ms, sent[index]
    if initiator.via == "parser":
        found_ms = min(found_ms, exchanges[index].start_ms)
    between = ends[bisect_right(ends, (found_ms, len(exchanges))) : bisect_right(ends, (start_ms, index))]
    last = [(ended_ms, after) for ended_ms, after in between if after < index]
    if not last:
        return _Hold(None, max(start_ms - found_ms, 0.0))
    at_once = [after for ended_ms, after in last if ended_ms >= last[-1][0] - AT_ONCE_MS]
    after = max(at_once, key=lambda i: (exchanges[i].is_script, exchanges[i].body_bytes))
    return _Hold(after, start_ms - exchanges[after].end_ms)


def _can_hold(exchange: Exchange) -> bool:
    return exchange.is_script or exchange.is_style or exchange.is_html or _is_data(exchange)


def _is_data(exchange: Exchange) -> bool:
    return exchange.kind == "xhr" or exchange.mime.endswith(("json", "xml"))


def _blocking(exchanges: list[Exchange], discovery: Discovery, on_load_ms: float) -> list[bool]:
    document = discovery.kinds.count("document") - 1
    return [
        index <= document or exchange.end_ms <= on_load_ms + LOAD_SLACK_MS
        for index, exchange in enumerate(exchanges)
    ]


def _rounded(ms: float) -> float:
    return round(min(ms, LONGEST_MS), 1)


def sent_ms(exchanges: list[Exchange]) -> list[float]:
    """When the browser released each exchange, ms: at its start, or after it was held back (`held_ms`).

    While its host's first connection was being opened, the exchange waited for that and was not held back.
    """
    ready: dict[str, float] = {}
    for exchange in exchanges:
        clock = exchange.clock
        if clock.handshake_ms is not None:
            name, at_ms = exchange.host, clock.first_byte_ms - (clock.wait_ms or 0.0)
            ready[name] = min(at_ms, ready.get(name, math.inf))

    def released(exchange: Exchange) -> float:
        start_ms, at_ms = exchange.start_ms, exchange.start_ms + exchange.clock.held_ms
        if exchange.clock.lookup_ms is not None:
            return at_ms
        return at_ms if at_ms > max(ready.get(exchange.host, start_ms), start_ms) else start_ms

    return [released(exchange) for exchange in exchanges]
