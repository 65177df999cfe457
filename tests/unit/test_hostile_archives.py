"""firstflight refuses archives with false lengths, sizes or offsets, or serves them exactly as they are."""

import gzip
import json
import os
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.engines.clients.command import COMMANDS, Way
from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.plan_file import read_plan_file
from firstflight.pages import LoadedPage, Page, load_page
from firstflight.pages.bodies import BodyStore
from firstflight.pages.sources import MOST_SYNTHESISED_BYTES

URL = "http://a.example/"
BODY = b"<img src=i.png>"


def warc(*fields: str, body: bytes = BODY) -> bytes:
    """A WARC with one answer, which has these header fields."""
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


SWELLING = 1 << 24
"""Size of the test bodies after decompression, bytes."""


@pytest.mark.parametrize("ending", ["warc.gz", "wacz"])
def test_a_body_that_swells_is_refused_in_little_memory_and_leaves_nothing_behind(
    ending: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstflight.pages.bodies.MOST_BODY_BYTES", 1 << 20)
    BodyStore("x")
    before = set(cache.rglob("*"))
    if ending == "wacz":
        wacz(tmp_path / "x.wacz", "archive/x.warc", warc(body=bytes(SWELLING)))
    else:
        (tmp_path / "x.warc.gz").write_bytes(gzip.compress(warc(body=bytes(SWELLING))))
    with in_little_memory(), pytest.raises(PageInputError, match="the body has more than 1 MiB"):
        load_page(str(tmp_path / f"x.{ending}"))
    assert set(cache.rglob("*")) == before


@pytest.mark.parametrize("ending", ["warc.gz", "wacz"])
def test_zeros_without_end_are_no_warc_and_take_little_memory(ending: str, tmp_path: Path) -> None:
    if ending == "wacz":
        wacz(tmp_path / "x.wacz", "archive/x.warc", bytes(SWELLING))
    else:
        (tmp_path / "x.warc.gz").write_bytes(gzip.compress(bytes(SWELLING)))
    with in_little_memory(), pytest.raises(PageInputError, match=r"x\.warc"):
        load_page(str(tmp_path / f"x.{ending}"))


@contextmanager
def in_little_memory() -> Iterator[None]:
    """Asserts that Python holds at most a quarter of `SWELLING` at any time while the context lasts."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < SWELLING / 4
    finally:
        tracemalloc.stop()


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


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("http://a.example/a b\n?c d", "http://a.example/a%20b?c%20d"),
        ("http://B\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ('http://a.example/"\\..\\x', "http://a.example/x"),
    ],
)
def test_an_archives_url_is_stored_as_browsers_request_it(tmp_path: Path, written: str, stored: str) -> None:
    answer = {"status": 200, "headers": [], "content": {"size": 1}, "bodySize": 1}
    loaded = opened(
        tmp_path / "x.har", har({"request": {"method": "GET", "url": written}, "response": answer})
    )
    assert [resource.url for resource in loaded.page.resources] == [URL, stored]


@pytest.mark.parametrize("host", ["*", "a,b", "a..b", "a.example:99999", "a b", "me@a.example"])
def test_a_request_to_no_host_is_left_out(tmp_path: Path, host: str) -> None:
    answer = {"status": 200, "headers": [], "content": {"size": 1}, "bodySize": 1}
    entry = {"request": {"method": "GET", "url": f"http://{host}/"}, "response": answer}
    loaded = opened(tmp_path / "x.har", har(entry))
    assert [resource.url for resource in loaded.page.resources] == [URL]
    assert "left out: requests whose URL or method no browser sends: 1" in loaded.notes


def test_the_config_of_curl_has_a_line_per_option() -> None:
    page = Page.from_json(profile().decode())
    made = COMMANDS["curl"]("curl", page, Way())
    *options, url, output = made.input.splitlines()
    assert (url, output) == (f'url = "{URL}"', 'output = "/dev/null"')
    assert 'proto = "=http,https"' in options
    assert made.argv == ("curl", "--disable", "--config", "-")
    for url in (f"{URL}\nx", f"{URL}\u0085", f"{URL}a b", f"{URL}\u2028", f"{URL}\x1b"):
        odd = replace(page, resources=(replace(page.resources[0], url=url),))
        with pytest.raises(ValueError, match="no URL that a page can hold"):
            COMMANDS["curl"]("curl", odd, Way())


def requests(size: int) -> bytes:
    """A WARC record of a request with a body of zeros."""
    block = b"POST / HTTP/1.1\r\nHost: a.example\r\n\r\n" + bytes(size)
    head = ["WARC/1.0", "WARC-Type: request", f"WARC-Target-URI: {URL}", f"Content-Length: {len(block)}"]
    return "\r\n".join([*head, "", ""]).encode() + block + b"\r\n\r\n"


def coded(codings: int) -> bytes:
    """A WARC with a body in `codings` nested gzip codings."""
    body = BODY
    for _ in range(codings):
        body = gzip.compress(body, mtime=0)
    return warc(f"Content-Encoding: {', '.join(['gzip'] * codings)}", body=body)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.pages.bodies.MOST_UNPACKED_BYTES", 1 << 22)
    monkeypatch.setattr("firstflight.pages.bodies.MOST_MEMBERS", 100)


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("ending", ["warc.gz", "wacz"])
def test_records_that_are_left_out_are_counted(tmp_path: Path, ending: str) -> None:
    data = gzip.compress(warc() + requests(1 << 21))
    if ending == "wacz":
        wacz(tmp_path / "x.wacz", "archive/x.warc.gz", data)
    else:
        (tmp_path / "x.warc.gz").write_bytes(data)
    with pytest.raises(PageInputError, match="were unpacked") as caught:
        load_page(str(tmp_path / f"x.{ending}"))
    assert caught.value.hint == "split the archive: one page each"


@pytest.mark.usefixtures("small_budget")
def test_texts_that_are_decoded_to_be_searched_are_counted(tmp_path: Path) -> None:
    swelling = warc("Content-Encoding: gzip", body=gzip.compress(bytes(1 << 20), mtime=0))
    assert opened(tmp_path / "x.warc", swelling).page.resources
    with pytest.raises(PageInputError, match="were unpacked"):
        opened(tmp_path / "x.warc", swelling * 4)


@pytest.mark.usefixtures("small_budget")
def test_a_body_in_millions_of_chunks_is_counted(tmp_path: Path) -> None:
    with pytest.raises(PageInputError, match="were unpacked"):
        opened(tmp_path / "x.warc", warc("Transfer-Encoding: chunked", body=b"1\r\nx\r\n" * 20_000))


@pytest.mark.usefixtures("small_budget")
def test_records_are_counted_over_all_files_of_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as archive:
        for number in range(6):
            archive.writestr(f"archive/{number}.warc", warc() * 10)
    with pytest.raises(PageInputError, match="more than 100 files and records"):
        load_page(str(tmp_path / "x.wacz"))


@pytest.mark.usefixtures("small_budget")
def test_a_mahimahi_recording_has_so_many_files(tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"save.{number}").write_bytes(b"")
    with pytest.raises(PageInputError, match="more than 100 files and records"):
        load_page(str(tmp_path))


def test_a_body_is_in_at_most_five_codings(tmp_path: Path) -> None:
    loaded = opened(tmp_path / "x.warc", coded(5))
    assert dict(loaded.headers[0])["Content-Encoding"].count("gzip") == 5
    assert loaded.page.missing, "it is searched"
    for codings in (6, 600):
        loaded = opened(tmp_path / "x.warc", coded(codings))
        assert "Content-Encoding" not in dict(loaded.headers[0]), "it is served as it is"


def test_a_har_is_encoded_at_most_five_times(tmp_path: Path) -> None:
    for codings, kept in ((5, True), (6, False), (3_000, False)):
        headers = [{"name": "Content-Encoding", "value": ", ".join(["br"] * codings)}]
        loaded = opened(tmp_path / "x.har", har(headers=headers))
        assert ("Content-Encoding" in dict(loaded.headers.get(0, ()))) == kept
        assert (loaded.bodies[0].read_bytes() == BODY) != kept


def test_the_directory_of_a_wacz_is_bounded_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as archive:
        archive.writestr("archive/x.warc", warc())
        for number in range(100):
            archive.writestr(f"{number:060}", b"")
    assert load_page(str(tmp_path / "x.wacz"))
    monkeypatch.setattr("firstflight.pages.readers.wacz._MOST_DIRECTORY", 10_000)
    parsed: list[zipfile.ZipInfo] = []
    monkeypatch.setattr(zipfile, "ZipInfo", lambda *arguments: parsed.append(zipfile.ZipInfo(*arguments)))
    with pytest.raises(PageInputError, match=r"x\.wacz: its directory has \d+ bytes"):
        load_page(str(tmp_path / "x.wacz"))
    assert not parsed
