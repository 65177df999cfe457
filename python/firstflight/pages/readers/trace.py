"""Performance traces: of DevTools' Performance panel, of chrome://tracing, of Lighthouse and WebPageTest.

They are in the Trace Event Format (an object with `traceEvents`, or the list alone), with times in
microseconds. Requests are events of the category `devtools.timeline`: `ResourceWillSendRequest`,
`ResourceSendRequest`, `ResourceReceiveResponse`, `ResourceReceivedData`, `ResourceFinish`,
`ResourceMarkAsCached`, `ResourceChangePriority`
(third_party/blink/renderer/core/inspector/inspector_trace_events.cc). A response has the timing, the header
fields and the connection in the form of the DevTools protocol. The trace lacks server certificates and
bodies.

Main-thread time (`cpu_ms`) of a script is that of its `EvaluateScript`, `FunctionCall` and `v8.compile`, each
without nested events, which count for their own URL. For a document it is `ParseHTML` of its URL, for a style
sheet `ParseAuthorStyleSheet`. Other tabs of the browser are left out as far as the trace distinguishes
frames.
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
_MOST_DEEP = 20
# Types of fetches that the trace calls `Other`.
_FETCHED = {"xmlhttprequest": "XHR", "fetch": "Fetch", "beacon": "Ping"}


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
        raise PageInputError(
            problem, "record it from before the page is loaded, with the category devtools.timeline"
        )
    return page_of_log(log_of(requests, trace.loads_s, trace.epoch_ms), path, f"trace {path.name}", url)


class _Trace:
    """The requests of a trace's page."""

    def __init__(self, events: list[Node]) -> None:
        self.epoch_ms = 0.0
        self._loads_s: list[tuple[str, float]] = []
        self._now: dict[str, ChromeRequest] = {}
        self._asked: list[tuple[str, ChromeRequest]] = []
        self._will_send_s: dict[str, list[float]] = {}
        self._parents: dict[str, str] = {}
        self._main: set[str] = set()
        self._work: list[tuple[tuple[float, float], float, float, str]] = []
        for event in sorted((e for e in events if number(e, "ts") is not None), key=_ts):
            self._note(event, text(event, "name"), node(event, "args"))
        self._charge()

    def requests(self) -> list[ChromeRequest]:
        """The HTTP requests of tabs that navigate to a page; if the trace does not tell tabs, all of them."""
        asked = [(frame, request) for frame, request in self._asked if request.url.startswith("http")]
        own = {frame for frame, request in asked if request.navigates}
        foreign = self._main - own if own else set()
        return [request for frame, request in asked if self._tab(frame) not in foreign]

    @property
    def loads_s(self) -> list[float]:
        """When the load events of those tabs fired, s."""
        own = {
            frame for frame, request in self._asked if request.navigates and request.url.startswith("http")
        }
        return [at_s for frame, at_s in self._loads_s if not own or frame in own]

    def _tab(self, frame: str) -> str:
        """The outermost frame around a frame, as far as the trace tells."""
        for _ in range(_MOST_DEEP):
            frame = self._parents.get(frame) or frame
        return frame

    def _note(self, event: Node, name: str, args: Node) -> None:
        at_s, data = _ts(event) / 1e6, node(args, "data")
        if name.startswith(_RESOURCE) or name == "PreloadRenderBlockingStatusChange":
            self._resource(name, at_s, data)
        elif name == "MarkLoad" and data.get("isOutermostMainFrame", data.get("isMainFrame")) is True:
            self._loads_s.append((text(data, "frame"), at_s))
        elif (
            name == "navigationStart"
            and data.get("isOutermostMainFrame", data.get("isLoadingMainFrame")) is True
        ):
            self._main.add(text(args, "frame"))
        elif name in ("TracingStartedInBrowser", "FrameCommittedInBrowser"):
            for frame in nodes(data, "frames") or [data]:
                self._parents[text(frame, "frame")] = text(frame, "parent")
                if not text(frame, "parent"):
                    self._main.add(text(frame, "frame"))
        elif name in _WORK and (duration := positive(event, "dur")):
            url = text(data, "url") or text(node(args, "beginData"), "url") or text(args, "fileName")
            url = url or text(data, "styleSheetUrl")
            thread = (number(event, "pid") or 0.0, number(event, "tid") or 0.0)
            self._work.append((thread, at_s, duration / 1e6, url.partition("#")[0]))

    def _resource(self, name: str, at_s: float, data: Node) -> None:
        key = text(data, "requestId")
        request = self._now.get(key)
        match name:
            case "ResourceWillSendRequest":
                self._will_send_s.setdefault(key, []).append(at_s)
            case "ResourceSendRequest":
                self._ask(key, at_s, data)
            case "ResourceReceiveResponse" if request:
                self._answer(request, data)
            case "ResourceMarkAsCached" if request:
                request.cached = True
            case "PreloadRenderBlockingStatusChange" if request:
                request.render_blocking = text(data, "renderBlocking")
            case "ResourceFinish" if request:
                request.ended_s = positive(data, "finishTime") or at_s
                request.failed = "failed" if data.get("didFail") is True else ""
                decoded = positive(data, "decodedBodyLength")
                request.decoded_bytes = round(decoded) if decoded else None
                request.received(positive(data, "encodedDataLength"))

    def _ask(self, key: str, at_s: float, data: Node) -> None:
        """A request; for a redirected document one per URL, since a trace has no responses of redirects."""
        initiator, kind = node(data, "initiator"), text(data, "resourceType")
        stack = [frame for frame in nodes(data, "stackTrace") if text(frame, "url")]
        will_send_s, frame = self._will_send_s.get(key, []), text(data, "frame")
        fetched = _FETCHED.get(text(initiator, "fetchType"), "")
        request = ChromeRequest(
            url=text(data, "url"),
            method=text(data, "requestMethod") or "GET",
            asked_s=min(will_send_s.pop(0), at_s) if will_send_s else at_s,
            kind=fetched if kind == "Other" and fetched else kind,
            initiator={
                "type": text(initiator, "type") or ("script" if stack else ""),
                "url": text(initiator, "url"),
                "stack": {"callFrames": stack},
            },
            priority=text(data, "priority"),
            render_blocking=text(data, "renderBlocking"),
            navigates=kind == "Document" and frame in self._main,
        )
        if key in self._now and kind == "Document":
            request.initiator = {"type": "redirect", "url": self._now[key].url}
        self._now[key] = request
        self._asked.append((frame, request))

    def _answer(self, request: ChromeRequest, data: Node) -> None:
        request.answer = {**data, "status": data.get("statusCode")}
        request.answer_fields, request.timing = fields_of(data.get("headers")), node(data, "timing")
        request.cached = (
            request.cached or data.get("fromCache") is True or data.get("fromServiceWorker") is True
        )
        responded_ms, began_s = positive(data, "responseTime"), positive(request.timing, "requestTime")
        heard_ms = positive(request.timing, "receiveHeadersEnd")
        if began_s is not None:
            request.asked_s = min(request.asked_s, began_s)
        if not self.epoch_ms and responded_ms and began_s and heard_ms and not request.cached:
            self.epoch_ms = responded_ms - began_s * 1000 - heard_ms

    def _charge(self) -> None:
        """Attributes the main thread's time to the requests for the URL that it was spent on."""
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
        by_url = {request.url.partition("#")[0]: request for _, request in reversed(self._asked)}
        for url, request in by_url.items():
            if spent.get(url, 0.0) > 0:
                request.cpu_ms = round(spent[url] * 1000, 1)


def _ts(event: Node) -> float:
    return number(event, "ts") or 0.0
