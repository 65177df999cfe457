"""Builds requests and responses as they crossed the wire from the net log.

Bodies are in their content coding. The browser never reads the body of a redirect; its length is known if the
header has it. Each exchange is paired with the request of the page that it belongs to. Lost responses are
listed.

Chromium's net log (`--log-net-log`, capture mode `Everything`) is a JSON document with an event per line
(net/log/file_net_log_observer.cc). It is read line by line, since it contains all transferred bytes several
times. An incomplete log, from a browser that was killed, is read as far as it goes. `pages/readers/netlog.py`
reads net logs of other browsers, as a whole and for their times.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from firstflight.engines.clients.job import BLOCKED, Fetch
from firstflight.pages.fields import unescaped

Fields = list[tuple[str, str]]

_SENT = ("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS")
_NO_BODY = (204, 205, 304)
_LASTING = ("ERR_NAME_", "ERR_ABORTED", "ERR_BLOCKED_BY_", "ERR_CERT_", "ERR_UNSAFE_PORT", "ERR_INVALID_")
"""Prefixes of errors that another visit would meet again."""


@dataclass(frozen=True, slots=True)
class Head:
    """First line and fields of a message, one character per byte."""

    first_line: str
    fields: Fields

    def value(self, name: str) -> str:
        """The first field `name` (lower case), or empty."""
        return next((value for key, value in self.fields if key.lower() == name), "")


@dataclass(slots=True)
class WireExchange:
    """One request that was sent, and its response.

    Attributes:
        url: Absolute URL without fragment.
        method: Request method.
        from_page: Whether a page made it, and not the browser itself.
        sent_ms: When it was sent, monotonic clock.
        request: Header of the request; for HTTP/2 in the form of HTTP/1.1.
        answer: Header of the response; `None`: there was none.
        body: File with the response's body in its content coding, with chunks if the header says so.
        body_bytes: Its length without chunks.
        ended_ms: When its last byte was read.
        error: Chromium's number of the error that ended it early; 0: none.
    """

    url: str
    method: str
    from_page: bool
    sent_ms: float
    request: Head
    body: Path
    answer: Head | None = None
    body_bytes: int = 0
    ended_ms: float = 0.0
    error: int = 0

    @property
    def status(self) -> int:
        """HTTP status; 0 without a response."""
        words = self.answer.first_line.split() if self.answer else []
        return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0

    @property
    def location(self) -> str:
        """The field `Location` of a redirect, or empty."""
        redirects = self.answer is not None and 300 <= self.status <= 399
        return self.answer.value("location") if redirects and self.answer else ""

    @property
    def stated_bytes(self) -> int | None:
        """The body's length according to the header; `None` if the header lacks it."""
        stated = self.answer.value("content-length") if self.answer else ""
        return int(stated) if stated.isascii() and stated.isdecimal() and len(stated) < 15 else None

    @property
    def has_body(self) -> bool:
        """Whether the response has a body that the browser reads."""
        return not (self.method == "HEAD" or self.status in _NO_BODY or self.location)

    @property
    def chunked(self) -> bool:
        """Whether the body is stored with chunks. The chunk sizes on the wire are not known."""
        return bool(self.answer and "chunked" in self.answer.value("transfer-encoding").lower())

    @property
    def whole(self) -> bool:
        """Whether the whole response was received."""
        if self.answer is None:
            return False
        if not self.has_body:
            return True
        return not self.error if self.stated_bytes is None else self.body_bytes == self.stated_bytes


def exchanges_of(log: NetLog, folder: Path) -> list[WireExchange]:
    """Every request in `log` that was sent to a server, in the order in which they were sent.

    Args:
        log: The net log.
        folder: Folder for the bodies, a file each.
    """
    requests: dict[int, _Request] = {}
    found: list[WireExchange] = []
    for event in log.events():
        request = requests.setdefault(event.request, _Request())
        if event.type in _SENT and request.url.startswith("http"):
            found.append(request.send(event, folder / f"{len(found)}"))
        else:
            request.note(event)
    for request in requests.values():
        request.close()
    return found


@dataclass(slots=True)
class _Request:
    """A request of the browser. It has several exchanges after redirects or requests to authenticate."""

    url: str = ""
    method: str = "GET"
    from_page: bool = False
    coded: bool = False
    now: WireExchange | None = field(default=None)

    def send(self, event: Event, body: Path) -> WireExchange:
        self.close()
        request = _asked([unescaped(line) for line in event.params["headers"]], event.params.get("line", ""))
        self.now = WireExchange(self.url, self.method, self.from_page, event.ms, request, body)
        body.touch()
        return self.now

    def note(self, event: Event) -> None:
        match event.type:
            case "URL_REQUEST_START_JOB" if event.begins:
                self._begin(event)
            case "URL_REQUEST_FILTERS_SET":
                self.coded = True
        if self.now:
            self._answer(self.now, event)

    def close(self) -> None:
        """Ends the body that was being read."""
        if self.now and self.now.chunked and self.now.has_body:
            with self.now.body.open("ab") as file:
                file.write(b"0\r\n\r\n")
        self.now = None

    def _begin(self, event: Event) -> None:
        self.close()
        self.url, self.method = event.params["url"].partition("#")[0], event.params["method"]
        self.from_page = event.params.get("initiator", "").startswith("http")
        self.coded = False

    def _answer(self, now: WireExchange, event: Event) -> None:
        match event.type:
            case "HTTP_TRANSACTION_READ_RESPONSE_HEADERS":
                first, *lines = [unescaped(line) for line in event.params["headers"]]
                now.answer, now.ended_ms = Head(first, _fields(lines)), event.ms
            case "URL_REQUEST_JOB_BYTES_READ":
                self._read(now, event)
            case "URL_REQUEST_JOB_FILTERED_BYTES_READ" if not self.coded:
                self._read(now, event)
            case "CANCELLED" | "FAILED" | "REQUEST_ALIVE":
                now.error = now.error or int(event.params.get("net_error", 0))

    def _read(self, now: WireExchange, event: Event) -> None:
        data = base64.b64decode(event.params.get("bytes", ""))
        if not data or not now.has_body:
            return
        now.body_bytes, now.ended_ms = now.body_bytes + len(data), event.ms
        with now.body.open("ab") as file:
            file.write(b"%x\r\n%b\r\n" % (len(data), data) if now.chunked else data)


def _asked(lines: list[str], first: str) -> Head:
    """Converts the pseudo-fields of HTTP/2 to the first line and `Host` of HTTP/1.1."""
    if first:
        return Head(first.strip(), _fields(lines))
    fields = _fields([line.removeprefix(":") for line in lines if line.startswith(":")])
    pseudo = dict(fields)
    host = [("Host", pseudo.get("authority", ""))]
    plain_fields = _fields([line for line in lines if not line.startswith(":")])
    return Head(f"{pseudo.get('method', 'GET')} {pseudo.get('path', '/')} HTTP/1.1", host + plain_fields)


def _fields(lines: list[str]) -> Fields:
    parts = (line.partition(":") for line in lines)
    return [(name, value.strip()) for name, _, value in parts]


@dataclass(frozen=True, slots=True)
class Pair:
    """An exchange and DevTools' view of it. Requests of service workers are left out."""

    exchange: WireExchange
    fetch: Fetch | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A request without a complete response."""

    url: str
    method: str
    reason: str

    @property
    def lasting(self) -> bool:
        """Whether another visit would lose it again."""
        return any(word in self.reason for word in _LASTING)


def pair(exchanges: Iterable[WireExchange], fetches: Iterable[Fetch]) -> tuple[list[Pair], list[Lost]]:
    """The exchanges that the page made, in the order in which they were sent, and the lost requests.

    If the same request was made twice, the order decides. Requests of the browser itself are left out.
    """
    waiting = _by_request(fetches)
    pairs: list[Pair] = []
    for exchange in sorted(exchanges, key=lambda exchange: exchange.sent_ms):
        asked = waiting[exchange.method, exchange.url]
        if asked or exchange.from_page:
            pairs.append(Pair(exchange, asked.popleft() if asked else None))
    unsent = [_unsent(fetch) for fetches in waiting.values() for fetch in fetches if fetch.status is None]
    return [pair for pair in pairs if pair.exchange.answer], [*filter(None, map(_cut, pairs)), *unsent]


def _by_request(fetches: Iterable[Fetch]) -> defaultdict[tuple[str, str], deque[Fetch]]:
    waiting: defaultdict[tuple[str, str], deque[Fetch]] = defaultdict(deque)
    network = (fetch for fetch in fetches if not fetch.cached and fetch.error != BLOCKED)
    for fetch in sorted(network, key=lambda fetch: fetch.sent_ms or fetch.queued_ms):
        waiting[fetch.method, fetch.url.partition("#")[0]].append(fetch)
    return waiting


def _unsent(fetch: Fetch) -> Lost:
    return Lost(fetch.url, fetch.method, fetch.error or "never answered")


def _cut(pair: Pair) -> Lost | None:
    exchange = pair.exchange
    if exchange.whole:
        return None
    reason = pair.fetch.error if pair.fetch and pair.fetch.error else f"net error {exchange.error}"
    if exchange.answer is None:
        return Lost(exchange.url, exchange.method, f"{reason}: no answer")
    stated = f" of {exchange.stated_bytes}" if exchange.stated_bytes is not None else ""
    return Lost(exchange.url, exchange.method, f"{reason}: {exchange.body_bytes}{stated} bytes came")


class Params(TypedDict, total=False):
    """The parameters of events that this module reads; each type has some of them."""

    url: str
    method: str
    initiator: str
    line: str
    headers: list[str]
    bytes: str
    net_error: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a request.

    Attributes:
        type: Its name, e.g. `URL_REQUEST_START_JOB`.
        request: Number of the request.
        ms: Its time, monotonic clock.
        begins: Whether a later event of this type ends it.
        params: Its parameters.
    """

    type: str
    request: int
    ms: float
    begins: bool
    params: Params


@dataclass(frozen=True, slots=True)
class NetLog:
    """A log on disk.

    Attributes:
        epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
    """

    epoch_ms: float
    _file: Path
    _types: dict[int, str]
    _request: int
    _begin: int

    def events(self) -> Iterator[Event]:
        """All events of requests, in order."""
        with self._file.open("rb") as lines:
            for line in lines:
                if not line.startswith(b"{") or (found := _parsed(line)) is None:
                    continue
                if found.get("source", {}).get("type") == self._request:
                    yield self._event(found)

    def _event(self, found: Any) -> Event:  # noqa: ANN401
        return Event(
            self._types[found["type"]],
            found["source"]["id"],
            float(found["time"]),
            found["phase"] == self._begin,
            found.get("params") or Params(),
        )


def open_netlog(file: Path) -> NetLog | None:
    """Reads the log's constants; `None` if there is no log, as for a browser that did not start."""
    if not file.is_file():
        return None
    with file.open("rb") as lines:
        found = _parsed(lines.readline().rstrip(b", \n") + b"}")
    if found is None:
        return None
    constants = found["constants"]
    return NetLog(
        float(constants["timeTickOffset"]),
        file,
        {number: name for name, number in constants["logEventTypes"].items()},
        constants["logSourceType"]["URL_REQUEST"],
        constants["logEventPhase"]["PHASE_BEGIN"],
    )


def _parsed(line: bytes) -> Any:  # noqa: ANN401
    """The JSON object in a line; `None` if there is none."""
    try:
        found = json.loads(line.rstrip(b",] \n"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
