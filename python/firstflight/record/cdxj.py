"""The index of a WARC by URL, as players look answers up: a line of CDXJ each (pywb's format), sorted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from firstflight.record.warc import Indexed

_PORTS = {"http": 80, "https": 443}


def cdxj(answers: Iterable[Indexed], warc: str) -> bytes:
    """The index of `answers`, which stand in the file `warc`."""
    return "".join(sorted(_line(answer, warc) for answer in answers)).encode()


def surt(url: str) -> str:
    """The URL as a key to sort by: host reversed, `www.` and case gone, parameters in order."""
    parts = urlsplit(url.lower())
    host = re.sub(r"^www\d*\.", "", parts.hostname or "")
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{','.join(reversed(host.split('.')))}{port}){parts.path or '/'}{'?' * bool(query)}{query}"


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
