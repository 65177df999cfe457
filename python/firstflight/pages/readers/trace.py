"""Performance traces: of DevTools' Performance panel, of chrome://tracing, of Lighthouse and WebPageTest.

The Trace Event Format (an object with `traceEvents`, or the list alone), times in microseconds. Requests are events
of the category `devtools.timeline`: `ResourceWillSendRequest`, `ResourceSendRequest`, `ResourceReceiveResponse`,
`ResourceReceivedData`, `ResourceFinish`, `ResourceMarkAsCached`, `ResourceChangePriority`
(third_party/blink/renderer/core/inspector/inspector_trace_events.cc). A response has the timing, the header fields
and the connection of the DevTools protocol; what the server's certificate says is not in it, nor are bodies.

Main-thread time (`cpu_ms`) of a script: its `EvaluateScript`, `FunctionCall` and `v8.compile` on the renderer's main
thread, each without what runs inside it (that is counted where it belongs); of a document: `ParseHTML` of its URL, of
a style sheet `ParseAuthorStyleSheet`. A browser's other tabs are other pages: the one is read whose frame the trace
follows, that is, which navigates.
"""

from __future__ import annotations

from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.readers.chrome import ChromeRequest, fields_of, log_of
from firstflight.pages.readers.har import page_of_log
from firstflight.pages.readers.har_entry import Node, node, nodes, number, positive, text

_WORK = ("EvaluateScript", "FunctionCall", "v8.compile", "ParseHTML", "ParseAuthorStyleSheet")
_SNIFFED = 100
_RESOURCE = "Resource"


def is_trace(document: object) -> bool:
    """Whether it has trace events, or is a list of them."""
    if isinstance(document, dict):
        return isinstance(document.get("traceEvents"), list)
    head = document[:_SNIFFED] if isinstance(document, list) else []
    return any(isinstance(event, dict) and "ph" in event and "ts" in event for event in head)


def open_trace(document: object, path: Path, url: str) -> LoadedPage:
    """The page at `url` in a trace; without `url`, the first.

    Raises:
        PageInputError: No request is in it, or no such page.
    """
    events = nodes(document, "traceEvents") if isinstance(document, dict) else nodes({"": document}, "")
    trace = _Trace(events)
    requests = trace.requests()
    if not requests:
        problem = f"{path}: a trace without a request over http in it (ResourceSendRequest)"
        raise PageInputError(problem, "record it from before the page is loaded, with the category devtools.timeline")
    return page_of_log(log_of(requests, trace.loads_s, trace.epoch_ms), path, f"trace {path.name}", url)


class _Trace:
    """The requests of a trace's page."""

    def __init__(self, events: list[Node]) -> None:
        self.loads_s: list[float] = []
        self.epoch_ms = 0.0
        self._requests: dict[str, ChromeRequest] = {}
        self._will_send_s: dict[str, float] = {}
        self._frames: dict[str, str] = {}
        self._request_frames: dict[str, str] = {}
        self._documents: dict[str, list[float]] = {}
        self._work: list[tuple[tuple[float, float], float, float, str]] = []
        for event in sorted((e for e in events if number(e, "ts") is not None), key=_ts):
            self._note(event, text(event, "name"), node(event, "args"))
        self._charge()

    def _note(self, event: Node, name: str, args: Node) -> None:
        at_s, data = _ts(event) / 1e6, node(args, "data")
        if name.startswith(_RESOURCE):
            self._resource(name, at_s, data)
        elif name == "MarkLoad" and data.get("isOutermostMainFrame", data.get("isMainFrame")) is True:
            self.loads_s.append(at_s)
            self._frames.setdefault(text(data, "frame"), "")
        elif name == "navigationStart" and data.get("isOutermostMainFrame", data.get("isLoadingMainFrame")) is True:
            self._documents.setdefault(text(args, "frame"), []).append(at_s)
        elif name in _WORK and (duration := positive(event, "dur")):
            url = text(data, "url") or text(node(args, "beginData"), "url") or text(args, "fileName")
            url = url or text(data, "styleSheetUrl")
            thread = (number(event, "pid") or 0.0, number(event, "tid") or 0.0)
            self._work.append((thread, at_s, duration / 1e6, url.partition("#")[0]))

    def _resource(self, name: str, at_s: float, data: Node) -> None:
        key = text(data, "requestId")
        request = self._requests.get(key)
        match name:
            case "ResourceWillSendRequest":
                self._will_send_s.setdefault(key, at_s)
            case "ResourceSendRequest":
                self._ask(key, at_s, data)
            case "ResourceReceiveResponse" if request:
                self._answer(request, data)
            case "ResourceReceivedData" if request:
                found = positive(data, "encodedDataLength")
                request.body_bytes = (request.body_bytes or 0) + round(found or 0.0)
            case "ResourceMarkAsCached" if request:
                request.cached = True
            case "PreloadRenderBlockingStatusChange" if request:
                request.render_blocking = text(data, "renderBlocking")
            case "ResourceFinish" if request:
                request.ended_s = positive(data, "finishTime") or at_s
                request.failed = "failed" if data.get("didFail") is True else ""
                decoded = positive(data, "decodedBodyLength")
                request.decoded_bytes = round(decoded) if decoded else None
                if (whole := positive(data, "encodedDataLength")) is not None:
                    header = positive(request.answer, "encodedDataLength") or 0.0
                    request.received_bytes = round(whole)
                    request.body_bytes = max(round(whole - header), 0)

    def _ask(self, key: str, at_s: float, data: Node) -> None:
        initiator = node(data, "initiator")
        stack = [frame for frame in nodes(data, "stackTrace") if text(frame, "url")]
        kind = text(data, "resourceType")
        asked_s = min(self._will_send_s.pop(key, at_s), at_s)
        self._request_frames[key] = text(data, "frame")
        self._requests[key] = ChromeRequest(
            url=text(data, "url"),
            method=text(data, "requestMethod") or "GET",
            asked_s=asked_s,
            kind=kind,
            initiator={
                "type": text(initiator, "type") or ("script" if stack else ""),
                "url": text(initiator, "url"),
                "stack": {"callFrames": stack},
            },
            priority=text(data, "priority"),
            render_blocking=text(data, "renderBlocking"),
        )

    def _answer(self, request: ChromeRequest, data: Node) -> None:
        request.answer = {**data, "status": data.get("statusCode")}
        request.answer_fields, request.timing = fields_of(data.get("headers")), node(data, "timing")
        request.cached = request.cached or data.get("fromCache") is True or data.get("fromServiceWorker") is True
        responded_ms, began_s = positive(data, "responseTime"), positive(request.timing, "requestTime")
        heard_ms = positive(request.timing, "receiveHeadersEnd")
        if not self.epoch_ms and responded_ms and began_s and heard_ms:
            self.epoch_ms = responded_ms - began_s * 1000 - heard_ms

    def requests(self) -> list[ChromeRequest]:
        """Those over HTTP of the frames that navigate to a page, or of all where the trace does not say."""
        over_http = {key: r for key, r in self._requests.items() if r.url.startswith("http")}
        for key, request in over_http.items():
            frame = self._request_frames[key]
            began = [at for at in self._documents.get(frame, ()) if at <= request.asked_s + 1]
            request.navigates = request.kind == "Document" and frame in self._documents and bool(began)
        return list(over_http.values())

    def _charge(self) -> None:
        """Gives the main thread's time to the requests whose URL it was spent on."""
        spent: dict[str, float] = {}
        stacks: dict[tuple[float, float], list[tuple[float, str]]] = {}
        for thread, began_s, length_s, url in self._work:
            stack = stacks.setdefault(thread, [])
            while stack and stack[-1][0] <= began_s:
                stack.pop()
            if stack:
                spent[stack[-1][1]] = spent.get(stack[-1][1], 0.0) - length_s
            spent[url] = spent.get(url, 0.0) + length_s
            stack.append((began_s + length_s, url))
        by_url = {request.url.partition("#")[0]: request for request in reversed(self._requests.values())}
        for url, request in by_url.items():
            if spent.get(url, 0.0) > 0:
                request.cpu_ms = round(spent[url] * 1000, 1)


def _ts(event: Node) -> float:
    return number(event, "ts") or 0.0
