"""Mahimahi recordings: a directory with a file `save.*` per exchange, a protobuf `RequestResponse`.

Its messages (mahimahi, src/protobufs/http_record.proto and http_message.proto): RequestResponse {1 ip, 2
port, 3 scheme (1 http, 2 https), 4 request, 5 response}; HTTPMessage {1 first line, 2 header, 3 body};
HTTPHeader {1 key, 2 value}. There are neither times nor an order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.archives.answer import Asked, Recorded, entry_of
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.fields import value_of
from firstflight.pages.archives.protobuf import WireError, fields_of
from firstflight.pages.archives.start import start_of
from firstflight.pages.archives.still import still_page
from firstflight.pages.archives.store import MOST_BODY_BYTES, BodyStore
from firstflight.pages.archives.urls import absolute_url, normal_url, usable_url
from firstflight.pages.loaded import LoadedPage

_MOST_FILES = 50_000


@dataclass(slots=True)
class _Message:
    first_line: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


@dataclass(slots=True)
class _Exchange:
    port: int = 0
    secure: bool = False
    request: _Message = field(default_factory=_Message)
    response: _Message = field(default_factory=_Message)


def open_mahimahi(folder: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from a recording; without `url`, the one whose requests are most.

    Raises:
        PageInputError: A file is no exchange, or there is no such page.
    """
    store, notes = BodyStore(str(folder)), Counter[str]()
    entries = [entry for path in _files(folder) if (entry := _entry(path, store, notes))]
    start = start_of(entries, str(folder), wanted=url, recorded=False)
    return still_page(entries, start, f"Mahimahi recording {folder.name}", notes)


def _files(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.glob("save.*") if path.is_file())
    if len(paths) > _MOST_FILES:
        problem = f"{folder}: {len(paths)} exchanges are too many for one page"
        raise PageInputError(problem, "record one page")
    return paths


def _entry(path: Path, store: BodyStore, notes: Counter[str]) -> Entry | None:
    exchange = _read(path)
    store.budget.member()
    store.budget.spend(len(exchange.response.body))
    method, _, rest = exchange.request.first_line.partition(" ")
    target = rest.rpartition(" ")[0]
    url = _url(exchange, target)
    status = exchange.response.first_line.split(" ")[1:2]
    if not method.isalpha() or not method.isascii() or not usable_url(url):
        notes["requests whose URL or method no browser sends"] += 1
        return None
    if not status or not status[0].isdecimal() or not 200 <= int(status[0][:9]) <= 599:
        notes["requests without a final answer"] += 1
        return None
    asked = Asked(
        method.upper(), exchange.request.first_line, exchange.request.fields, len(exchange.request.body)
    )
    answer = exchange.response
    recorded = Recorded(url, int(status[0]), answer.first_line, answer.fields, [answer.body])
    return entry_of(recorded, asked, store)


def _url(exchange: _Exchange, target: str) -> str:
    host = value_of(exchange.request.fields, "host")
    base = f"{'https' if exchange.secure else 'http'}://{host}"
    return absolute_url(target, base) if target.startswith("http") else normal_url(f"{base}{target}")


def _read(path: Path) -> _Exchange:
    hint = "record the page again, or remove this file"
    try:
        if path.stat().st_size > MOST_BODY_BYTES:
            raise PageInputError(f"{path}: more than {MOST_BODY_BYTES >> 20} MiB", hint)
        return _exchange(path.read_bytes())
    except OSError as error:
        raise PageInputError(f"{path}: {error.strerror or error}", "check its permissions") from None
    except WireError as error:
        raise PageInputError(f"{path}: not a Mahimahi exchange: {error}", hint) from None


def _exchange(data: bytes) -> _Exchange:
    found = _Exchange()
    for number, value in fields_of(data):
        if number == 2 and isinstance(value, int):
            found.port = value
        elif number == 3:
            found.secure = value == 2
        elif number == 4 and isinstance(value, bytes):
            found.request = _message(value)
        elif number == 5 and isinstance(value, bytes):
            found.response = _message(value)
    return found


def _message(data: bytes) -> _Message:
    found = _Message()
    for number, value in fields_of(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            found.first_line = value.decode("latin-1")
        elif number == 2:
            parts = dict(fields_of(value))
            name, text = parts.get(1, b""), parts.get(2, b"")
            if isinstance(name, bytes) and isinstance(text, bytes):
                found.fields.append((name.decode("latin-1"), text.decode("latin-1")))
        elif number == 3:
            found.body = value
    return found
