"""Writes a HAR 1.2 of a recorded page, without bodies: initiators and times. The WARC has the rest.

`_warcRecordId` is the id of the response's record in the WARC. `_initiator` and `_resourceType` are
DevTools'.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlsplit

from firstflight.engines.clients.job import Drive
from firstflight.pages.record.wire import Fields, Head, Pair, WireExchange

_PHASES = ("blocked", "dns", "connect", "send", "wait", "receive")


def har_of(
    pairs: Iterable[tuple[Pair, str]], drive: Drive, *, url: str, epoch_ms: float, creator: dict[str, str]
) -> dict[str, object]:
    """The HAR of one page.

    Args:
        pairs: Its exchanges, each with the id of its response's WARC record.
        drive: What the browser reported of the load.
        url: The first URL of the page.
        epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
        creator: Name and version of this program.
    """
    began_ms = (drive.started_ns or 0) / 1e6
    page = {
        "id": "page",
        "title": url,
        "startedDateTime": iso_time(epoch_ms + began_ms),
        "pageTimings": {
            "onContentLoad": drive.marks.get("dom_content_loaded_ms") or -1,
            "onLoad": drive.plt_ms or -1,
        },
    }
    entries = [_entry(pair, record, began_ms, epoch_ms) for pair, record in pairs]
    browser = {"name": "Chromium", "version": drive.browser}
    log = {"version": "1.2", "creator": creator, "browser": browser, "pages": [page], "entries": entries}
    return {"log": log}


def iso_time(epoch_ms: float) -> str:
    """A time in RFC 3339, with milliseconds."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _entry(pair: Pair, record: str, began_ms: float, epoch_ms: float) -> dict[str, object]:
    exchange, fetch = pair.exchange, pair.fetch
    start_ms = began_ms + fetch.queued_ms if fetch else exchange.sent_ms
    timings = _timings(pair, began_ms)
    protocol = (fetch.protocol if fetch else None) or "http/1.1"
    return {
        "pageref": "page",
        "startedDateTime": iso_time(epoch_ms + start_ms),
        "time": round(sum(timings[phase] for phase in _PHASES if timings[phase] > 0), 3),
        "request": _request(exchange, protocol),
        "response": _response(exchange, protocol),
        "cache": {},
        "timings": timings,
        "connection": str(fetch.socket or "") if fetch else "",
        "_resourceType": fetch.kind.lower() if fetch else "other",
        "_initiator": _initiator(pair),
        "_warcRecordId": record,
    }


def _timings(pair: Pair, began_ms: float) -> dict[str, float]:
    """Durations of the phases, ms, -1: did not happen. They add up to the time from queue to end."""
    exchange, fetch = pair.exchange, pair.fetch
    if fetch is None or fetch.sent_ms is None or fetch.first_byte_ms is None:
        wait = max(exchange.ended_ms - exchange.sent_ms, 0.0)
        return {**dict.fromkeys((*_PHASES, "ssl"), -1.0), "send": 0.0, "wait": wait, "receive": 0.0}
    end_ms = max(fetch.end_ms or exchange.ended_ms - began_ms, fetch.first_byte_ms)
    connect_start, connect_end = fetch.connect_start_ms, fetch.connect_end_ms
    opened = connect_start is not None and connect_end is not None
    ready = connect_end if opened and connect_end is not None else fetch.sent_ms
    before = connect_start if opened and connect_start is not None else ready
    secured = opened and fetch.tls_start_ms is not None
    found = {
        "blocked": max(before - fetch.queued_ms, 0.0),
        "dns": -1.0,
        "connect": ready - before if opened else -1.0,
        "ssl": ready - fetch.tls_start_ms if secured and fetch.tls_start_ms is not None else -1.0,
        "send": max(fetch.sent_ms - ready, 0.0),
        "wait": max(fetch.first_byte_ms - fetch.sent_ms, 0.0),
        "receive": end_ms - fetch.first_byte_ms,
    }
    return {phase: round(length, 3) for phase, length in found.items()}


def _request(exchange: WireExchange, protocol: str) -> dict[str, object]:
    query = parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True)
    return {
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": protocol,
        "cookies": [],
        "headers": _listed(exchange.request.fields),
        "queryString": [{"name": name, "value": value} for name, value in query],
        "headersSize": _size(exchange.request),
        "bodySize": int(exchange.request.value("content-length") or 0),
    }


def _response(exchange: WireExchange, protocol: str) -> dict[str, object]:
    answer = exchange.answer or Head("", [])
    size = exchange.body_bytes if exchange.has_body else exchange.stated_bytes or 0
    return {
        "status": exchange.status,
        "statusText": answer.first_line.partition(" ")[2].partition(" ")[2],
        "httpVersion": protocol,
        "cookies": [],
        "headers": _listed(answer.fields),
        "content": {"size": size, "mimeType": answer.value("content-type")},
        "redirectURL": exchange.location,
        "headersSize": _size(answer),
        "bodySize": 0 if exchange.status == 304 or exchange.method == "HEAD" else size,
    }


def _initiator(pair: Pair) -> dict[str, object]:
    """DevTools' initiator; where DevTools saw none, as for a worker's requests, the `Referer`."""
    fetch, referer = pair.fetch, pair.exchange.request.value("referer")
    if fetch is None:
        return {"type": "other", **({"url": referer} if referer else {})}
    if fetch.asked_how != "script":
        return {"type": fetch.asked_how or "other", **({"url": fetch.initiator} if fetch.initiator else {})}
    frames = [{"url": url, "functionName": "", "lineNumber": 0, "columnNumber": 0} for url in fetch.asked_by]
    return {"type": "script", "stack": {"callFrames": frames}}


def _listed(fields: Fields) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in fields]


def _size(head: Head) -> int:
    """Bytes in the form of HTTP/1.1; each character is one byte."""
    return len(head.first_line) + 4 + sum(len(name) + len(value) + 4 for name, value in head.fields)
