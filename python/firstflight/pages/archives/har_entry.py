"""One entry of a HAR: Chrome, Firefox, WebPageTest, browsertime, Splash, Firebug and converters of logs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from firstflight.pages.archives import har_sizes
from firstflight.pages.archives.entry import Entry, Stated, Timing, needs_text
from firstflight.pages.archives.fields import mime_of, repeatable, value_of
from firstflight.pages.archives.har_body import served_body
from firstflight.pages.archives.har_fields import Node, moment_ms, node, nodes, number, pairs, positive, text
from firstflight.pages.archives.kinds import browser_kind
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.archives.urls import location_of, normal_url, usable_url

_MULTIPLEXED = ("h2", "h3", "http/2", "http/3", "quic")
_MOST_FRAMES = 200
_MOST_PARENTS = 20


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that is no request over the network, and why."""

    reason: str


def read_entry(entry: Node, began_ms: float, store: BodyStore) -> Entry | Dropped:
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
        return Dropped(reason)
    status = round(number(response, "status") or 0)
    fields, asked = pairs(response, "headers"), pairs(request, "headers")
    mime = mime_of(text(node(response, "content"), "mimeType")) or mime_of(value_of(fields, "content-type"))
    header = har_sizes.header_bytes(entry, status)
    words = [text(entry, "_resourceType"), text(entry, "_request_type")]
    read = Entry(
        url=url,
        method=(text(request, "method") or "GET").upper(),
        status=status,
        mime="" if mime == "x-unknown" else mime,
        request_bytes=har_sizes.request_bytes(entry, url),
        header_bytes=header,
        body_bytes=min(har_sizes.body_bytes(entry, header), 1 << 32),
        headers=repeatable(fields),
        redirect=location_of(url, status, text(response, "redirectURL") or value_of(fields, "location")),
        referer=normal_url(value_of(asked, "referer")),
        kind=browser_kind(words, asked, mime),
        timing=_timing(entry, began_ms),
        stated=_stated(entry),
        cached=_is_cached(entry),
    )
    return _with_body(read, entry, store)


def _with_body(read: Entry, entry: Node, store: BodyStore) -> Entry:
    if not read.has_content or read.status == 304 or read.method == "HEAD":
        return replace(read, body_bytes=0 if not read.redirect else read.body_bytes)
    body = served_body(read, entry)
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
        return "requests without an answer (blocked, cancelled or failed)"
    return "" if status <= 599 else "answers with a status that HTTP does not have"


def _timing(entry: Node, began_ms: float) -> Timing | None:
    started = moment_ms(entry, "startedDateTime")
    if started is None:
        return None
    timings = node(entry, "timings")
    phases = ("blocked", "dns", "connect", "send", "wait", "receive")
    total = positive(entry, "time") or sum(positive(timings, phase) or 0.0 for phase in phases)
    start = started - began_ms
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
    )


def _handshake_ms(timings: Node) -> float | None:
    """The TCP part of `connect`; the standard counts TLS in, Firefox does not."""
    connect, tls = positive(timings, "connect"), positive(timings, "ssl") or 0.0
    return connect if connect is None or tls >= connect else connect - tls


def _held_ms(entry: Node, timings: Node) -> float:
    version = text(node(entry, "response"), "httpVersion") or text(node(entry, "request"), "httpVersion")
    shared = version.lower().startswith(_MULTIPLEXED) and positive(timings, "connect") is None
    return positive(timings, "blocked") or 0.0 if shared else 0.0


def _is_cached(entry: Node) -> bool:
    response = node(entry, "response")
    flags = [text(entry, "_fromCache"), number(entry, "_fromCache") or 0]
    flags += [
        response.get(key) is True for key in ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    ]
    flags.append(response.get("_fetchedViaServiceWorker") is True)
    return any(flag not in ("", "0", 0, False) for flag in flags)


def _stated(entry: Node) -> Stated:
    """`_initiator` as an object (Chrome) or `_initiator_detail` (chrome-har), else `_initiator` as a URL."""
    detail = node(entry, "_initiator") or _detail(text(entry, "_initiator_detail"))
    word = text(detail, "type") or text(entry, "_initiator_type")
    urls = [*_stack(node(detail, "stack")), text(detail, "url"), text(entry, "_initiator")]
    plain = (normal_url(url) for url in urls if url.startswith("http"))
    return Stated(word.lower(), tuple(dict.fromkeys(plain)))


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
