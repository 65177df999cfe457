"""The index of a WARC by URL, as players look answers up: a line of CDXJ each (pywb's format), sorted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes, urlsplit

from firstflight.record.warc import Indexed

_PORTS = {"http": 80, "https": 443}
_SESSIONS = [
    re.compile(rf"^{parameter}(?:&(.*))?$", re.IGNORECASE)
    for parameter in (
        "(.*?)jsessionid=[0-9a-z]{32}",
        "(.*?)phpsessid=[0-9a-z]{32}",
        "(.*?)sid=[0-9a-z]{32}",
        "(.*?)aspsessionid[a-z]{8}=[a-z]{24}",
        "(.*)cfid=[^&]+&cftoken=[^&]+",
    )
]
_SESSION_IN_PATH = re.compile(
    r"/\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)/(?=[^?]+\.aspx)", re.IGNORECASE
)


def cdxj(answers: Iterable[Indexed], warc: str) -> bytes:
    """The index of `answers`, which stand in the file `warc`."""
    return "".join(sorted(_line(answer, warc) for answer in answers)).encode()


def surt(url: str) -> str:
    """The URL as a key to sort by, as pywb makes it: in Sort-friendly URI Reordering Transform.

    Host reversed, without `www.`; escapes undone where they can be; no slash at the end; parameters in order,
    without the identifiers of sessions; all in lower case. pywb takes the package `surt`, whose rules are
    those of the Wayback Machine and of Google's Safe Browsing API.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", re.sub(r"\.{2,}", ".", parts.hostname or "").strip("."))
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    path, query = _path(_unescaped(parts.path)), _query(_unescaped(parts.query))
    return f"{','.join(reversed(host.split('.')))}{port}){path}{'?' * bool(query)}{query}".lower()


def _unescaped(text: str) -> str:
    """`text` with only those escapes that it needs."""
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return "".join(chr(c) if 0x20 < c < 0x7F and c not in b"#%" else f"%{c:02x}" for c in data)


def _path(path: str) -> str:
    """`path` without empty and dotted segments, slash at its end, and session of ASP.NET."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return _SESSION_IN_PATH.sub("/", "/" + "/".join(kept))


def _query(query: str) -> str:
    for session in _SESSIONS:
        query = session.sub(lambda found: found[1] + (found[2] or ""), query)
    # By name, then by value: a name may go on with a character that comes before '='.
    return "&".join(
        "=".join(pair) for pair in sorted(part.split("=", 1) for part in query.lower().split("&"))
    )


def _line(answer: Indexed, warc: str) -> str:
    fields = {
        "url": answer.url,
        "mime": answer.mime,
        "status": answer.status,
        "digest": answer.digest,
        "length": answer.length,
        "offset": answer.offset,
        "filename": warc,
        **({} if answer.method == "GET" else {"method": answer.method}),
    }
    stamp = re.sub(r"\D", "", answer.date)[:14]
    # Players look for other methods under a key of their own (pywb's append_post_query).
    key = surt(answer.url if answer.method == "GET" else _with_method(answer.url, answer.method))
    return f"{key} {stamp} {json.dumps(fields)}\n"


def _with_method(url: str, method: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}__wb_method={method}"
