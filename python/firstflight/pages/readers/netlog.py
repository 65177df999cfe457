"""Net logs of Chromium (`chrome://net-export`, `--log-net-log`): the events of its network stack.

A log is most precise about connections: which request used which one, when it was opened, TLS, HTTP/2 or
QUIC. It has little about the page: no initiators but the requesting origin, no load event, no main thread.
With the capture mode `Everything` it also has bodies. Requests by the browser itself are left out.

The format is defined in net/log/file_net_log_observer.cc and net/log/net_log_event_type_list.h of Chromium.
An event has a source (a request, a job, a socket, a session). Sources refer to each other by
`source_dependency`:

    URL_REQUEST -> HTTP_STREAM_JOB -> SOCKET, or HTTP2_SESSION -> SOCKET, or QUIC_SESSION

`pages/record/wire.py` reads the logs of firstflight's own browser line by line, for the bodies alone.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.assemble import check_count
from firstflight.pages.fields import unescaped
from firstflight.pages.readers.chrome import ChromeRequest, log_of
from firstflight.pages.readers.har import page_of_log
from firstflight.pages.readers.har_entry import Node, node, nodes, number, positive, text

_MOST_BODY = 1 << 26
_MOST_LOOKUPS = 50
_MOST_MAKERS = 50
"""Limit of sources that are searched for a connection. Only a malicious log has more."""
_OPENING = ("TCP_CONNECT", "SSL_CONNECT", "QUIC_SESSION_POOL_JOB_CONNECT")
_SENT = "_SEND_REQUEST_HEADERS"
_LEADS = (
    "SOCKET_POOL_BOUND_TO_SOCKET",
    "HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET",
    "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION",
    "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION_FROM_IP_POOL",
    "HTTP2_SESSION_INITIALIZED",
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
    "HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION",
    "QUIC_SESSION_POOL_USE_EXISTING_SESSION",
    "BOUND_TO_QUIC_SESSION_POOL_JOB",
    "QUIC_SESSION_CREATED",
)
"""Events in which a source names what it uses; a later event replaces an earlier one."""


def is_netlog(document: Node) -> bool:
    """Whether it has the constants and events of a net log."""
    return bool(node(node(document, "constants"), "logEventTypes")) and isinstance(
        document.get("events"), list
    )


def open_netlog_page(document: Node, path: Path, url: str) -> LoadedPage:
    """The page at `url` in a net log; without `url`, the first.

    Raises:
        PageInputError: There is no such page in it.
    """
    constants = node(document, "constants")
    log = _Log(constants)
    for event in nodes(document, "events"):
        log.note(event)
    requests = log.requests(str(path))
    if not requests:
        problem = f"{path}: a net log without a request of a page in it"
        raise PageInputError(problem, "start the log before the page is loaded, and stop it after")
    epoch_ms = number(constants, "timeTickOffset") or 0.0
    har = log_of(requests, [], epoch_ms)
    return page_of_log(har, path, f"net log {path.name}", url)


@dataclass(slots=True)
class _Source:
    """A socket, a session or a job, as far as requests need it.

    Attributes:
        spans: Begin and end of each kind of event, ms; until the end comes, it equals the begin.
        over: The source that it uses.
        facts: Values of the connection from events.
    """

    spans: dict[str, list[float]] = field(default_factory=dict)
    over: int | None = None
    facts: Node = field(default_factory=dict)


@dataclass(slots=True)
class _Hop:
    """A request up to its response or redirect; times in ms."""

    source: int
    url: str
    method: str
    asked_ms: float
    is_main: bool
    origin: str
    priority: str = ""
    job: int | None = None
    stream_ms: float | None = None
    sent_ms: float | None = None
    send_end_ms: float | None = None
    headers_ms: float | None = None
    ended_ms: float | None = None
    asked: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    coded: bool = False
    encoded_bytes: int = 0
    decoded_bytes: int = 0
    body: bytearray = field(default_factory=bytearray)
    served: bytearray = field(default_factory=bytearray)
    cached: bool = False
    failed: str = ""
    redirect_of: str = ""


class _Log:
    """Builds requests and the sources that they use, event by event."""

    def __init__(self, constants: Node) -> None:
        self._types = _names(constants, "logEventTypes")
        self._kinds = _names(constants, "logSourceType")
        phases = node(constants, "logEventPhase")
        self._begin, self._end = number(phases, "PHASE_BEGIN"), number(phases, "PHASE_END")
        self._hops: dict[int, list[_Hop]] = {}
        self._sources: dict[int, _Source] = {}
        self._waiting: dict[int, tuple[float, str]] = {}
        self._lookups: dict[str, list[tuple[float, float]]] = {}
        self._makers: dict[int, list[int]] = {}

    def note(self, event: Node) -> None:
        """Takes one event."""
        source, at_ms = node(event, "source"), number(event, "time")
        name, kind = number(source, "id"), self._kinds.get(number(source, "type") or -1, "")
        event_type = self._types.get(number(event, "type") or 0, "")
        if name is None or at_ms is None or not event_type:
            return
        phase, params = number(event, "phase"), node(event, "params")
        begins, ends = phase == self._begin, phase == self._end
        if kind == "URL_REQUEST":
            self._request(round(name), event_type, at_ms, params, begins=begins, ends=ends)
        else:
            self._carrier(round(name), event_type, at_ms, params, begins=begins, ends=ends)

    def _carrier(
        self, name: int, event: str, at_ms: float, params: Node, *, begins: bool, ends: bool
    ) -> None:
        source = self._sources.setdefault(name, _Source())
        if event in (*_OPENING, "HOST_RESOLVER_MANAGER_REQUEST"):
            if begins:
                source.spans[event] = [at_ms, at_ms]
                source.facts["lookup"] = text(params, "host") or source.facts.get("lookup", "")
            elif ends and event in source.spans:
                source.spans[event][1] = at_ms
                if event.startswith("HOST"):
                    began_ms = source.spans[event][0]
                    if at_ms > began_ms:
                        host = _host(text(source.facts, "lookup"))
                        self._lookups.setdefault(host, []).append((began_ms, at_ms))
        if event in _LEADS and (led := number(node(params, "source_dependency"), "id")) is not None:
            source.over = round(led)
        if event in ("SSL_CONNECT", "TCP_CONNECT", "HTTP_STREAM_REQUEST_PROTO", "SSL_CERTIFICATES_RECEIVED"):
            source.facts |= params
        if event == "QUIC_SESSION" and begins:
            source.facts |= {"quic": True}
        if event == "QUIC_SESSION_CERTIFICATE_VERIFIED":
            source.facts |= params

    def _request(
        self, name: int, event: str, at_ms: float, params: Node, *, begins: bool, ends: bool
    ) -> None:
        if event == "REQUEST_ALIVE" and begins:
            self._waiting[name] = (at_ms, text(params, "priority"))
        if event == "URL_REQUEST_START_JOB" and begins:
            self._start(name, at_ms, params)
        hops = self._hops.get(name)
        if hops:
            _progress(hops[-1], event, at_ms, params, begins=begins, ends=ends)

    def _start(self, name: int, at_ms: float, params: Node) -> None:
        hops = self._hops.setdefault(name, [])
        alive_ms, priority = self._waiting.get(name, (at_ms, ""))
        url = text(params, "url").partition("#")[0]
        hop = _Hop(
            source=name,
            url=url,
            method=text(params, "method") or "GET",
            asked_ms=at_ms if hops else alive_ms,
            is_main=text(params, "request_type") == "main frame",
            origin=text(params, "initiator"),
            priority=priority,
        )
        if hops:
            before = hops[-1]
            hop.redirect_of = before.url
            before.ended_ms = before.headers_ms if before.ended_ms is None else before.ended_ms
        hops.append(hop)

    def requests(self, place: str) -> list[ChromeRequest]:
        """The requests of pages, in the order in which they were queued.

        Raises:
            PageInputError: There are too many; the message names `place`.
        """
        hops = [
            hop
            for hops in self._hops.values()
            for hop in hops
            if hop.is_main or hop.origin.startswith("http")
        ]
        check_count(len(hops), place)
        hops.sort(key=lambda hop: (hop.asked_ms, hop.source))
        for name, source in self._sources.items():
            if source.over is not None and source.spans:
                self._makers.setdefault(source.over, []).append(name)
        for found in self._lookups.values():
            found.sort()
        opened: set[int] = set()
        return [self._finished(hop, opened) for hop in hops]

    def _finished(self, hop: _Hop, opened: set[int]) -> ChromeRequest:
        connection, via = self._connection(hop.job)
        carrier = self._sources.get(connection) if connection is not None else None
        facts = carrier.facts if carrier else {}
        is_quic = facts.get("quic") is True
        answer: Node = {
            "status": _status(hop.answered),
            "mimeType": _value(hop.answered, "content-type").partition(";")[0],
            "protocol": "h3" if is_quic else self._protocol(via, facts, hop),
            "connectionId": connection,
            "remoteIPAddress": _address(text(facts, "remote_address")),
        }
        names = facts.get("subjects")
        secure = "QUIC" if is_quic else text(facts, "version")
        answer["securityDetails"] = {"protocol": secure, "sanList": names} if secure else None
        served = bytes(hop.served if hop.coded else hop.body)
        is_kept = 0 < len(hop.body) == hop.decoded_bytes
        is_whole = is_kept and (not hop.coded or len(hop.served) == hop.encoded_bytes)
        return ChromeRequest(
            url=hop.url,
            method=hop.method,
            asked_s=hop.asked_ms / 1000,
            initiator={"type": "redirect", "url": hop.redirect_of} if hop.redirect_of else {},
            priority=hop.priority,
            fields=_fields(hop.asked),
            sent_body_bytes=int(_digits(_value(hop.asked, "content-length"))),
            answer=answer,
            answer_fields=_fields(hop.answered),
            timing=self._timing(hop, connection, via, opened),
            body_bytes=(hop.encoded_bytes if hop.coded else hop.decoded_bytes) or None,
            decoded_bytes=hop.decoded_bytes,
            body=bytes(hop.body) if is_kept else None,
            served_body=served if is_whole else None,
            ended_s=hop.ended_ms / 1000 if hop.ended_ms is not None and hop.answered else None,
            failed=hop.failed,
            cached=hop.cached and hop.sent_ms is None,
            navigates=hop.is_main,
            certificates=facts.get("certificates"),
        )

    def _connection(self, job: int | None) -> tuple[int | None, list[int]]:
        """The socket or QUIC session that a job uses, and the sources between them."""
        via: list[int] = []
        while job is not None and job not in via and len(via) < 9:
            via.append(job)
            source = self._sources.get(job)
            job = source.over if source else None
        return (via[-1] if len(via) > 1 or (via and self._carries(via[-1])) else None), via

    def _carries(self, name: int) -> bool:
        source = self._sources.get(name)
        return bool(source and (source.facts.get("quic") or "TCP_CONNECT" in source.spans))

    def _protocol(self, via: list[int], facts: Node, hop: _Hop) -> str:
        for name in via:
            if proto := text(self._sources[name].facts if name in self._sources else {}, "proto"):
                return proto
        if hop.sent_ms is None:
            return ""
        return text(facts, "next_proto").replace("unknown", "") or "http/1.1"

    def _timing(self, hop: _Hop, connection: int | None, via: list[int], opened: set[int]) -> Node:
        """The phases in the protocol's form. Those of a connection are with its first request."""
        if hop.sent_ms is None or hop.headers_ms is None:
            return {}
        began_ms = hop.stream_ms if hop.stream_ms is not None else hop.asked_ms
        timing: Node = {
            "requestTime": began_ms / 1000,
            "sendStart": hop.sent_ms - began_ms,
            "sendEnd": (hop.send_end_ms if hop.send_end_ms is not None else hop.sent_ms) - began_ms,
            "receiveHeadersEnd": hop.headers_ms - began_ms,
        }
        if connection is None or connection in opened:
            return timing
        opened.add(connection)
        spans = {
            event: span
            for name in (*via, *self._makers.get(connection, [])[:_MOST_MAKERS])
            for event, span in self._spans(name)
        }
        tcp, tls = spans.get("TCP_CONNECT"), spans.get("SSL_CONNECT")
        quic = spans.get("QUIC_SESSION_POOL_JOB_CONNECT")
        first = (tcp or quic or [began_ms])[0]
        if first >= began_ms - 1:
            for key, span in (("connect", tcp or quic), ("ssl", tls or (quic if not tcp else None))):
                if span:
                    timing |= {f"{key}Start": max(span[0] - began_ms, 0.0), f"{key}End": span[1] - began_ms}
            if tcp and tls:
                timing["connectEnd"] = tls[1] - began_ms
        lookups = self._lookups.get(_host(hop.url), [])
        first_of = bisect_left(lookups, (began_ms - 1, 0.0))
        known = [
            (end - start, start, end)
            for start, end in lookups[first_of : first_of + _MOST_LOOKUPS]
            if end <= hop.sent_ms
        ]
        if known:
            _, start, end = max(known)
            timing |= {"dnsStart": max(start - began_ms, 0.0), "dnsEnd": end - began_ms}
        return timing

    def _spans(self, name: int) -> list[tuple[str, list[float]]]:
        source = self._sources.get(name)
        return list(source.spans.items()) if source else []


def _progress(hop: _Hop, event: str, at_ms: float, params: Node, *, begins: bool, ends: bool) -> None:
    match event:
        case "HTTP_STREAM_REQUEST" if begins:
            hop.stream_ms = at_ms
        case "HTTP_STREAM_REQUEST_BOUND_TO_JOB" | "HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION":
            led = number(node(params, "source_dependency"), "id")
            hop.job = round(led) if led is not None else hop.job
        case "HTTP_TRANSACTION_SEND_REQUEST" if begins:
            hop.sent_ms = at_ms
        case "HTTP_TRANSACTION_SEND_REQUEST" if ends:
            hop.send_end_ms = at_ms
        case "HTTP_TRANSACTION_READ_RESPONSE_HEADERS":
            hop.headers_ms, hop.answered = at_ms, _lines(params)
            hop.ended_ms = at_ms
        case "HTTP_CACHE_READ_INFO" if ends:
            hop.cached = True
        case "URL_REQUEST_FILTERS_SET":
            hop.coded = True
        case "URL_REQUEST_JOB_BYTES_READ":
            hop.encoded_bytes += round(positive(params, "byte_count") or 0.0)
            _keep(hop.served, text(params, "bytes"))
            hop.ended_ms = at_ms
        case "URL_REQUEST_JOB_FILTERED_BYTES_READ":
            hop.decoded_bytes += round(positive(params, "byte_count") or 0.0)
            hop.ended_ms = hop.ended_ms if hop.coded and hop.ended_ms else at_ms
            _keep(hop.body, text(params, "bytes"))
        case "FAILED" | "CANCELLED":
            hop.failed = f"net error {number(params, 'net_error') or 0:.0f}"
        case _ if event.endswith(_SENT) or event == "HTTP_TRANSACTION_SEND_REQUEST_HEADERS":
            hop.asked = _lines(params)


def _keep(body: bytearray, data: str) -> None:
    """Appends a piece of a body. A body that is incomplete in the end is not served."""
    try:
        piece = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return
    if len(body) + len(piece) <= _MOST_BODY:
        body += piece


def _names(constants: Node, key: str) -> dict[float, str]:
    numbers = node(constants, key)
    return {found: name for name in numbers if (found := number(numbers, name)) is not None}


def _lines(params: Node) -> list[str]:
    lines = params.get("headers")
    return [unescaped(line) for line in lines if isinstance(line, str)] if isinstance(lines, list) else []


def _fields(lines: list[str]) -> list[tuple[str, str]]:
    parts = (line.partition(": ") for line in lines if not line.startswith("HTTP/"))
    return [(name, value.strip()) for name, colon, value in parts if colon]


def _value(lines: list[str], name: str) -> str:
    return next((value for key, value in _fields(lines) if key.lower() == name), "")


def _digits(written: str) -> str:
    return written if written.isascii() and written.isdigit() and len(written) < 12 else "0"


def _status(lines: list[str]) -> str:
    words = lines[0].split() if lines else []
    return words[1] if len(words) > 1 and words[0].startswith("HTTP/") else ""


def _address(written: str) -> str:
    """An address without its port."""
    return written.rpartition(":")[0].strip("[]")


def _host(written: str) -> str:
    """The host of a URL, or of `host:port`."""
    try:
        return urlsplit(written if "://" in written else f"//{written}").hostname or ""
    except ValueError:
        return ""
