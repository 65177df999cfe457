"""Mahimahi recordings: a directory with a file `save.*` per exchange, a protobuf `RequestResponse`.

Its messages (mahimahi, src/protobufs/http_record.proto and http_message.proto): RequestResponse {1 ip, 2
port, 3 scheme (1 http, 2 https), 4 request, 5 response}; HTTPMessage {1 first line, 2 header, 3 body};
HTTPHeader {1 key, 2 value}. There are no times and no order.

This module reads the Protocol Buffers wire format itself: the messages have nine fields. A handwritten
descriptor for the `protobuf` package would be as long as the forty lines that read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import LoadedPage
from firstflight.pages.bodies import MOST_BODY_BYTES, BodyStore
from firstflight.pages.exchange import Exchange
from firstflight.pages.fields import value_of
from firstflight.pages.readers.untimed import Asked, Recorded, recorded_exchange, start_of, untimed_page
from firstflight.pages.urls import absolute_url, normal_url, usable_url

_MOST_FILES = 50_000
# https://protobuf.dev/programming-guides/encoding/
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


@dataclass(slots=True)
class _Message:
    first_line: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


@dataclass(slots=True)
class _Saved:
    port: int = 0
    secure: bool = False
    request: _Message = field(default_factory=_Message)
    response: _Message = field(default_factory=_Message)


def open_mahimahi(folder: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from a recording; without `url`, the page with the most requests.

    Raises:
        PageInputError: A file is not an exchange, or there is no such page.
    """
    store, notes = BodyStore(str(folder)), Counter[str]()
    exchanges = [exchange for path in _files(folder) if (exchange := _exchange(path, store, notes))]
    start = start_of(exchanges, str(folder), wanted=url, recorded=False)
    return untimed_page(exchanges, start, f"Mahimahi recording {folder.name}", notes)


def _files(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.glob("save.*") if path.is_file())
    if len(paths) > _MOST_FILES:
        problem = f"{folder}: {len(paths)} exchanges are too many for one page"
        raise PageInputError(problem, "record one page")
    return paths


def _exchange(path: Path, store: BodyStore, notes: Counter[str]) -> Exchange | None:
    saved = _read(path)
    store.budget.member()
    store.budget.spend(len(saved.response.body))
    method, _, rest = saved.request.first_line.partition(" ")
    target = rest.rpartition(" ")[0]
    url = _url(saved, target)
    status = saved.response.first_line.split(" ")[1:2]
    if not method.isalpha() or not method.isascii() or not usable_url(url):
        notes["requests whose URL or method no browser sends"] += 1
        return None
    if not status or not status[0].isdecimal() or not 200 <= int(status[0][:9]) <= 599:
        notes["requests without a final answer"] += 1
        return None
    asked = Asked(method.upper(), saved.request.first_line, saved.request.fields, len(saved.request.body))
    answer = saved.response
    recorded = Recorded(url, int(status[0]), answer.first_line, answer.fields, [answer.body])
    return recorded_exchange(recorded, asked, store)


def _url(saved: _Saved, target: str) -> str:
    host = value_of(saved.request.fields, "host")
    base = f"{'https' if saved.secure else 'http'}://{host}"
    return absolute_url(target, base) if target.startswith("http") else normal_url(f"{base}{target}")


def _read(path: Path) -> _Saved:
    hint = "record the page again, or remove this file"
    try:
        if path.stat().st_size > MOST_BODY_BYTES:
            raise PageInputError(f"{path}: more than {MOST_BODY_BYTES >> 20} MiB", hint)
        return _parsed(path.read_bytes())
    except OSError as error:
        raise PageInputError(f"{path}: {error.strerror or error}", "check its permissions") from None
    except WireError as error:
        raise PageInputError(f"{path}: not a Mahimahi exchange: {error}", hint) from None


def _parsed(data: bytes) -> _Saved:
    found = _Saved()
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


class WireError(ValueError):
    """The data is not a Protocol Buffers message, or is incomplete."""


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message: bytes for strings and messages, else a number.

    Raises:
        WireError: The data does not match the format.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind == _BYTES:
            length, at = _varint(data, at)
            value, at = _piece(data, at, length)
        elif kind in (_FIXED32, _FIXED64):
            piece, at = _piece(data, at, 4 if kind == _FIXED32 else 8)
            value = int.from_bytes(piece, "little")
        else:
            raise WireError(f"byte {at}: no field begins there")
        yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise WireError(f"byte {at}: a number does not end")


def _piece(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise WireError(f"byte {at}: {length} bytes announced, {len(data) - at} left")
    return data[at : at + length], at + length
