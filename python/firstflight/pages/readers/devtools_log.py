"""Logs of the DevTools protocol: the events of a visit as Chrome sent them, in a JSON list.

Lighthouse saves them as `*.devtoolslog.json`, wptagent as `devtools.json`. Selenium saves them as its
performance log, with each message as a JSON string. The protocol monitor of DevTools saves them with its
commands. Events are described at https://chromedevtools.github.io/devtools-protocol/tot/Network/. The logs
have no bodies.
"""

from __future__ import annotations

import json
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.readers.chrome import ChromeRequest, fields_of, log_of
from firstflight.pages.readers.har import page_of_log
from firstflight.pages.readers.har_entry import Node, node, number, positive, read_json, text

_CONTINUES = 4
"""The most hops of a redirect whose header fields are kept until their request arrives."""


def is_devtools_log(document: object) -> bool:
    """Whether it is a list that contains an event of the protocol's `Network`."""
    events = _messages(document) if isinstance(document, list) else []
    return any(text(event, "method").startswith("Network.") for event in events)


def open_devtools_log(document: object, path: Path, url: str) -> LoadedPage:
    """The page at `url` in the log `document`, read from `path`; without `url`, the first.

    Raises:
        PageInputError: There is no such page in it.
    """
    visit = _Visit()
    for event in _messages(document):
        visit.note(text(event, "method"), node(event, "params"))
    requests = visit.finished()
    if not requests:
        problem = (
            f"{path}: a log of the DevTools protocol without a request in it (Network.requestWillBeSent)"
        )
        raise PageInputError(problem, "call Network.enable and Page.enable before the page is loaded")
    log = log_of(requests, visit.loads_s, visit.epoch_ms)
    return page_of_log(log, path, f"DevTools log {path.name}", url)


def open_lighthouse(path: Path, url: str = "") -> LoadedPage:
    """The page at `url` in the log in the folder `path` of Lighthouse's artifacts (`-G`).

    Raises:
        PageInputError: There are several logs, or the log cannot be read as a page.
    """
    found = sorted({*path.glob("*.devtoolslog.json"), *path.glob("*.devtoolslog.json.gz")})
    if len(found) > 1:
        problem = f"{path}: {len(found)} DevTools logs in it"
        raise PageInputError(problem, f"name one of them, as {found[0]}")
    document = read_json(found[0], "save the artifacts again: the log is damaged or its end is missing")
    return open_devtools_log(document, found[0], url)


def _messages(document: object) -> list[Node]:
    """The events; those that Selenium put into strings are decoded."""
    events = document if isinstance(document, list) else []
    return [_event(event) for event in events if isinstance(event, dict)]


def _event(event: Node) -> Node:
    inner: object = event.get("message")
    if "method" in event or inner is None:
        return event
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            return event
    outer = inner if isinstance(inner, dict) else {}
    return node(outer, "message") or outer


class _Visit:
    """Active requests by their id. A redirect is another request with the same id."""

    def __init__(self) -> None:
        self.loads_s: list[float] = []
        self.epoch_ms = 0.0
        self._frame = ""
        self._now: dict[str, ChromeRequest] = {}
        self._done: list[ChromeRequest] = []
        self._sent: dict[str, list[Node]] = {}
        self._came: dict[str, list[Node]] = {}

    def finished(self) -> list[ChromeRequest]:
        """All requests."""
        return [*self._done, *self._now.values()]

    def note(self, event: str, params: Node) -> None:
        """Takes one event."""
        name = text(params, "requestId")
        request = self._now.get(name)
        match event:
            case "Page.loadEventFired":
                self.loads_s.append(number(params, "timestamp") or 0.0)
            case "Network.requestWillBeSent":
                self._ask(name, params)
            case "Network.requestWillBeSentExtraInfo":
                self._extra(self._sent, name, params)
            case "Network.responseReceivedExtraInfo":
                self._extra(self._came, name, params)
            case "Network.responseReceived" if request:
                _answered(request, node(params, "response"))
                request.kind = text(params, "type") or request.kind
                self._settle(name)
            case "Network.dataReceived" if request:
                _count(request, params)
            case "Network.requestServedFromCache" if request:
                request.cached = True
            case "Network.loadingFinished" if request:
                request.ended_s = number(params, "timestamp")
                request.received(positive(params, "encodedDataLength"))
            case "Network.loadingFailed" if request:
                request.ended_s = number(params, "timestamp")
                request.failed = text(params, "errorText") or "failed"

    def _ask(self, name: str, params: Node) -> None:
        asked, before = node(params, "request"), self._now.pop(name, None)
        timestamp_s, hop = number(params, "timestamp") or 0.0, node(params, "redirectResponse")
        if not self.epoch_ms and (wall_s := positive(params, "wallTime")):
            self.epoch_ms = (wall_s - timestamp_s) * 1000
        if before is not None:
            if hop:
                _answered(before, hop)
                before.ended_s = timestamp_s
                before.received(positive(hop, "encodedDataLength"))
            self._done.append(before)
        frame, kind = text(params, "frameId"), text(params, "type")
        document = kind == "Document" and name == text(params, "loaderId")
        if document and not self._frame:
            self._frame = frame
        initiator = node(params, "initiator")
        self._now[name] = ChromeRequest(
            url=text(asked, "url"),
            method=text(asked, "method") or "GET",
            asked_s=timestamp_s,
            kind=kind,
            initiator={"type": "redirect", "url": before.url} if before and hop else initiator,
            priority=text(asked, "initialPriority"),
            render_blocking=text(params, "renderBlockingBehavior"),
            fields=fields_of(asked.get("headers")),
            sent_body_bytes=len(text(asked, "postData").encode(errors="replace")),
            navigates=document and frame == self._frame,
        )
        self._settle(name)

    def _extra(self, waiting: dict[str, list[Node]], name: str, params: Node) -> None:
        """Stores the header fields as they were on the wire. They may come before what they belong to."""
        queue = waiting.setdefault(name, [])
        if len(queue) < _CONTINUES:
            queue.append(params)
        self._settle(name)

    def _settle(self, name: str) -> None:
        request = self._now.get(name)
        if request is not None and self._sent.get(name):
            request.fields = fields_of(self._sent[name].pop(0).get("headers")) or request.fields
        if request is not None and request.answer and self._came.get(name):
            fields = fields_of(self._came[name].pop(0).get("headers"))
            request.answer_fields = fields or request.answer_fields


def _answered(request: ChromeRequest, response: Node) -> None:
    request.answer, request.timing = response, node(response, "timing")
    request.answer_fields = fields_of(response.get("headers"))
    flags = ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    request.cached = request.cached or any(response.get(flag) is True for flag in flags)


def _count(request: ChromeRequest, params: Node) -> None:
    request.decoded_bytes = (request.decoded_bytes or 0) + round(positive(params, "dataLength") or 0.0)
    encoded = positive(params, "encodedDataLength")
    if encoded:
        request.body_bytes = (request.body_bytes or 0) + round(encoded)
