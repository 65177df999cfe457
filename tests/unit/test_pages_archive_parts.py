"""Content codings, chunks, header fields and the body store, with valid and with arbitrary input."""

import os
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.errors import PageInputError
from firstflight.pages.bodies import (
    KEPT_DAYS,
    BodyStore,
    CodingError,
    cache_folder,
    codings_of,
    decoded,
    encoded,
    keep,
)
from firstflight.pages.fields import mime_of, repeatable
from firstflight.pages.urls import normal_url, usable_url

CODINGS = ["gzip", "deflate", "br", "zstd"]


@given(st.binary(max_size=5_000), st.lists(st.sampled_from(CODINGS), max_size=3), st.integers(1, 100))
def test_what_is_encoded_is_decoded_again(body: bytes, names: list[str], size: int) -> None:
    data = body
    for name in names:
        data = encoded(data, [name], len(data))
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert b"".join(decoded(pieces, names)) == body


@given(st.binary(max_size=300), st.sampled_from([*CODINGS, "compress"]))
def test_any_bytes_are_decoded_or_a_coding_error(data: bytes, name: str) -> None:
    try:
        b"".join(decoded([data], [name]))
    except CodingError as error:
        assert str(error)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
def test_a_coding_without_its_end_is_an_error(name: str) -> None:
    data = encoded(os.urandom(2_000), [name], 0)
    with pytest.raises(CodingError):
        b"".join(decoded([data[:-1]], [name]))


@pytest.mark.parametrize("size", [9, 70_000, 1 << 20])
def test_zstd_frames_follow_one_another(size: int) -> None:
    one = encoded(b"one" * 50_000, ["zstd"], 0)
    data = one + encoded(b"", ["zstd"], 0) + one
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert b"".join(decoded(pieces, ["zstd"])) == b"one" * 100_000
    with pytest.raises(CodingError):
        b"".join(decoded([one + b"no frame"], ["zstd"]))


def test_of_zstd_without_its_end_all_is_read_that_can_be() -> None:
    body = os.urandom(500_000)
    read = b"".join(decoded([encoded(body, ["zstd"], 0)[:-1]], ["zstd"]))
    assert len(read) > 300_000
    assert body.startswith(read)


@pytest.mark.parametrize("log", [23, 24])
def test_a_zstd_window_has_at_most_8_mb(log: int) -> None:
    # A frame of RFC 8878 with a window of 2**log bytes and one empty last block.
    data = b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3]) + b"\x01\x00\x00"
    if log > 23:
        with pytest.raises(CodingError):
            b"".join(decoded([data], ["zstd"]))
    else:
        assert b"".join(decoded([data], ["zstd"])) == b""


@pytest.mark.parametrize("name", CODINGS)
def test_a_bomb_comes_in_small_pieces(name: str) -> None:
    data = encoded(bytes(30_000_000), [name], 0)
    assert max(len(piece) for piece in decoded([data], [name])) <= 1 << 18


def test_deflate_is_read_with_and_without_its_header() -> None:
    bare = zlib.compressobj(wbits=-15)
    assert b"".join(decoded([bare.compress(b"hello") + bare.flush()], ["deflate"])) == b"hello"


def test_a_body_is_encoded_near_its_recorded_size() -> None:
    text = "".join(f"<li>{number * number}</li>" for number in range(3_000)).encode()
    for level in (1, 6, 9):
        recorded = zlib.compress(text, level)
        assert abs(len(encoded(text, ["deflate"], len(recorded))) - len(recorded)) <= 0.02 * len(recorded)


def test_codings_that_change_nothing_are_none() -> None:
    assert codings_of("identity") == codings_of("") == []
    assert codings_of("X-GZip, br") == ["gzip", "br"]


@given(st.binary(max_size=100), st.booleans(), st.sampled_from(["", "gzip", "br", "gzip, br", "huffman"]))
def test_any_body_is_kept(data: bytes, chunked: bool, encoding: str) -> None:
    body = keep(BodyStore("x"), [data], "x", chunked=chunked, encoding=encoding, scan=True)
    assert body.file.stat().st_size <= len(data)


@given(st.lists(st.binary(min_size=1, max_size=50)))
def test_chunks_are_undone(chunks: list[bytes]) -> None:
    data = b"".join(b"%x;x=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    body = keep(BodyStore("x"), [data], "x", chunked=True, encoding="", scan=False)
    assert body.file.read_bytes() == b"".join(chunks)


@given(st.lists(st.tuples(st.text(max_size=10), st.text(max_size=20))))
def test_no_field_can_end_a_header(fields: list[tuple[str, str]]) -> None:
    for name, value in repeatable(fields):
        text = f"{name}: {value}".encode("latin-1")
        assert b"\r" not in text
        assert b"\n" not in text


@given(st.text(max_size=50))
def test_a_mime_type_is_printable(text: str) -> None:
    assert all(" " <= c <= "~" for c in mime_of(text))


@given(st.text(max_size=50))
def test_any_text_is_a_usable_url_or_not(text: str) -> None:
    url = normal_url(text)
    assert usable_url(url) in (True, False)
    assert normal_url(url) == url or not usable_url(url)


def test_a_body_is_kept_once_under_its_content() -> None:
    store = BodyStore("x")
    first, second = store.add([b"he", b"llo"], "x"), store.add([b"hello"], "x")
    assert first == second
    assert first.is_relative_to(cache_folder())


def test_what_nobody_asks_for_is_removed_in_time() -> None:
    store = BodyStore("x")
    old, used = store.add([b"old"], "x"), store.add([b"used"], "x")
    past = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(old, (past, past))
    os.utime(used, (past, past))
    assert store.add([b"used"], "x") == used
    BodyStore("y")
    assert old.exists()
    os.utime(cache_folder() / "bodies" / ".pruned", (past, past))
    BodyStore("z")
    assert (old.exists(), used.exists()) == (False, True)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(PageInputError, match="cannot keep its bodies") as caught:
        BodyStore("x.warc")
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_body_that_is_too_large_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.pages.bodies.MOST_ARCHIVE_BYTES", 10)
    before = set(cache_folder().rglob("*"))
    with pytest.raises(PageInputError, match="together have more"):
        BodyStore("x.warc").add([b"12345678", b"9012"], "x")
    assert set(cache_folder().rglob("*")) == before
