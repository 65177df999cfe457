"""Requests in Chromium's own logs, and their form as HAR entries.

The DevTools protocol's log and the performance trace describe the same request in different words. The net
log has less about the page and more about connections. Each reader fills in a `ChromeRequest`. Only this
module writes their HAR entries, so that three logs of one visit give the same page.

Phases are those of Chrome's own HAR export (front_end/models/har/Log.ts). They start when the page queued the
request (`asked_s`): `blocked` up to the first phase, then DNS, TCP with TLS, sending, waiting, receiving.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime

from firstflight.pages.fields import size_of, status_line, value_of
from firstflight.pages.readers.har_entry import Node, node, nodes, number, positive, text

_LATEST_MS = 4e12
"""A time in 2096; a clock with a later time is damaged."""

_MOST_CERTIFICATES = 10


@dataclass(slots=True)
class ChromeRequest:
    """One request and its result.

    Attributes:
        url: The requested URL.
        method: The HTTP method.
        asked_s: When the page queued it, s of Chromium's monotonic clock.
        kind: DevTools' resource type.
        initiator: In the form of the DevTools protocol.
        priority: Its first priority.
        render_blocking: In the form of the protocol or the trace.
        fields: Header fields of the request, as sent.
        sent_body_bytes: Length of the request's body.
        answer: The protocol's `Network.Response`, or the part of it in a trace.
        answer_fields: Header fields of the response, as received.
        timing: The protocol's `Network.ResourceTiming`: `requestTime` in s, all else in ms after it.
        body_bytes: Length of the response's body as encoded, without framing; `None`: not known.
        received_bytes: Bytes on the wire, header and body; `None`: not known.
        decoded_bytes: Length of the decoded body; `None`: not known.
        ended_s: When the last byte came, s of the same clock; `None`: the response did not end.
        failed: Why it failed, or empty.
        cached: Whether a cache or a service worker answered.
        cpu_ms: Main-thread time spent on it; `None`: not recorded.
        navigates: Whether the main frame requested it as its document.
        body: The response's decoded body; `None`: not kept.
        served_body: The response's body as on the wire; `None`: not kept.
        certificates: The server's certificates, in PEM.
    """

    url: str
    method: str
    asked_s: float
    kind: str = ""
    initiator: Node = field(default_factory=dict)
    priority: str = ""
    render_blocking: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    sent_body_bytes: int = 0
    answer: Node = field(default_factory=dict)
    answer_fields: list[tuple[str, str]] = field(default_factory=list)
    timing: Node = field(default_factory=dict)
    body_bytes: int | None = None
    received_bytes: int | None = None
    decoded_bytes: int | None = None
    ended_s: float | None = None
    failed: str = ""
    cached: bool = False
    cpu_ms: float | None = None
    navigates: bool = False
    body: bytes | None = None
    served_body: bytes | None = None
    certificates: object = None

    def received(self, whole_bytes: float | None) -> None:
        """Stores how many bytes came in all, header and body; `None`: not known.

        The response has the number of bytes when its header was complete, including the part of the body so
        far. A compressed header is not longer than in HTTP/1.1.
        """
        if whole_bytes is None:
            return
        self.received_bytes = round(whole_bytes)
        header = round(positive(self.answer, "encodedDataLength") or 0.0)
        if self.answer_fields:
            header = min(header, size_of(status_line(200), self.answer_fields))
        if self.body_bytes is None:
            self.body_bytes = max(self.received_bytes - header, 0)
        self.body_bytes = min(self.body_bytes, self.received_bytes)

    def entry(self, page: str, epoch_ms: float) -> Node:
        """The request as an entry of a HAR.

        Args:
            page: Name of the page that it belongs to.
            epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
        """
        phases = self._phases()
        is_answered = not self.failed and not self._is_internal()
        ended = self.ended_s if is_answered else None
        length_ms = max((ended - self.asked_s) * 1000, 0.0) if ended is not None else 0.0
        protocol = text(self.answer, "protocol")
        status = (number(self.answer, "status") or 0.0) if ended is not None else 0.0
        return {
            "pageref": page,
            "startedDateTime": iso_time(epoch_ms + self.asked_s * 1000),
            "time": length_ms,
            "request": {
                "method": self.method,
                "url": self.url,
                "httpVersion": protocol,
                "headers": listed(self.fields),
                "headersSize": -1,
                "bodySize": self.sent_body_bytes,
            },
            "response": self._response(round(status), protocol),
            "timings": {**phases, "receive": max(length_ms - sum(map(_counted, phases.items())), 0.0)},
            "_connectionId": _connection(self.answer),
            "serverIPAddress": text(self.answer, "remoteIPAddress"),
            "_securityDetails": self.answer.get("securityDetails"),
            "_resourceType": self.kind.lower(),
            "_initiator": self.initiator,
            "_priority": self.priority,
            "_renderBlocking": self.render_blocking,
            "_cpuTime": self.cpu_ms,
            "_certificate_bytes": certificate_bytes(self.certificates),
            "_fromCache": "memory" if self.cached else None,
        }

    def _response(self, status: int, protocol: str) -> Node:
        return {
            "status": status,
            "httpVersion": protocol,
            "headers": listed(self.answer_fields),
            "content": self._content(),
            "redirectURL": value_of(self.answer_fields, "location"),
            "headersSize": -1,
            "bodySize": self.body_bytes,
            "_transferSize": self.received_bytes,
        }

    def _is_internal(self) -> bool:
        """Whether the browser redirected itself, as with HSTS: then nothing was sent over the network."""
        return value_of(self.answer_fields, "non-authoritative-reason") != "" and not positive(
            self.answer, "encodedDataLength"
        )

    def _content(self) -> Node:
        content: Node = {"size": self.decoded_bytes, "mimeType": text(self.answer, "mimeType")}
        if self.body is None:
            return content
        text_of = {"text": base64.b64encode(self.body).decode(), "encoding": "base64"}
        return {**content, **text_of, "_served": self.served_body}

    def _phases(self) -> dict[str, float]:
        """Durations of the phases except `receive`, ms; -1 for a phase that did not happen."""
        at = {key: found for key in self.timing if (found := number(self.timing, key)) is not None}
        began_s = at.get("requestTime")
        if not began_s:
            return dict.fromkeys(("blocked", "dns", "connect", "ssl", "send", "wait"), -1.0)
        began_ms = max((began_s - self.asked_s) * 1000, 0.0)
        sent = _at(at, "sendEnd", 0.0)
        first = next(
            (at[key] for key in ("dnsStart", "connectStart", "sendStart") if at.get(key, -1) >= 0), 0.0
        )
        heard = at.get("receiveHeadersStart", -1.0)
        if heard < sent or heard <= 0:
            heard = at.get("receiveHeadersEnd", sent)
        opened = max(_at(at, "dnsEnd", first), _at(at, "connectEnd", first))
        return {
            "blocked": began_ms + first + max(_at(at, "sendStart", opened) - opened, 0.0),
            "dns": _length(at, "dns"),
            "connect": _length(at, "connect"),
            "ssl": _length(at, "ssl"),
            "send": max(_length(at, "send"), 0.0),
            "wait": max(heard - sent, 0.0),
        }


def _at(at: dict[str, float], key: str, otherwise: float) -> float:
    found = at.get(key, -1.0)
    return found if found >= 0 else otherwise


def _length(at: dict[str, float], phase: str) -> float:
    start, end = at.get(f"{phase}Start", -1.0), at.get(f"{phase}End", -1.0)
    return end - start if 0 <= start <= end else -1.0


def _counted(phase: tuple[str, float]) -> float:
    """The part of the whole that a phase adds: TLS is contained in `connect`."""
    name, length = phase
    return 0.0 if name == "ssl" else max(length, 0.0)


def _connection(answer: Node) -> str:
    found = positive(answer, "connectionId")
    return f"{found:.0f}" if found else ""


def certificate_bytes(chain: object) -> int:
    """Length of PEM certificates in DER form."""
    texts = [item for item in chain if isinstance(item, str)] if isinstance(chain, list) else []
    lines = (line for item in texts[:_MOST_CERTIFICATES] for line in item.splitlines() if "-----" not in line)
    return sum(len(line.strip().rstrip("=")) for line in lines) * 3 // 4


def listed(fields: list[tuple[str, str]]) -> list[Node]:
    """Header fields as a HAR lists them."""
    return [{"name": name, "value": value} for name, value in fields]


def fields_of(headers: object) -> list[tuple[str, str]]:
    """Header fields from the protocol's object, in which newlines join repeated fields, or from a list."""
    if isinstance(headers, dict):
        return [(name, value) for name, value in headers.items() if isinstance(value, str)]
    if isinstance(headers, list):
        return [(text(item, "name"), text(item, "value")) for item in headers if isinstance(item, dict)]
    return []


def iso_time(epoch_ms: float) -> str:
    """A time in ISO 8601, with microseconds."""
    return datetime.fromtimestamp(min(max(epoch_ms, 0.0), _LATEST_MS) / 1000, UTC).isoformat()


def split_pages(requests: list[ChromeRequest]) -> list[list[ChromeRequest]]:
    """The requests of each page, in the order in which they were queued.

    A page begins when its main frame requests a document that the page before did not request. A document
    that loads itself again, such as a challenge for browsers, belongs to the same visit. Logs without the
    initiator of a navigation (traces, net logs) show this by the document's URL, which is the same.
    """
    pages: list[list[ChromeRequest]] = []
    document, known = "", set[str]()
    for request in sorted(requests, key=lambda request: request.asked_s):
        if request.navigates and pages and document == request.url and not text(request.initiator, "type"):
            request.initiator = {"type": "script", "url": document}
        if not pages or (request.navigates and not _is_by(request, known)):
            pages.append([])
            known = set()
        if request.navigates:
            document = request.url
        pages[-1].append(request)
        known.add(request.url.partition("#")[0])
    return pages


def _is_by(request: ChromeRequest, page: set[str]) -> bool:
    """Whether a file of `page`, a set of URLs, made the request, or its document's redirect led to it."""
    urls = {text(frame, "url") for frame in nodes(node(request.initiator, "stack"), "callFrames")}
    asking = {url.partition("#")[0] for url in (*urls, text(request.initiator, "url")) if url}
    return text(request.initiator, "type") == "redirect" or not page.isdisjoint(asking)


def log_of(requests: list[ChromeRequest], loads_s: list[float], epoch_ms: float) -> Node:
    """The log of a HAR: a page for each navigation.

    Args:
        requests: All requests.
        loads_s: When load events fired, s of the same clock. A page's load event is the last before the next
            page.
        epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
    """
    pages, entries = [], []
    visits = split_pages(requests)
    begun = any(request.navigates for visit in visits for request in visit)
    for place, visit in enumerate(visits):
        name, began_s = f"page_{place + 1}", visit[0].asked_s
        ends_s = visits[place + 1][0].asked_s if place + 1 < len(visits) else float("inf")
        own = [at for at in loads_s if began_s < at < ends_s]
        if begun and not any(request.navigates for request in visit):
            entries += [request.entry("before", epoch_ms) for request in visit]
            continue
        timings = {"onLoad": (max(own) - began_s) * 1000 if own else -1}
        pages.append(
            {"id": name, "startedDateTime": iso_time(epoch_ms + began_s * 1000), "pageTimings": timings}
        )
        entries += [request.entry(name, epoch_ms) for request in visit]
    return {"pages": pages, "entries": entries}
