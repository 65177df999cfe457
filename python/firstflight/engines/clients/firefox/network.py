"""Builds the requests of a page from the network events of WebDriver BiDi."""

import time
from dataclasses import dataclass, field

from firstflight.engines.clients.firefox.bidi import Params
from firstflight.engines.clients.job import Fetch

EVENTS = (
    "network.beforeRequestSent",
    "network.responseStarted",
    "network.responseCompleted",
    "network.fetchError",
)


@dataclass
class Fetches:
    """Collects events; `finished` turns them into rows.

    Attributes:
        under_way: Requests that have not ended: ids, and how often each was redirected.
        ended: URLs of requests that have ended.
        changed_s: Time of the last event, monotonic clock, s.
    """

    under_way: set[tuple[str, int]] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    changed_s: float = field(default_factory=time.monotonic)
    _last: dict[tuple[str, int], Params] = field(default_factory=dict)

    def note(self, event: str, params: Params) -> None:
        """Takes one event of any frame or worker."""
        if event not in EVENTS or not params["request"]["url"].startswith(("http:", "https:")):
            return
        self.changed_s = time.monotonic()
        key = (params["request"]["request"], params["redirectCount"])
        # The request began before this session was listening.
        if event != "network.beforeRequestSent" and key not in self._last:
            return
        self._last[key] = {**self._last.get(key, {}), **params}
        if event in ("network.responseCompleted", "network.fetchError"):
            self.under_way.discard(key)
            self.ended.add(params["request"]["url"])
        elif event == "network.beforeRequestSent":
            self.under_way.add(key)

    @property
    def started_ms(self) -> float | None:
        """Time of the first request, ms since 1970. As the document's, it is navigation start."""
        times = (params["request"]["timings"]["requestTime"] for params in self._last.values())
        return next(filter(None, times), None)

    def finished(self) -> list[Fetch]:
        """Every request so far, in the order in which they were made."""
        started_ms = self.started_ms or 0.0
        return [_fetch(params, started_ms) for params in self._last.values()]


def _fetch(params: Params, started_ms: float) -> Fetch:
    request, response = params["request"], params.get("response")
    timings = request["timings"]

    def at(key: str) -> float | None:
        """A time in ms after `started_ms`. Firefox gives ms since 1970, or 0 for what did not happen."""
        return round(timings[key] - started_ms, 3) if timings[key] else None

    fetch = Fetch(
        url=request["url"],
        method=request["method"],
        kind=request.get("destination") or "other",
        queued_ms=at("requestTime") or 0.0,
        connect_start_ms=at("connectStart"),
        tls_start_ms=at("tlsStart"),
        connect_end_ms=at("connectEnd"),
        sent_ms=at("requestStart"),
        error=params.get("errorText"),
    )
    if response:
        fetch.first_byte_ms = at("responseStart")
        fetch.status, fetch.mime = response["status"], response["mimeType"]
        fetch.protocol, fetch.cached = response["protocol"], response["fromCache"]
        fetch.body_bytes, fetch.wire_bytes = response["bodySize"], response["bytesReceived"]
        fetch.end_ms = None if fetch.error else at("responseEnd")
    return fetch
