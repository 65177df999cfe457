"""Mahimahi recordings become pages. They have one file per exchange, and neither times nor order."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import PageInputError
from firstflight.pages import load_page
from firstflight.pages.readers.mahimahi import WireError, fields_of

Fields = list[tuple[str, str]]


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def piece(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(first_line: str, fields: Fields, body: bytes = b"") -> bytes:
    headers = b"".join(piece(2, piece(1, name.encode()) + piece(2, text.encode())) for name, text in fields)
    return piece(1, first_line.encode()) + headers + piece(3, body)


def save(
    folder: Path,
    host: str,
    target: str,
    answer: Fields,
    body: bytes = b"",
    *,
    status: str = "200 OK",
    referer: str = "",
) -> None:
    asked = [("Host", host), ("Referer", referer)]
    request, response = message(f"GET {target} HTTP/1.1", asked), message(f"HTTP/1.1 {status}", answer, body)
    head = piece(1, b"10.0.0.1") + varint(2 << 3) + varint(443) + varint(3 << 3) + varint(2)
    folder.mkdir(exist_ok=True)
    path = folder / f"save.{len(list(folder.iterdir())):06}"
    path.write_bytes(head + piece(4, request) + piece(5, response))


def html(body: bytes) -> tuple[Fields, bytes]:
    return [("Content-Type", "text/html")], body


def test_the_page_begins_with_what_most_requests_refer_to(tmp_path: Path) -> None:
    folder, page = tmp_path / "site", "https://a.example/"
    save(folder, "ads.example", "/frame", *html(b"<p>"), referer=page)
    save(folder, "a.example", "/x.png", [("Content-Type", "image/png")], b"x", referer=page)
    moved = [("Location", page)]
    save(folder, "www.a.example", "/", moved, status="301 Moved")
    chunked = [("Content-Type", "text/html"), ("Transfer-Encoding", "chunked")]
    save(
        folder,
        "a.example",
        "/",
        chunked,
        b"14\r\n<iframe src=https://\r\n11\r\nads.example/frame\r\n1\r\n>\r\n0\r\n\r\n",
    )
    (loaded,) = load_page(str(folder))
    assert [resource.url for resource in loaded.page.resources] == [
        "https://www.a.example/",
        page,
        "https://ads.example/frame",
        "https://a.example/x.png",
    ]
    assert loaded.bodies[1].read_bytes() == b"<iframe src=https://ads.example/frame>"


@pytest.mark.parametrize("data", [b"", b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 20, b"\x0b"])
def test_a_file_that_is_no_exchange_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "save.x").write_bytes(data)
    with pytest.raises(PageInputError) as caught:
        load_page(str(tmp_path))
    assert caught.value.hint


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes) -> None:
    try:
        assert sum(len(value) for _, value in fields_of(data) if isinstance(value, bytes)) <= len(data)
    except WireError as error:
        assert str(error).startswith("byte")


@given(st.lists(st.tuples(st.integers(1, 2**28), st.binary(max_size=300))))
def test_fields_come_back_as_they_were_written(fields: list[tuple[int, bytes]]) -> None:
    assert list(fields_of(b"".join(piece(number, data) for number, data in fields))) == fields
