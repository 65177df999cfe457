"""Recordings replayed in the laboratory: the bytes on the wire are those that were recorded."""

from pathlib import Path

import pytest
from archive import Curl
from small_pages import assert_ok, load

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.pages import load_page

DOCUMENT = "http://a.test/"
TEXT = b"<p>" + bytes(range(97, 123)) * 2_000


def answer(url: str, body: bytes, fields: list[bytes]) -> tuple[bytes, int]:
    """A WARC record of an answer, and the bytes of the response in it."""
    block = b"HTTP/1.1 200 OK\r\n" + b"\r\n".join([*fields, b"", b""]) + body
    header = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return header.encode() + block + b"\r\n\r\n", len(block)


def chunks(body: bytes, size: int = 8_000) -> bytes:
    cut = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in cut) + b"0\r\n\r\n"


@pytest.fixture
def recording(tmp_path: Path) -> tuple[Path, int]:
    """A WARC of two answers, one in chunks, and the bytes of both on the wire."""
    html = [
        b"Content-Type: text/html",
        b"Transfer-Encoding: chunked",
        b"Server: old",
        b"Connection: keep-alive",
    ]
    image = [b"Content-Type: image/png", b"Content-Length: 30000", b"Server: old"]
    page = b"<img src=/i.png>" + TEXT
    first, first_bytes = answer(DOCUMENT, chunks(page), html)
    second, second_bytes = answer(f"{DOCUMENT}i.png", b"x" * 30_000, image)
    path = tmp_path / "page.warc"
    path.write_bytes(first + second)
    return path, first_bytes + second_bytes


def test_what_was_recorded_in_chunks_is_replayed_in_chunks(
    emulator: Emulator, recording: tuple[Path, int], tmp_path: Path
) -> None:
    (page,) = load_page(str(recording[0]))
    [html, image], record = Curl(page, tmp_path)((DOCUMENT,), (f"{DOCUMENT}i.png",))
    assert (html.headers["transfer-encoding"], html.body) == ("chunked", b"<img src=/i.png>" + TEXT)
    assert "content-length" not in html.headers
    assert (image.headers["content-length"], len(image.body)) == ("30000", 30_000)
    assert record["unmatched_requests"] == 0


def test_bytes_on_the_wire_are_those_of_the_recording(
    emulator: Emulator, recording: tuple[Path, int]
) -> None:
    path, recorded_bytes = recording
    (page,) = load_page(str(path))
    record = load(emulator, page, "tcp")
    assert_ok(record)
    crossed = sum(known(request["wire_bytes"]) for request in record["requests"])
    assert crossed == pytest.approx(recorded_bytes, rel=0.02)
