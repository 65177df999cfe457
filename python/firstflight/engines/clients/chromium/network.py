"""Builds the requests of a page from DevTools' network events of all its frames and workers."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import CDPSession

from firstflight.engines.clients.job import Fetch

Params = dict[str, Any]
"""Parameters of an event, or a part of them (chromedevtools.github.io/devtools-protocol)."""


GONE = "Target.detachedFromTarget"
"""The event for the end of a frame or worker."""


@dataclass
class _Hop:
    """One request. Each redirect is a further hop with the same id."""

    asked: Params
    response: Params | None = None
    ended: float | None = None
    wire_bytes: int | None = None
    cached: bool = False
    error: str | None = None


@dataclass
class Fetches:
    """Collects events; `finished` turns them into rows.

    Attributes:
        under_way: Ids of requests that have not ended.
        ended: URLs of requests that have ended.
        changed_s: Time of the last event, monotonic clock, s.
    """

    under_way: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    changed_s: float = field(default_factory=time.monotonic)
    _hops: dict[str, list[_Hop]] = field(default_factory=dict)

    def note(self, event: str, params: Params) -> None:
        """Takes one event of any session of the page."""
        self.changed_s = time.monotonic()
        if event == GONE:
            self._lose(params.get("targetId", ""))
            return
        name = params["requestId"]
        if event == "Network.requestWillBeSent":
            self._ask(name, params)
        # The request began before this session was listening.
        if not (hops := self._hops.get(name)):
            return
        hop = hops[-1]
        match event:
            case "Network.requestServedFromCache":
                hop.cached = True
            case "Network.responseReceived":
                hop.response = params["response"]
            case "Network.loadingFinished":
                hop.wire_bytes = round(params["encodedDataLength"])
                self._end(name, params)
            case "Network.loadingFailed":
                hop.error = params.get("blockedReason") or params["errorText"] or "cancelled"
                self._end(name, params)

    @property
    def awaits_workers_alone(self) -> bool:
        """Whether only scripts of workers are active, whose end may never be reported.

        On a busy machine a worker may run before this session is listening to it.
        """
        return all(
            self._hops[name][-1].asked.get("type") == "Script" and "." not in name for name in self.under_way
        )

    @property
    def started_ns(self) -> int | None:
        """Time of the first request, monotonic clock, ns; `None` if there was none."""
        first_s = min((hops[0].asked["timestamp"] for hops in self._hops.values()), default=None)
        return None if first_s is None else round(first_s * 1e9)

    def finished(self, started_s: float) -> list[Fetch]:
        """Every http or https request, in the order in which they were queued.

        Args:
            started_s: Navigation start, monotonic clock, s.
        """
        hops = [hop for hops in self._hops.values() for hop in hops]
        hops.sort(key=lambda hop: hop.asked["timestamp"])
        schemes = ("http:", "https:")
        return [_fetch(hop, started_s) for hop in hops if hop.asked["request"]["url"].startswith(schemes)]

    def _ask(self, name: str, params: Params) -> None:
        hops = self._hops.setdefault(name, [])
        if (redirect := params.get("redirectResponse")) and hops:
            hops[-1].response = redirect
            hops[-1].ended = params["timestamp"]
            hops[-1].wire_bytes = round(redirect["encodedDataLength"])
            self.ended.add(hops[-1].asked["request"]["url"])
        hops.append(_Hop(params))
        self.under_way.add(name)

    def _end(self, name: str, params: Params) -> None:
        self._hops[name][-1].ended = params["timestamp"]
        self._lose(name)

    def _lose(self, name: str) -> None:
        """Marks a request as ended. A worker's script has the worker's id, and may get no end event."""
        if name not in self.under_way:
            return
        self.under_way.remove(name)
        self.ended.add(self._hops[name][-1].asked["request"]["url"])


def _fetch(hop: _Hop, started_s: float) -> Fetch:
    request = hop.asked["request"]
    fetch = Fetch(
        url=request["url"],
        method=request["method"],
        kind=hop.asked.get("type", "Other"),
        queued_ms=_ms(hop.asked["timestamp"], started_s),
        initiator=_initiator(hop.asked),
        asked_how=hop.asked.get("initiator", {}).get("type", ""),
        asked_by=_askers(hop.asked.get("initiator", {})),
        posted=[entry["bytes"] for entry in request.get("postDataEntries", []) if "bytes" in entry],
        cached=hop.cached,
        error=hop.error,
    )
    if hop.response:
        _add_response(fetch, hop, hop.response, started_s)
    if hop.ended is not None and not hop.error:
        fetch.end_ms = _ms(hop.ended, started_s)
    return fetch


def _add_response(fetch: Fetch, hop: _Hop, response: Params, started_s: float) -> None:
    header_bytes = 0 if hop.cached else round(response["encodedDataLength"])
    fetch.status = response["status"]
    fetch.mime = response["mimeType"]
    fetch.protocol = response.get("protocol")
    fetch.cached |= bool(response.get("fromDiskCache") or response.get("fromPrefetchCache"))
    fetch.socket = response.get("connectionId") or None
    if hop.wire_bytes is not None:
        fetch.wire_bytes = hop.wire_bytes
        fetch.body_bytes = max(0, hop.wire_bytes - header_bytes)
    if timing := response.get("timing"):
        _add_timing(fetch, timing, started_s)


def _add_timing(fetch: Fetch, timing: dict[str, float], started_s: float) -> None:
    """Adds the times of `timing`, which are ms after `requestTime`; -1 means that it did not happen."""

    def at(key: str) -> float | None:
        offset_ms = timing.get(key, -1)
        return None if offset_ms < 0 else _ms(timing["requestTime"], started_s) + offset_ms

    fetch.connect_start_ms = at("connectStart")
    fetch.tls_start_ms = at("sslStart")
    fetch.connect_end_ms = at("connectEnd")
    fetch.sent_ms = at("sendEnd")
    fetch.first_byte_ms = at("receiveHeadersStart") or at("receiveHeadersEnd")


def _initiator(asked: Params) -> str | None:
    """URL of the initiator: the script on top of the stack, or else the document or style sheet."""
    if redirect := asked.get("redirectResponse"):
        return str(redirect["url"])
    initiator = asked.get("initiator", {})
    frames = initiator.get("stack", {}).get("callFrames", [])
    found = initiator.get("url") or next((frame["url"] for frame in frames if frame["url"]), None)
    return str(found) if found else None


def _askers(initiator: Params) -> list[str]:
    """The files on the initiator's call stack and on the stacks that scheduled it, innermost first."""
    urls, stack = [], initiator.get("stack", {})
    while stack:
        urls += [frame["url"] for frame in stack["callFrames"]]
        stack = stack.get("parent", {})
    urls.append(initiator.get("url", ""))
    return list(dict.fromkeys(filter(None, urls)))


def _ms(timestamp_s: float, started_s: float) -> float:
    return round((timestamp_s - started_s) * 1000, 3)


Handler = Callable[[str, Params], None]
Send = Callable[[str, Params], None]

CODINGS = {"Accept-Encoding": "gzip, deflate, br, zstd"}
"""What Chromium offers with https. Without TLS it offers and accepts gzip and deflate alone."""

_EVENTS = (
    "Network.requestWillBeSent",
    "Network.requestServedFromCache",
    "Network.responseReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    GONE,
)
_CHILDREN = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": False}


class Targets:
    """Passes every network event of a page to one handler.

    Args:
        session: The page's session.
        handler: Called with the name and the parameters of each event.
        blocked: URL patterns that the browser must not request.
        headers: Header fields of every request, in place of the browser's own.
    """

    def __init__(
        self,
        session: CDPSession,
        handler: Handler,
        blocked: list[str],
        headers: dict[str, str] | None = None,
    ) -> None:
        self._handler = handler
        self._last_id = 0
        self._blocked = blocked
        self._headers = headers
        for event in _EVENTS:
            session.on(event, self._passing(event))
        session.on("Target.attachedToTarget", lambda params: self._attached(send, params))
        session.on("Target.receivedMessageFromTarget", lambda params: self._received(send, params))

        def send(method: str, params: Params) -> None:
            session.send(method, params)

        self._listen(send)

    def _passing(self, event: str) -> Callable[[Params], None]:
        return lambda params: self._handler(event, params)

    def _listen(self, send: Send) -> None:
        send("Network.enable", {})
        if self._blocked:
            send("Network.setBlockedURLs", {"urls": self._blocked})
        if self._headers:
            send("Network.setExtraHTTPHeaders", {"headers": self._headers})
        send("Target.setAutoAttach", _CHILDREN)

    def _attached(self, parent: Send, params: Params) -> None:
        child = self._through(parent, params["sessionId"])
        self._listen(child)
        child("Runtime.runIfWaitingForDebugger", {})

    def _received(self, parent: Send, params: Params) -> None:
        message = json.loads(params["message"])
        child = self._through(parent, params["sessionId"])
        match message.get("method"):
            case "Target.attachedToTarget":
                self._attached(child, message["params"])
            case "Target.receivedMessageFromTarget":
                self._received(child, message["params"])
            case str() as event if event in _EVENTS:
                self._handler(event, message["params"])

    def _through(self, parent: Send, session_id: str) -> Send:
        def send(method: str, params: Params) -> None:
            self._last_id += 1
            message = json.dumps({"id": self._last_id, "method": method, "params": params})
            parent("Target.sendMessageToTarget", {"sessionId": session_id, "message": message})

        return send
