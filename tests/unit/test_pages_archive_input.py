"""However an archive is damaged, opening it gives a page or a `PageInputError` with a hint."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstflight.errors import PageInputError
from firstflight.pages import load_page

ENDINGS = [".har", ".har.gz", ".warc", ".warc.gz", ".wacz", ".json", ".pages"]
KEYS = st.sampled_from(
    [
        *("log", "entries", "pages", "id", "pageref", "request", "response", "url", "method", "headers"),
        *("name", "value", "status", "content", "text", "size", "mimeType", "encoding", "timings", "wait"),
        *("receive", "connect", "ssl", "startedDateTime", "time", "redirectURL", "bodySize", "headersSize"),
        *("_initiator", "_initiator_detail", "_initiator_type", "stack", "callFrames", "parent", "onLoad"),
        *("pageTimings", "compression", "postData", "_transferSize", "_fromCache"),
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "http://a.example/",
            "HTTP://A.example/x.js#1",
            "2024-01-01T00:00:00Z",
            "text/html",
            "text/css",
            "GET",
            "<img src=x.js>",
            "base64",
            "gzip",
            "content-encoding",
            "location",
            "content-length",
            "99999999999",
            '{"stack": {"callFrames": [{"url": "http://a.example/"}]}}',
            "\ud800",
            "http://\ud800/",
            "http://[x/",
        ]
    )
    | st.sampled_from([0, -1, 200, 204, 301, 304, 404, 1e308, 10**30, 5, 100])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=8),
    max_leaves=40,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("input")


def check(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    try:
        (loaded,) = load_page(str(path))
        assert all(
            loaded.page.resources[index].body_bytes == file.stat().st_size
            for index, file in loaded.bodies.items()
        )
        assert set(loaded.headers) <= set(range(len(loaded.page.resources)))
    except PageInputError as error:
        assert error.message
        assert error.hint


@given(data=st.binary(max_size=300), ending=st.sampled_from(ENDINGS), zipped=st.booleans())
def test_any_bytes(folder: Path, data: bytes, ending: str, zipped: bool) -> None:
    check(folder / f"any{ending}", gzip.compress(data) if zipped else data)


@given(st.binary(max_size=200))
def test_any_exchange(folder: Path, data: bytes) -> None:
    (folder / "mahimahi").mkdir(exist_ok=True)
    (folder / "mahimahi" / "save.x").write_bytes(data)
    try:
        load_page(str(folder / "mahimahi"))
    except PageInputError as error:
        assert error.hint


@given(
    st.lists(
        st.fixed_dictionaries({"request": JSON, "response": JSON}, optional={"timings": JSON}), max_size=4
    )
)
def test_any_entries(folder: Path, entries: list[Any]) -> None:
    check(folder / "entries.har", json.dumps({"log": {"entries": entries}}).encode())


@given(
    entries=st.lists(st.dictionaries(KEYS, JSON, max_size=6), min_size=1, max_size=4), page=JSON, other=JSON
)
def test_any_fields_of_whole_entries(folder: Path, entries: list[Any], page: object, other: object) -> None:
    for index, entry in enumerate(entries):
        request = {"url": f"http://a.example/{index}", "method": "GET", **as_node(entry.get("request"))}
        response = {"status": 200, **as_node(entry.get("response")), "content": entry.get("content")}
        entry |= {"request": request, "response": response}
    log = {"log": {"entries": entries, "pages": [page, other]}}
    check(folder / "fields.har", json.dumps(log).encode())


def as_node(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


LINES = st.sampled_from(
    [
        b"WARC/1.0",
        b"WARC-Type: response",
        b"WARC-Type: revisit",
        b"WARC-Type: request",
        b"WARC-Type: warcinfo",
        b"WARC-Target-URI: http://a.example/",
        b"WARC-Target-URI: x",
        b"Content-Length: 40",
        b"Content-Length: 0",
        b"Content-Length: -5",
        b"Content-Length: 1e9",
        b"Content-Length: 99999999999",
        b"",
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 301 x",
        b"HTTP/1.1 999",
        b"Content-Type: text/html",
        b"Transfer-Encoding: chunked",
        b"\xff\xfe",
        b"Content-Encoding: gzip",
        b"Location: /",
        b"GET / HTTP/1.1",
        b"json-metadata: {",
        b" folded",
        b": :",
        b"5",
    ]
)


@given(lines=st.lists(LINES, max_size=30), zipped=st.booleans())
def test_any_lines_of_a_warc(folder: Path, lines: list[bytes], zipped: bool) -> None:
    data = b"\r\n".join([b"WARC/1.0", *lines])
    check(folder / "lines.warc", gzip.compress(data) if zipped else data)


@settings(max_examples=300)
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), ending=st.sampled_from([".wacz", ".warc.gz"]))
def test_any_byte_of_an_archive_changed(folder: Path, at: int, byte: int, ending: str) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<img src=i.png>"
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Length: %d\r\n\r\n"
    )
    warc = gzip.compress(head % len(body) + body + b"\r\n\r\n", mtime=0)
    path = folder / f"changed{ending}"
    if ending == ".wacz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/x.warc.gz", warc)
            archive.writestr("pages/pages.jsonl", '{"url": "http://a.example/", "ts": "2024"}')
        warc = path.read_bytes()
    data = bytearray(warc)
    data[at % len(data)] = byte
    check(path, bytes(data))
