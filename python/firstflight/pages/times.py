"""Server, processing and waiting times of a recording, derived from a log of starts and ends.

The log was made on a live network. A transaction consists of name lookup, handshake, request, server and
transfer, plus the wait for a free connection and for a busy main thread. Only what the rules below leave over
is a property of the page.

Server time (`server_ms`), for responses that a program makes (documents, frames, data, URLs with a query,
redirects):

- It is the transaction's length minus name lookup and `trips` round trips, at least 0, at most 100 ms
  (document: 500 ms). A longer live wait of one load does not repeat, so it is not carried over.
- `trips` is 2 on a new connection and 1 on an idle one, plus what slow start from 10 segments needs for the
  body.
- The round trip of a host is its shortest small transaction without lookup, divided by the trips of its
  connection. So a host with one transaction has no server time: it cannot be distinguished from the round
  trip.
- The document's response ends when its first child starts, not when its body ends (amazon's streams for a
  second).
- It is 0 if the log cannot tell: for static files; for a seventh transaction on six connections; for an end
  within 5 ms of another's, which shows when the browser processed the response, not when it came.

Processing (`cpu_ms`) and waiting (`delay_ms`), of what scripts and style sheets discover, come from the quiet
time (see `quiet_ms`) between the initiator's end and the child's start. The wait of the initiator's quickest
child, up to 50 ms, is processing of the initiator. The rest is the child's delay, at most 500 ms. References
in markup have neither: a preload scanner does not wait.

Load event (`blocks_load`): the first time at which the document and all requests so far had ended. In
addition, no script, sheet or document, which could still cause requests, ended in the 50 ms before. What
starts later cannot have delayed the load event. Two pages report it themselves. Amazon's beacon (`ld`, `t`)
puts its load event at 1,445 ms of the log; the rule finds quiet from 1,442 to 1,445. Wsj's (`b=1423`, counted
from an inline mark that ran at about 1,755) puts it at about 3,178; the rule finds quiet from 3,182 to 3,190.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from firstflight.model.page import INITIAL_WINDOW_BYTES, Kind
from firstflight.pages.discovery import AT_ONCE_MS, Discovery
from firstflight.pages.exchange import Exchange, quiet_ms
from firstflight.pages.readers.fetchlog import FetchLog, Resolve

MOST_SERVER_MS = 100.0
MOST_DOCUMENT_MS = 500.0
MOST_DELAY_MS = 500.0
SAME_MOMENT_MS = 5.0
CONNECTIONS_PER_HOST = 6
_ASKING = ("document", "frame", "script", "style", "xhr")
_STATIC = (
    ".css",
    ".gif",
    ".htm",
    ".ico",
    ".jpg",
    ".jpeg",
    ".js",
    ".png",
    ".swf",
    ".svg",
    ".ttf",
    ".woff",
    ".txt",
    ".xml",
)


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a page's servers and main thread for each exchange.

    Attributes:
        server_ms: Server time.
        cpu_ms: Main-thread time to process it.
        delay_ms: Time between discovery, or the end of `after`, and request.
        blocks_load: Whether the load event waits for it.
        after: Index of the resource that delays it after its discovery; empty if the recording cannot show
            it.
    """

    server_ms: list[float]
    cpu_ms: list[float]
    delay_ms: list[float]
    blocks_load: list[bool]
    after: list[int | None] = field(default_factory=list)

    @classmethod
    def none(cls, count: int) -> Times:
        """The times for `count` exchanges of a recording without times: zero."""
        return cls([0.0] * count, [0.0] * count, [0.0] * count, [True] * count)


def derive_times(exchanges: list[Exchange], discovery: Discovery, log: FetchLog) -> Times:
    """Times of each exchange by the rules of this module; `exchanges` are in order of their start."""
    cpu, delay = _processing(exchanges, discovery)
    load = load_event_ms(exchanges, discovery.kinds)
    return Times(_servers(exchanges, discovery, log), cpu, delay, [e.start_ms < load for e in exchanges])


def load_event_ms(exchanges: list[Exchange], kinds: list[Kind]) -> float:
    """The earliest time at which the load event can have fired; infinity if the log shows none."""
    for index in range(1, len(exchanges)):
        ended = max(range(index), key=lambda i: exchanges[i].end_ms)
        quiet_from, start = exchanges[ended].end_ms, exchanges[index].start_ms
        asking = (
            e.end_ms
            for e, kind in zip(exchanges[:index], kinds, strict=False)
            if kind in _ASKING or e.redirect
        )
        if quiet_from < start and max(asking, default=0.0) < quiet_from - AT_ONCE_MS:
            return start
    return math.inf


def _processing(exchanges: list[Exchange], discovery: Discovery) -> tuple[list[float], list[float]]:
    waits = [0.0] * len(exchanges)
    cpu = [math.inf] * len(exchanges)
    for index, initiator in enumerate(discovery.initiators):
        if initiator is None or initiator.via not in ("script", "style"):
            continue
        parent = initiator.resource
        waits[index] = quiet_ms(exchanges, exchanges[parent].end_ms, exchanges[index].start_ms)
        cpu[parent] = min(cpu[parent], waits[index], AT_ONCE_MS)
    delay = [0.0] * len(exchanges)
    for index, initiator in enumerate(discovery.initiators):
        if initiator and waits[index]:
            delay[index] = _rounded(min(waits[index] - cpu[initiator.resource], MOST_DELAY_MS))
    return [_rounded(ms) if math.isfinite(ms) else 0.0 for ms in cpu], delay


def _servers(exchanges: list[Exchange], discovery: Discovery, log: FetchLog) -> list[float]:
    lookups = _lookups(exchanges, log)
    trips = [_trips(exchanges, index) for index in range(len(exchanges))]
    round_trips = _round_trips(exchanges, lookups)
    document = discovery.kinds.count("document") - 1
    servers = []
    for index, exchange in enumerate(exchanges):
        round_trip = round_trips[exchange.host]
        length = exchange.end_ms - exchange.start_ms
        if index == document:
            length = min(
                [length, *(e.start_ms - exchange.start_ms for e in exchanges[index + 1 : index + 2])]
            )
            left = length - lookups[index] - _connection_trips(exchanges, index) * round_trip
            servers.append(_rounded(min(max(left, 0.0), MOST_DOCUMENT_MS)))
            continue
        left = length - lookups[index] - trips[index] * round_trip
        telling = is_made(exchange, discovery.kinds[index]) and _is_telling(exchanges, index)
        servers.append(_rounded(min(max(left, 0.0), MOST_SERVER_MS)) if telling else 0.0)
    return servers


def _round_trips(exchanges: list[Exchange], lookups: list[float]) -> dict[str, float]:
    """Round trip of each host, ms: from its shortest transaction with a body of one window, else from any."""
    found: dict[tuple[str, bool], float] = {}
    for index, exchange in enumerate(exchanges):
        small = exchange.body_bytes <= INITIAL_WINDOW_BYTES
        one = (exchange.end_ms - exchange.start_ms - lookups[index]) / _connection_trips(exchanges, index)
        key = (exchange.host, small)
        found[key] = min(max(one, 0.0), found.get(key, math.inf))
    return {host: found.get((host, True), ms) for (host, _), ms in found.items()}


def is_made(exchange: Exchange, kind: Kind) -> bool:
    """Whether a program makes the response: a document, data, a redirect, or a URL without a file suffix."""
    static = urlsplit(exchange.url).path.lower().endswith(_STATIC)
    return kind in ("document", "frame", "xhr") or bool(exchange.redirect) or not static


def _is_telling(exchanges: list[Exchange], index: int) -> bool:
    exchange = exchanges[index]
    if len(_busy(exchanges, index)) >= CONNECTIONS_PER_HOST:
        return False
    others = (e for i, e in enumerate(exchanges) if i != index)
    return not any(0 <= exchange.end_ms - other.end_ms <= SAME_MOMENT_MS for other in others)


def _trips(exchanges: list[Exchange], index: int) -> int:
    windows = exchanges[index].body_bytes / INITIAL_WINDOW_BYTES + 1
    return _connection_trips(exchanges, index) + max(math.ceil(math.log2(windows)) - 1, 0)


def _connection_trips(exchanges: list[Exchange], index: int) -> int:
    """1 if a connection from an earlier transaction was idle, else 2."""
    host = exchanges[index].host
    earlier = [i for i in range(index) if exchanges[i].host == host]
    opened = max((len(_busy(exchanges, i)) + 1 for i in earlier), default=0)
    return 1 if len(_busy(exchanges, index)) < opened else 2


def _busy(exchanges: list[Exchange], index: int) -> list[int]:
    """Active transactions with the same host when `index` starts."""
    exchange = exchanges[index]
    return [
        i
        for i in range(index)
        if exchanges[i].host == exchange.host and exchanges[i].end_ms > exchange.start_ms
    ]


def _lookups(exchanges: list[Exchange], log: FetchLog) -> list[float]:
    """Name lookup in each transaction, ms; only the first transaction of a host has one.

    The log overwrites the end of a lookup each time the name is used again. Then the page's mean is used.
    """
    mean = log.histograms.get("DNS.ResolveSuccess")
    seen: set[str] = set()
    lookups = []
    for exchange in exchanges:
        first = exchange.host not in seen
        seen.add(exchange.host)
        lookups.append(_lookup(exchange.host, log.resolves, mean.average if mean else 0.0) if first else 0.0)
    return lookups


def _lookup(host: str, resolves: list[Resolve], mean_ms: float) -> float:
    own = [resolve for resolve in resolves if resolve.host == host]
    answered = next((resolve for resolve in own if resolve.error == 0), None)
    if answered is None:
        return mean_ms
    used_again = any(
        0 <= answered.end_ms - r.end_ms < 1 and r.start_ms > answered.start_ms + 1 for r in own if r.error
    )
    return mean_ms if used_again else answered.end_ms - answered.start_ms


def _rounded(ms: float) -> float:
    return round(ms, 1)
