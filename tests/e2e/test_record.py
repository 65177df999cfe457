"""Records pages that the laboratory serves, replays the recording, and records that: both archives agree."""

import gzip
import os
import random
import signal
import socket
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import pytest
from archive import Archive
from program import Program, until
from recorded import Recording, again, record
from synth_site import program as installed

from firstflight.engines.emulate import Emulator
from firstflight.pages import LoadedPage, load_page

pytestmark = pytest.mark.usefixtures("emulator")

LARGE = random.Random(1).randbytes(3_000_000)
SCRIPT = b"""
fetch('/post', {method: 'POST', body: 'a=1'});
fetch('/nothing');
fetch('/missing');
fetch('/large').then(answer => answer.arrayBuffer());
new Worker('/worker.js');
"""


@pytest.fixture(scope="module", params=["http", "recorded"])
def scheme(request: pytest.FixtureRequest) -> str:
    """HTTP/1.1 in the clear, HTTP/2 over TLS."""
    return str(request.param)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, scheme: str) -> Archive:
    """A site with codings, chunks, redirects, a POST, a large body, a worker and a cross-site frame."""
    site = Archive(tmp_path_factory.mktemp("site"))
    html, script, style = ("text/html", "text/javascript", "text/css")
    document = (
        b"<!doctype html><link rel=stylesheet href=/s.css><script src=/s.js></script>"
        b"<img src=/old><iframe src=//frame.other/f></iframe>"
    )

    def add(
        path: str, body: bytes, mime: str, *fields: tuple[str, str], host: str = "a.test", **more: object
    ) -> None:
        kind = {"document": {"kind": "document"}}.get(path, {})
        site.add(
            f"https://{host}{path}", body, [("Content-Type", mime), *fields], mime=mime, **{**kind, **more}
        )

    add("/", document, html, ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("X-Latin", "caf\xe9"))
    # Chromium accepts Brotli over TLS only.
    compress, coding = (brotli.compress, "br") if scheme == "recorded" else (gzip.compress, "gzip")
    add("/s.css", compress(b"p { color: red }" * 100), style, ("Content-Encoding", coding))
    chunked = ("Transfer-Encoding", "chunked")
    add("/s.js", gzip.compress(SCRIPT + b" " * 9000), script, ("Content-Encoding", "gzip"), chunked)
    add("/old", b"moved", html, ("Location", "/new.svg"), status=302)
    add("/new.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")
    add("/f", b"<!doctype html><script>fetch('/framed')</script>", html, host="frame.other")
    add("/framed", b"framed", "text/plain", host="frame.other")
    add("/post", b'{"ok": 1}', "application/json", method="POST")
    add("/nothing", b"", "text/plain", status=204)
    add("/missing", b"not here", "text/plain", status=404)
    add("/large", LARGE, "application/octet-stream")
    add("/worker.js", b"fetch('/worked'); importScripts('/more.js')", script)
    add("/worked", b"worked", "text/plain")
    add("/more.js", b"1", script)
    return site


@pytest.fixture(scope="module")
def start(scheme: str) -> str:
    return "https://a.test/" if scheme == "recorded" else "http://a.test/"


@pytest.fixture(scope="module")
def recording(
    emulator: Emulator, tmp_path_factory: pytest.TempPathFactory, site: Archive, start: str, scheme: str
) -> Recording:
    """The recording of the site; without a laboratory, `emulator` ends the tests."""
    return record([site.page()], [start], tmp_path_factory.mktemp("recording") / "x.wacz", scheme)


def assert_all_told(loaded: LoadedPage) -> None:
    initiators = [resource.initiator for resource in loaded.page.resources]
    assert initiators[0] is None
    assert all(initiator and not initiator.inferred for initiator in initiators[1:])


def test_what_was_served_is_what_is_recorded(site: Archive, recording: Recording, start: str) -> None:
    assert (recording.ledger["exit_code"], recording.ledger["unmatched_requests"]) == (0, 0)
    [said] = recording.said["pages"]
    assert (said["requests"], said["lost"], said["problem"]) == (len(site.resources), [], None)
    served = {
        resource["url"].partition("://")[2]: (resource.get("status", 200), site.bodies[index].read_bytes())
        for index, resource in enumerate(site.resources)
    }
    found = {a.url.partition("://")[2]: (a.status, a.body) for a in recording.answers()}
    # A browser does not read the body of a redirect, so the recording has none.
    assert found == {**served, "a.test/old": (302, b"")}
    assert {a.url.partition(":")[0] for a in recording.answers()} == {start.partition(":")[0]}


def test_a_recording_of_a_recording_is_the_same(recording: Recording, start: str, scheme: str) -> None:
    second = again(recording, [start], scheme)
    assert second.ledger["unmatched_requests"] == 0
    assert second.gist() == recording.gist()
    for made in (recording, second):
        [loaded] = load_page(str(made.file))
        assert_all_told(loaded)
        assert next(r for r in loaded.page.resources if r.url.endswith("/old")).body_bytes == len(b"moved")


def test_a_page_of_the_paper_is_recorded_twice_alike(tmp_path: Path) -> None:
    pages = load_page("wikipedia")
    start = [pages[0].page.resources[0].url]
    first = record(pages, start, tmp_path / "x.wacz")
    second = again(first, start)
    assert len(first.gist()) == len(pages[0].page.resources)
    assert second.gist() == first.gist()
    [loaded] = load_page(str(second.file))
    assert_all_told(loaded)


def test_several_pages_are_in_one_archive_and_apart_without_one_that_cannot_be_had(tmp_path: Path) -> None:
    pages = [page for name in ("wikipedia", "wsj") for page in load_page(name)]
    first, second = (page.page.resources[0].url.replace("https:", "http:") for page in pages)
    recording = record(pages, [first, "http://nowhere.test/", second], tmp_path / "x.wacz")
    assert recording.ledger["exit_code"] == 1
    one, missing, other = recording.said["pages"]
    assert "ERR_NAME_NOT_RESOLVED" in missing["problem"]
    assert [(page["url"], page["problem"]) for page in (one, other)] == [(first, None), (second, None)]
    loaded = load_page(str(recording.file))
    assert [page.page.resources[0].url for page in loaded] == [first, second]
    assert [len(page.page.resources) for page in loaded] == [len(page.page.resources) for page in pages]


class Deaf:
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(60)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"

    def wait(self) -> socket.socket:
        """Waits until a client has connected."""
        return self._socket.accept()[0]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def deaf() -> Deaf:
    installed("chromium")
    return Deaf()


def test_ctrl_c_leaves_nothing_behind(program: Program, deaf: Deaf) -> None:
    process = program.start("record", deaf.url, "-o", "x.wacz")
    with deaf.wait():
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    deaf.close()
    assert process.returncode == 130
    assert "nothing was written" in err
    assert until(lambda: not program.processes())
    assert list(program.folder.iterdir()) == []
    assert program.files_elsewhere() == []


def test_a_killed_recorder_takes_its_browser_along(program: Program, deaf: Deaf) -> None:
    process = program.start("record", deaf.url, "-o", "x.wacz")
    with deaf.wait():
        process.kill()
        process.communicate(timeout=60)
        assert until(lambda: not program.processes())
    deaf.close()
    assert list(program.folder.iterdir()) == []


def test_an_unfinished_page_is_given_up_in_time(program: Program, deaf: Deaf) -> None:
    ended = program("record", deaf.url, "-o", "x.wacz", "--timeout", "1", "--retries", "0")
    deaf.close()
    assert ended.code == 1
    assert deaf.url in ended.err
    assert list(program.folder.iterdir()) == []
