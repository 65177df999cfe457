"""Archives that lie about their lengths, sizes and places are refused, or served as they are."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.sources import read_plan_file
from firstflight.pages import LoadedPage, load_page
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.sources import MOST_SYNTHESISED_BYTES

URL = "http://a.example/"
BODY = b"<img src=i.png>"


def warc(*fields: str, body: bytes = BODY) -> bytes:
    """A WARC with one answer that has these header fields."""
    block = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/html", *fields, "", ""]).encode() + body
    head = ["WARC/1.0", "WARC-Type: response", f"WARC-Target-URI: {URL}", f"Content-Length: {len(block)}"]
    return "\r\n".join([*head, "", ""]).encode() + block + b"\r\n\r\n"


def har(*entries: dict[str, Any], **response: object) -> bytes:
    """A HAR with a document; `response` overrides its answer."""
    content = {"size": len(BODY), "mimeType": "text/html", "text": BODY.decode()}
    answer = {"status": 200, "headers": [], "content": content, "bodySize": len(BODY), **response}
    document = {"request": {"method": "GET", "url": URL}, "response": answer}
    return json.dumps({"log": {"entries": [document, *entries]}}).encode()


def profile(**fields: object) -> bytes:
    """A profile of a document; `fields` override."""
    document = {
        "url": URL,
        "kind": "document",
        "mime": "text/html",
        "request_bytes": 300,
        "header_bytes": 200,
    }
    resources = [{**document, "body_bytes": 100, **fields}]
    return json.dumps({"format": "firstflight-profile/1", "name": "x", "resources": resources}).encode()


def wacz(path: Path, name: str, data: bytes, mode: int = 0o644) -> None:
    """A WACZ with one member."""
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)


def opened(path: Path, data: bytes) -> LoadedPage:
    path.write_bytes(data)
    (loaded,) = load_page(str(path))
    return loaded


@pytest.mark.parametrize("said", ["0", "1", "999999999999", "-1", "many"])
def test_a_content_length_that_lies_changes_no_body(tmp_path: Path, said: str) -> None:
    loaded = opened(tmp_path / "x.warc", warc(f"Content-Length: {said}"))
    assert loaded.bodies[0].read_bytes() == BODY
    assert loaded.page.resources[0].body_bytes == len(BODY)
    assert [name.lower() for name, _ in loaded.headers[0]] == ["content-type"], "the server says its own"


@pytest.mark.parametrize("size", [0, 1, 10**12, -1, 1e300])
def test_a_size_that_lies_makes_no_body_longer(tmp_path: Path, size: float) -> None:
    content = {"size": size, "mimeType": "text/html", "text": BODY.decode()}
    try:
        loaded = opened(tmp_path / "x.har", har(content=content, bodySize=size))
    except PageInputError as error:
        assert error.hint
        return
    made = [r.body_bytes for i, r in enumerate(loaded.page.resources) if i not in loaded.bodies]
    assert sum(made) <= MOST_SYNTHESISED_BYTES


def test_bodies_that_are_not_there_are_made_up_to_a_bound(tmp_path: Path) -> None:
    size = MOST_SYNTHESISED_BYTES + 1
    with pytest.raises(PageInputError, match="512 MiB of bodies and headers are not in it") as caught:
        opened(tmp_path / "x.har", har(content={"size": size, "mimeType": "video/mp4"}, bodySize=size))
    assert "record the page with its bodies" in caught.value.hint


def test_headers_that_are_not_there_are_made_up_to_a_bound(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="MiB of bodies and headers are not in it"):
        opened(tmp_path / "x.json", profile(header_bytes=MOST_SYNTHESISED_BYTES))


def test_a_link_in_a_wacz_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.warc").write_bytes(warc())
    wacz(tmp_path / "x.wacz", "archive/x.warc", os.fsencode(tmp_path / "secret.warc"), 0o120777)
    with pytest.raises(PageInputError, match=r"archive/x\.warc: record 1"):
        load_page(str(tmp_path / "x.wacz"))


def test_a_name_in_a_wacz_moves_no_cursor(tmp_path: Path) -> None:
    wacz(tmp_path / "x.wacz", "archive/\x1b[2J\n.warc", b"x")
    with pytest.raises(PageInputError) as caught:
        load_page(str(tmp_path / "x.wacz"))
    assert "archive/\\x1b[2J\\n.warc" in caught.value.message


def test_a_body_that_swells_in_a_zip_leaves_nothing_behind(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.pages.archives.store.MOST_BODY_BYTES", 1 << 20)
    BodyStore("x")
    before = set(cache.rglob("*"))
    wacz(tmp_path / "x.wacz", "archive/x.warc", warc(body=bytes(1 << 24)))
    with pytest.raises(PageInputError, match="the body has more than 1 MiB"):
        load_page(str(tmp_path / "x.wacz"))
    assert set(cache.rglob("*")) == before


@pytest.mark.parametrize("ending", ["har", "har.gz", "warc", "warc.gz", "wacz", "json", "pages"])
@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\x1f\x8b", b"PK\x03\x04", b"\n" * 100])
def test_what_is_no_archive_is_refused_whatever_its_name(tmp_path: Path, ending: str, data: bytes) -> None:
    with pytest.raises(PageInputError) as caught:
        opened(tmp_path / f"x.{ending}", data)
    assert f"x.{ending}" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("ending", ["har", "warc.gz", "wacz", "json", "pages"])
def test_a_pipe_is_no_archive_and_nobody_waits_for_it(tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / f"x.{ending}")
    with pytest.raises(PageInputError, match="neither a file nor a directory"):
        load_page(str(tmp_path / f"x.{ending}"))


def test_a_device_without_end_is_no_plan() -> None:
    with pytest.raises(UsageError, match="too long"):
        read_plan_file(Path("/dev/zero"))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-5", "1" * 4000, '"x"', "[1]", "null"])
@pytest.mark.parametrize("key", ["wait", "receive", "connect", "blocked"])
def test_times_that_cannot_be_are_no_times(tmp_path: Path, key: str, number: str) -> None:
    timed = har().replace(
        b'"response"', f'"timings": {{"{key}": {number}}}, "time": {number}, "response"'.encode()
    )
    loaded = opened(tmp_path / "x.har", timed)
    assert all(0 <= r.server_ms < 1e6 for r in loaded.page.resources)
    assert loaded.bodies[0].read_bytes() == BODY
