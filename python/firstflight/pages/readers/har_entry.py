"""Entries of a HAR from Chrome, Firefox, WebPageTest, browsertime, Splash, Firebug and converters of logs.

A HAR has decoded bodies. For the wire they are encoded again, as their header says.

Tools disagree on the meaning of the standard's size fields. Sizes on the wire are derived as follows.

Request: `headersSize` (or WebPageTest's `_bytesOut`), else its fields in the form of HTTP/1.1, else a typical
size; plus the body.

Response header: `headersSize`, else its fields in the form of HTTP/1.1, else a typical size. HTTP/2 and
HTTP/3 compress headers: their size here is that in HTTP/1.1.

Response body, the first value that is known:

1. `Content-Length`, unless less was transferred (then it belongs to another response).
2. `bodySize`; minus the header if it equals `_transferSize` (Chrome) or exceeds `content.size` by a header
   (Firefox), since it then counts both.
3. `_transferSize` minus the header.
4. WebPageTest's `_objectSize`, or `_bytesIn` minus the header.
5. `content.size` minus `content.compression`; without a compression, the decoded size.

The JSON is read in bounded memory and is not trusted: a value of another type than expected counts as absent.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import math
import re
import zlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import Headers
from firstflight.pages.bodies import BodyStore, CodingError, codings_of, encoded
from firstflight.pages.exchange import (
    Carried,
    Exchange,
    HttpVersion,
    Priority,
    Stated,
    Timing,
    browser_kind,
    needs_text,
)
from firstflight.pages.fields import (
    TYPICAL_HEADER,
    mime_of,
    repeatable,
    request_sizes,
    size_of,
    status_line,
    value_of,
    without,
)
from firstflight.pages.hosts import HUNG_MS
from firstflight.pages.urls import location_of, normal_url, usable_url

_MULTIPLEXED = ("h2", "h3", "http/2", "http/3", "quic")
_UNANSWERED = "requests without an answer (blocked, cancelled or failed)"
_GAVE_UP = 504
_MOST_FRAMES = 200
_MOST_PARENTS = 20
# No server accepts or sends longer headers, so the field means something else.
_MOST_HEADER = 1 << 20
# By how much a text may differ from its recorded size and still be that body: tools count bytes before or
# after decoding the character set.
_LIKE = 0.05
_SLACK_BYTES = 16
# Of the encodings that Python knows, those of https://encoding.spec.whatwg.org/#names-and-labels
_OF_THE_WEB = re.compile(r"utf-|iso-8859|windows-125|euc-|gb|big5|shift_jis|koi8", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that is not a request over the network or has no response, and the reason.

    Attributes:
        reason: The reason, for people.
        hung: If the browser waited long before it gave up: the request as if a gateway had answered a
            time-out.
    """

    reason: str
    hung: Exchange | None = None


def read_entry(entry: Node, began_ms: float, store: BodyStore) -> Exchange | Dropped:
    """Reads one entry.

    Args:
        entry: Its JSON.
        began_ms: When the page began, ms since 1970.
        store: Keeps its body.

    Raises:
        PageInputError: The body cannot be kept.
    """
    request, response = node(entry, "request"), node(entry, "response")
    url = normal_url(text(request, "url"))
    if reason := _refused(url, request, response):
        return Dropped(reason, _hung(entry, url, began_ms) if reason == _UNANSWERED else None)
    status = round(number(response, "status") or 0)
    fields, asked = pairs(response, "headers"), pairs(request, "headers")
    mime = mime_of(text(node(response, "content"), "mimeType")) or mime_of(value_of(fields, "content-type"))
    header = _header_bytes(entry, status)
    words = [text(entry, "_resourceType"), text(entry, "_request_type")]
    read = Exchange(
        url=url,
        method=(text(request, "method") or "GET").upper(),
        status=status,
        mime="" if mime == "x-unknown" else mime,
        request_bytes=_request_bytes(entry, url),
        header_bytes=header,
        body_bytes=min(_body_bytes(entry, header), 1 << 32),
        headers=repeatable(fields),
        redirect=location_of(url, status, text(response, "redirectURL") or value_of(fields, "location")),
        referer=normal_url(value_of(asked, "referer")),
        kind=browser_kind(words, asked, mime),
        timing=_timing(entry, began_ms),
        stated=_stated(entry),
        cached=_is_cached(entry),
        carried=_carried(entry),
        priority=_priority(entry),
        render_blocking=_render_blocking(entry),
    )
    return _with_body(read, entry, store)


def _with_body(read: Exchange, entry: Node, store: BodyStore) -> Exchange:
    if not read.has_content or read.status == 304 or read.method == "HEAD":
        return replace(read, body_bytes=0 if not read.redirect else read.body_bytes)
    body = _served_body(read, entry)
    if body is None:
        return read
    file = store.add([body.served], read.url[:80])
    scanned = needs_text(read.mime, read.url)
    text_file = store.add([body.decoded], read.url[:80]) if scanned and body.decoded != body.served else file
    return replace(
        read,
        body=file,
        body_bytes=len(body.served),
        text=text_file if scanned else None,
        headers=body.headers,
    )


def _refused(url: str, request: Node, response: Node) -> str:
    scheme = url.partition(":")[0].lower()
    method, status = text(request, "method") or "GET", number(response, "status") or 0
    if scheme not in ("http", "https"):
        known = ("data", "blob", "about", "chrome-extension", "moz-extension", "ws", "wss", "file")
        return f"{scheme if scheme in known else 'other'}: URLs, not asked for over HTTP"
    if not usable_url(url) or not method.isascii() or not method.isalpha():
        return "requests whose URL or method no browser sends"
    if status == 101:
        return "WebSockets"
    if status < 200:
        return _UNANSWERED
    return "" if status <= 599 else "answers with a status that HTTP does not have"


def _hung(entry: Node, url: str, began_ms: float) -> Exchange | None:
    """The request of an entry without a response; `None` if it failed quickly, as blocked requests do."""
    timing, asked = _timing(entry, began_ms), pairs(node(entry, "request"), "headers")
    if timing is None or timing.end_ms - timing.start_ms < HUNG_MS:
        return None
    length = timing.end_ms - timing.start_ms
    return Exchange(
        url=url,
        method=(text(node(entry, "request"), "method") or "GET").upper(),
        status=_GAVE_UP,
        request_bytes=_request_bytes(entry, url),
        header_bytes=TYPICAL_HEADER,
        referer=normal_url(value_of(asked, "referer")),
        kind=browser_kind([text(entry, "_resourceType"), text(entry, "_request_type")], asked, ""),
        timing=Timing(timing.start_ms, timing.end_ms, timing.end_ms, wait_ms=length),
        stated=_stated(entry),
    )


def _timing(entry: Node, began_ms: float) -> Timing | None:
    started = moment_ms(entry, "startedDateTime")
    if started is None:
        return None
    timings = node(entry, "timings")
    phases = ("blocked", "dns", "connect", "send", "wait", "receive")
    total = positive(entry, "time") or sum(positive(timings, phase) or 0.0 for phase in phases)
    start = started - began_ms + (number(entry, "_asked_ms") or 0.0)
    end = start + min(total, 3.6e6)
    return Timing(
        start_ms=start,
        first_byte_ms=max(end - (positive(timings, "receive") or 0.0), start),
        end_ms=end,
        wait_ms=positive(timings, "wait"),
        handshake_ms=_handshake_ms(timings),
        lookup_ms=positive(timings, "dns"),
        held_ms=_held_ms(entry, timings),
        cpu_ms=positive(entry, "_cpuTime"),
        tls_ms=positive(timings, "ssl"),
    )


def _handshake_ms(timings: Node) -> float | None:
    """The TCP part of `connect`. In the standard `connect` includes TLS; in Firefox it does not."""
    connect, tls = positive(timings, "connect"), positive(timings, "ssl") or 0.0
    return connect if connect is None or tls >= connect else connect - tls


def _held_ms(entry: Node, timings: Node) -> float:
    version = text(node(entry, "response"), "httpVersion") or text(node(entry, "request"), "httpVersion")
    shared = version.lower().startswith(_MULTIPLEXED) and positive(timings, "connect") is None
    needs_no_turn = shared or positive(timings, "dns") is not None
    return positive(timings, "blocked") or 0.0 if needs_no_turn else 0.0


def _is_cached(entry: Node) -> bool:
    response = node(entry, "response")
    flags = [text(entry, "_fromCache"), number(entry, "_fromCache") or 0]
    flags += [
        response.get(key) is True for key in ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    ]
    flags.append(response.get("_fetchedViaServiceWorker") is True)
    return any(flag not in ("", "0", 0, False) for flag in flags)


def _stated(entry: Node) -> Stated:
    """From `_initiator` as an object (Chrome), `_initiator_detail` (chrome-har), or `_initiator` as a URL."""
    detail = node(entry, "_initiator") or _detail(text(entry, "_initiator_detail"))
    word = text(detail, "type") or text(entry, "_initiator_type")
    urls = [*_stack(node(detail, "stack")), text(detail, "url"), text(entry, "_initiator")]
    plain = (normal_url(url) for url in urls if url.startswith("http"))
    return Stated(word.lower(), tuple(dict.fromkeys(plain)))


_VERSIONS: tuple[tuple[re.Pattern[str], HttpVersion], ...] = (
    (re.compile(r"h3|.*quic|http/3"), "3"),
    (re.compile(r"h2|http/2"), "2"),
    (re.compile(r"(http/)?1\.0"), "1.0"),
    (re.compile(r"(http/)?1\.1"), "1.1"),
)
_MOST_NAMES = 1_000


def _carried(entry: Node) -> Carried:
    """The connection of an entry, from the fields of the standard, of Chrome and of WebPageTest."""
    secure = node(entry, "_securityDetails")
    tls = text(secure, "protocol") or text(entry, "_tls_version")
    names = secure.get("sanList")
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return Carried(
        http=http_version(entry),
        connection=_connection(entry),
        tls="1.3" if tls == "QUIC" else tls.removeprefix("TLS ").removeprefix("v"),
        certified=tuple(listed[:_MOST_NAMES]),
        certificate_bytes=round(min(positive(entry, "_certificate_bytes") or 0.0, _MOST_HEADER)),
        address=(text(entry, "serverIPAddress") or text(entry, "_ip_addr")).strip("[]"),
    )


def http_version(entry: Node) -> HttpVersion:
    """The version of HTTP of an entry; empty if it has none."""
    written = (text(node(entry, key), "httpVersion") for key in ("response", "request"))
    for word in (*written, text(entry, "_protocol")):
        for pattern, version in _VERSIONS:
            if pattern.match(word.lower()):
                return version
    return ""


def _connection(entry: Node) -> str:
    """The connection's name. Firefox, and Chrome once, wrote the server's port in its place."""
    for key in ("_connectionId", "_socket", "connection"):
        value = text(entry, key) or f"{round(number(entry, key) or 0)}"
        if value not in ("", "0") and not (key == "connection" and value in ("80", "443")):
            return value[:80]
    return ""


# Names of Chromium's network stack (net/base/request_priority.h) and of WebPageTest, and those that DevTools'
# protocol has for them (third_party/blink/renderer/core/inspector/inspector_network_agent.cc).
_PRIORITIES: dict[str, Priority] = {
    "HIGHEST": "VeryHigh",
    "MEDIUM": "High",
    "LOW": "Medium",
    "LOWEST": "Low",
    "IDLE": "VeryLow",
    "Highest": "VeryHigh",
    "Lowest": "VeryLow",
    "VeryHigh": "VeryHigh",
    "High": "High",
    "Medium": "Medium",
    "Low": "Low",
    "VeryLow": "VeryLow",
}


def _priority(entry: Node) -> Priority:
    words = (text(entry, "_initial_priority"), text(entry, "_initialPriority"), text(entry, "_priority"))
    return _PRIORITIES.get(next((word for word in words if word), ""), "")


def _render_blocking(entry: Node) -> bool | None:
    """Chromium's value. A script in the body that blocks the parser there does not block rendering."""
    word = (text(entry, "_renderBlocking") or text(entry, "_render_blocking")).lower()
    return word == "blocking" if word else None


def _detail(written: str) -> Node:
    try:
        found = json.loads(written) if written else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _stack(stack: Node) -> list[str]:
    """The files on a call stack, innermost first, and on those that scheduled it."""
    urls: list[str] = []
    for _ in range(_MOST_PARENTS):
        urls += [text(frame, "url") for frame in nodes(stack, "callFrames")[:_MOST_FRAMES]]
        stack = node(stack, "parent")
    return urls


def _request_bytes(entry: Node, url: str) -> int:
    """Request line, fields and body, bytes."""
    request = node(entry, "request")
    body = positive(request, "bodySize") or positive(node(request, "postData"), "size") or 0.0
    body = body or _stated_length(pairs(request, "headers")) or 0.0
    header = _header(positive(request, "headersSize") or positive(entry, "_bytesOut"))
    if header is None:
        header = _from_fields(request, url)
    return header + int(min(body, 1 << 30))


def _header_bytes(entry: Node, status: int) -> int:
    """Status line and fields of the response, bytes."""
    response = node(entry, "response")
    header = _header(positive(response, "headersSize"))
    fields = pairs(response, "headers")
    if header is None:
        header = size_of(status_line(status), fields) if fields else TYPICAL_HEADER
    return min(header, _MOST_HEADER)


def _body_bytes(entry: Node, header: int) -> int:
    """Body of the response, bytes on the wire as encoded, by the rules of this module."""
    response = node(entry, "response")
    content = node(response, "content")
    moved = positive(response, "_transferSize")
    size = positive(response, "bodySize")
    length = _length(response)
    most = moved or size
    if length and (most is None or length <= most):
        return length
    if size is not None:
        both = size == moved or (moved is None and _exceeds_by(size, number(content, "size"), header))
        return max(round(size) - (header if both else 0), 0)
    if moved is not None:
        return max(round(moved) - header, 0)
    if (found := positive(entry, "_objectSize")) is not None:
        return round(found)
    if (found := positive(entry, "_bytesIn")) is not None:
        return max(round(found) - header, 0)
    decoded = positive(content, "size") or 0.0
    return max(round(decoded - (number(content, "compression") or 0.0)), 0)


def _length(response: Node) -> int | None:
    return _stated_length(pairs(response, "headers"))


def _stated_length(fields: list[tuple[str, str]]) -> int | None:
    value = value_of(fields, "content-length").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 15 else None


def _exceeds_by(size: float, decoded: float | None, header: int) -> bool:
    return decoded is not None and abs(size - decoded - header) <= 2


def _header(size: float | None) -> int | None:
    return round(size) if size is not None and size <= _MOST_HEADER else None


def _from_fields(request: Node, url: str) -> int:
    fields = pairs(request, "headers")
    if not fields:
        return request_sizes([url])[0]
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = [] if value_of(fields, "host") else [("Host", parts.netloc)]
    return size_of(f"{text(request, 'method') or 'GET'} {target} HTTP/1.1", [*host, *fields])


@dataclass(frozen=True, slots=True)
class _ServedBody:
    """A body, decoded and as served, and the header fields that match it."""

    decoded: bytes
    served: bytes
    headers: Headers


def _served_body(read: Exchange, entry: Node) -> _ServedBody | None:
    """The body of an entry; `None` if the HAR has none or something else in its place.

    A text of another size than the recorded one is something else, such as "removed" or a truncated body.
    """
    response = node(entry, "response")
    content = node(response, "content")
    body = _decoded(content, _charset(pairs(response, "headers"), text(content, "mimeType")))
    if body is None or not _is_of_size(len(body), entry):
        return None
    served = content.get("_served")  # the body as on the wire, from a net log
    if isinstance(served, bytes):
        return _ServedBody(body, served, read.headers)
    names = codings_of(value_of(read.headers, "content-encoding"))
    try:
        served = encoded(body, names, read.body_bytes)
    except CodingError:
        return _ServedBody(body, body, without(read.headers, "content-encoding"))
    return _ServedBody(body, served, read.headers)


def _decoded(content: Node, charset: str) -> bytes | None:
    written = text(content, "text")
    if not written:
        return None
    if text(content, "encoding").lower() == "base64":
        try:
            return base64.b64decode(written)
        except (binascii.Error, ValueError):
            return None
    try:
        return written.encode(charset)
    except (UnicodeError, LookupError):
        return written.encode(errors="replace")


def _is_of_size(size: int, entry: Node) -> bool:
    content = node(node(entry, "response"), "content")
    recorded = [positive(content, "size"), positive(entry, "_objectSizeUncompressed")]
    sizes = [expected for expected in recorded if expected is not None]
    return not sizes or any(abs(size - expected) <= expected * _LIKE + _SLACK_BYTES for expected in sizes)


def _charset(headers: list[tuple[str, str]], mime: str) -> str:
    """The character set from which a browser decoded the text; UTF-8 if the header has none."""
    found = _CHARSET.search(value_of(headers, "content-type") or mime)
    return found[1] if found and _OF_THE_WEB.match(found[1]) else "utf-8"


Node: TypeAlias = dict[str, object]
_MOST = 1e15
# JSON is read as a whole and takes several times its size in memory.
MOST_BYTES = 1 << 27


def read_har(path: Path) -> Node:
    """The `log` object of the HAR at `path`, with at least one entry.

    Raises:
        PageInputError: The file cannot be read, is too long, or is not a HAR.
    """
    document = read_json(path, "export the HAR again: it is damaged or its end is missing")
    log = node(document, "log") if isinstance(document, dict) else {}
    if not nodes(log, "entries"):
        problem = f"{path}: not a HAR: it has no log.entries with a request"
        raise PageInputError(problem, "record the page again with the network panel open, and export it")
    return log


def read_json(path: Path, hint: str) -> object:
    """The JSON in the file at `path`, gzipped or not.

    Raises:
        PageInputError: The file cannot be read, is too long, or is not JSON; `hint` then tells the user what
            to do.
    """
    return parsed(_read(path), str(path), hint)


def parsed(data: bytes, place: str, hint: str) -> object:
    """The JSON in `data`, which `place` names.

    Raises:
        PageInputError: It is not JSON in UTF-8. The message names the place; `hint` tells the user what to
            do.
    """
    try:
        found: object = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise PageInputError(
            f"{place}: byte {error.start} is not UTF-8", f"{hint}, or save it as UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise PageInputError(f"{place}: not JSON: {str(error)[:120] or 'empty'}", hint) from None
    return found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PageInputError(f"{path}: not whole gzip: {error}", "copy or export the file again") from None
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        raise PageInputError(problem, "check the path and its permissions") from None
    if len(data) > MOST_BYTES:
        problem = f"{path}: more than {MOST_BYTES >> 20} MiB"
        raise PageInputError(problem, "export it without bodies, or as WARC or WACZ")
    return data


def node(parent: Node, key: str) -> Node:
    """The object at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def nodes(parent: Node, key: str) -> list[Node]:
    """The objects in the list at `key`."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(parent: Node, key: str) -> str:
    """The string at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def number(parent: Node, key: str) -> float | None:
    """The number at `key`, even if written as a string; `None` if there is none or it is implausible."""
    value = parent.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < _MOST else None


def positive(parent: Node, key: str) -> float | None:
    """The number at `key` if it is above 0: HARs have -1, and many tools 0, for 'not known'."""
    value = number(parent, key)
    return value if value is not None and value > 0 else None


def moment_ms(parent: Node, key: str) -> float | None:
    """The ISO 8601 time at `key` in ms since 1970; a time without a zone counts as UTC."""
    try:
        moment = datetime.fromisoformat(text(parent, key).strip())
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return zoned.timestamp() * 1000
    except (ValueError, OverflowError):
        return None


def pairs(parent: Node, key: str) -> list[tuple[str, str]]:
    """The `name` and `value` of each object in the list at `key`."""
    return [(text(item, "name"), text(item, "value")) for item in nodes(parent, key)]
