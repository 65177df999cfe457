"""Recorded pages become a WACZ that other programs can read and that firstflight opens as the same pages."""

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from netlog_double import Log

from firstflight.engines.clients.job import Drive, Fetch
from firstflight.errors import PageInputError, UsageError
from firstflight.pages import LoadedPage, load_page
from firstflight.pages.record.browse import Visit
from firstflight.pages.record.package import surt, write_wacz
from firstflight.pages.record.wire import exchanges_of, open_netlog, pair

SCRIPT = gzip.compress(b"fetch('/data' + 1)")
STARTED_MS = 1000.0


class Recording:
    """One page load. Each request starts 10 ms after the one before.

    It connects for 20 ms, waits 50 ms for its answer, and receives for 5 ms.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = Log()
        self._fetches: list[Fetch] = []
        folder.mkdir()

    def add(
        self,
        url: str,
        body: bytes = b"",
        fields: tuple[str, ...] = (),
        *,
        status: str = "200 OK",
        kind: str = "Script",
        by: str = "",
        wait_ms: float = 50.0,
        error: str | None = None,
    ) -> None:
        number = self._log.start(url)
        self._log.send(number, "GET / HTTP/1.1", ["Host: a.test", "Accept: */*"])
        self._log.answer(number, status, [*fields, f"Content-Length: {len(body)}"])
        if status.startswith("200"):
            self._log.read(number, body if error is None else body[:1])
        at = 10.0 * len(self._fetches)
        self._fetches.append(
            Fetch(
                url, "GET", kind, at, at, None, at + 20, at + 20, at + 20 + wait_ms, at + 25 + wait_ms,
                status=int(status[:3]), protocol="http/1.1", initiator=by or None,
                asked_how="script" if by.endswith(".js") else "parser", asked_by=[by] if by else [],
                error=error,
            )
        )  # fmt: skip

    def visit(self, *, plt_ms: float | None = 500.0) -> Visit:
        log = open_netlog(self._log.write(self._folder))
        assert log is not None
        pairs, lost = pair(exchanges_of(log, self._folder), self._fetches)
        drive = Drive(round(STARTED_MS * 1e6), plt_ms, fetches=self._fetches, browser="1.2.3")
        return Visit(self._fetches[0].url, pairs, lost, drive, log.epoch_ms, self._folder / "page.png", 1)


def page(folder: Path, host: str = "a.test") -> Recording:
    """A document, its gzipped script, and data that the script fetches and the server sends after 80 ms."""
    recording = Recording(folder)
    html = b"<!doctype html><script src=/s.js></script>"
    recording.add(f"http://{host}/", html, ("Content-Type: text/html",), kind="Document")
    coded = ("Content-Type: text/javascript", "Content-Encoding: gzip")
    recording.add(f"http://{host}/s.js", SCRIPT, coded, by=f"http://{host}/")
    data = ("Content-Type: application/json",)
    recording.add(f"http://{host}/data1", b"{}", data, kind="Fetch", by=f"http://{host}/s.js", wait_ms=130.0)
    return recording


@pytest.fixture
def wacz(tmp_path: Path) -> Path:
    path = tmp_path / "x.wacz"
    first, second = page(tmp_path / "1").visit(), page(tmp_path / "2", "www.b.test").visit()
    write_wacz(path, [first, second])
    return path


def initiators(loaded: LoadedPage) -> list[tuple[int, str, bool]]:
    return [
        (r.initiator.resource, r.initiator.via, r.initiator.inferred)
        for r in loaded.page.resources
        if r.initiator
    ]


def test_every_file_is_listed_with_its_hash(wacz: Path) -> None:
    with zipfile.ZipFile(wacz) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
        stored = {info.filename for info in archive.infolist() if info.compress_type == zipfile.ZIP_STORED}
    package = json.loads(content["datapackage.json"])
    listed = {entry["path"]: entry for entry in package["resources"]}
    assert set(content) - set(listed) == {"datapackage.json", "datapackage-digest.json"}
    for path, entry in listed.items():
        assert entry["hash"] == f"sha256:{hashlib.sha256(content[path]).hexdigest()}"
        assert entry["bytes"] == len(content[path])
    digest = f"sha256:{hashlib.sha256(content['datapackage.json']).hexdigest()}"
    assert json.loads(content["datapackage-digest.json"]) == {"path": "datapackage.json", "hash": digest}
    assert (package["profile"], package["wacz_version"]) == ("data-package", "1.1.1")
    assert {"archive/data.warc.gz", "indexes/index.cdx.gz"} <= stored


def test_the_index_leads_to_each_answer(wacz: Path) -> None:
    with zipfile.ZipFile(wacz) as archive:
        warc = archive.read("archive/data.warc.gz")
        lines = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
    assert lines == sorted(lines)
    assert len(lines) == 6
    for line in lines:
        key, stamp, fields = line.split(" ", 2)
        entry = json.loads(fields)
        record = gzip.decompress(warc[entry["offset"] :][: entry["length"]])
        assert key == surt(entry["url"])
        assert stamp.isdecimal() and len(stamp) == 14
        assert f"WARC-Target-URI: {entry['url']}\r\n".encode() in record
        assert b"WARC-Type: response" in record


def test_warcio_finds_nothing_wrong(wacz: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wacz) as archive:
        file = Path(archive.extract("archive/data.warc.gz", tmp_path))
    check = "from warcio.cli import main; main()"
    command = [sys.executable, "-c", check, "check", "-v", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.count("digest pass") == 1 + 2 * 6, said


def test_all_pages_come_back_with_what_was_recorded_of_them(wacz: Path) -> None:
    first, second = load_page(str(wacz))
    assert second.page.resources[0].url == "http://www.b.test/"
    assert initiators(first) == [(0, "parser", False), (1, "script", False)]
    # The wait for the first byte without the handshake time, which is one round trip (20 ms).
    assert [r.server_ms for r in first.page.resources] == [30.0, 30.0, 110.0]
    assert first.bodies[1].read_bytes() == SCRIPT
    assert ("Content-Encoding", "gzip") in first.headers[1]


def test_one_page_can_be_named(wacz: Path) -> None:
    [named] = load_page(f"{wacz}#http://www.b.test/")
    assert named.page.resources[0].url == "http://www.b.test/"


def test_what_came_after_the_load_event_does_not_hold_it_up(tmp_path: Path) -> None:
    write_wacz(tmp_path / "x.wacz", [page(tmp_path / "1").visit(plt_ms=100.0)])
    [loaded] = load_page(str(tmp_path / "x.wacz"))
    assert [r.blocks_load for r in loaded.page.resources] == [True, True, False]


def test_of_a_redirects_body_the_length_is_kept(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "1")
    recording.add("http://a.test/", b"moved", ("Location: /new",), status="302 Found", kind="Document")
    html = b"<!doctype html>"
    recording.add(
        "http://a.test/new", html, ("Content-Type: text/html",), kind="Document", by="http://a.test/"
    )
    write_wacz(tmp_path / "x.wacz", [recording.visit()])
    [loaded] = load_page(str(tmp_path / "x.wacz"))
    assert [(r.status, r.body_bytes) for r in loaded.page.resources] == [(302, 5), (200, 15)]
    assert list(loaded.bodies) == [1]


def test_a_body_that_did_not_come_whole_is_recorded_and_told(tmp_path: Path) -> None:
    recording = page(tmp_path / "1")
    recording.add("http://a.test/cut", b"all of it", error="net::ERR_CONNECTION_RESET")
    visit = recording.visit()
    [lost] = visit.lost
    assert (lost.url, lost.lasting) == ("http://a.test/cut", False)
    assert "1 of 9 bytes" in lost.reason
    write_wacz(tmp_path / "x.wacz", [visit])
    with zipfile.ZipFile(tmp_path / "x.wacz") as archive:
        assert b"WARC-Truncated: disconnect" in gzip.decompress(archive.read("archive/data.warc.gz"))


def test_what_the_browser_asks_on_its_own_account_is_left_out(tmp_path: Path) -> None:
    log = Log()
    own, worker = log.start("http://browser.test/", initiator="not an origin"), log.start("http://a.test/w")
    for number in (own, worker):
        log.send(number)
        log.answer(number, "204 No Content")
    opened = open_netlog(log.write(tmp_path))
    assert opened is not None
    pairs, lost = pair(exchanges_of(opened, tmp_path), [])
    assert ([found.exchange.url for found in pairs], lost) == (["http://a.test/w"], [])


@pytest.mark.parametrize(
    ("har", "message"),
    [
        (b"", "is not a HAR"),
        (b"[" * 100_000, "is not a HAR"),
        (b'{"log": {"entries": [{"_warcRecordId": "unknown"}]}}', "none of its answers is in the archive"),
        (b'{"log": {"entries": [' + b"{}," * 30_000 + b"{}]}}", "30001 requests are too many"),
    ],
)
def test_a_damaged_har_names_the_archive_and_the_file(
    har: bytes, message: str, wacz: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.wacz"
    with zipfile.ZipFile(wacz) as before, zipfile.ZipFile(damaged, "w") as after:
        for name in before.namelist():
            after.writestr(name, har if name == "har/1.har" else before.read(name))
    with pytest.raises(PageInputError, match=f"damaged.wacz.*har/1.har.*{message}"):
        load_page(str(damaged))


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    visit = page(tmp_path / "1").visit()
    (tmp_path / "x.wacz").mkdir()
    (tmp_path / "x.wacz" / "inside").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        write_wacz(tmp_path / "x.wacz", [visit])
    assert {path.name for path in tmp_path.iterdir()} == {"1", "x.wacz"}


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.org:80/A?b=2&a=1", "org,example)/a?a=1&b=2"),
        ("https://example.org", "org,example)/"),
        ("http://example.org:8080/x", "org,example:8080)/x"),
        ("https://example.org:443/a/b/", "org,example)/a/b"),
        ("http://example.org//a///b/?", "org,example)/a/b"),
        ("http://www3.example.org/", "org,example)/"),
        ("http://example.org/a/../%62%7e", "org,example)/b~"),
        ("http://example.org/a%2fb", "org,example)/a/b"),
        ("http://example.org/a%252Fb%25c", "org,example)/a/b%25c"),
        ("http://example.org/%C3%84 %zz", "org,example)/%c3%84%20%25zz"),
        ("http://example.org/a/?x/", "org,example)/a?x/"),
        ("http://example.org/?a-b=1&a=2&A=1&&a_b", "org,example)/?&a=1&a=2&a-b=1&a_b"),
        ("http://example.org/?x=1&PHPSESSID=0123456789abcdef0123456789abcdef", "org,example)/?&x=1"),
        ("http://example.org/?jsessionid=0123456789abcdef0123456789ABCDEF&x", "org,example)/?x"),
        ("http://example.org/?a&cfid=12&cftoken=34", "org,example)/?&a"),
        ("http://example.org/(S(abcdefghijklmnopqrstuvwx))/x.aspx", "org,example)/x.aspx"),
        ("http://127.0.0.1:8000/", "1,0,0,127:8000)/"),
    ],
)
def test_urls_are_sorted_by_host_from_the_right(url: str, key: str) -> None:
    """The expected keys are those of pywb 2.10 with surt 0.3.1."""
    assert surt(url) == key
