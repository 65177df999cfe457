"""Malicious input on the command line: one clear error within little memory, or a load that ends."""

import gzip
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program import Ended, Program
from small_pages import load
from synth_site import program as installed

from firstflight.analysis.records import known
from firstflight.cli import main
from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.pages import LoadedPage, load_page

MOST_KB = 600_000
"""The most memory (peak, kB) that a call may use to refuse its input."""
URL = "http://a.example/"
MEASURED = """
import pathlib, resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
pathlib.Path("peak").write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def warc(body: bytes = b"<p>hello", lie: int = 0) -> bytes:
    """A WARC whose record claims to be `lie` bytes longer than it is."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    head = [
        "WARC/1.0",
        "WARC-Type: response",
        f"WARC-Target-URI: {URL}",
        f"Content-Length: {len(block) + lie}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + block + b"\r\n\r\n"


def write_wacz(path: Path, name: str = "archive/x.warc", data: bytes = b"") -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)


def entry(url: str, **response: object) -> dict[str, Any]:
    """One entry of a HAR."""
    answer = {
        "status": 200,
        "headers": [],
        "content": {"size": 8, "mimeType": "text/html", "text": "<p>hello"},
    }
    return {"request": {"method": "GET", "url": url}, "response": {**answer, "bodySize": 8, **response}}


def har(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"log": {"entries": [*entries]}}).encode()


def moved(url: str, to: str) -> dict[str, Any]:
    """A redirect to another URL."""
    empty = {"size": 0, "mimeType": ""}
    headers = [{"name": "Location", "value": to}]
    return entry(url, status=302, redirectURL=to, headers=headers, content=empty, bodySize=0)


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def whole_wacz(folder: Path) -> bytes:
    write_wacz(folder / "whole.wacz", data=warc())
    return (folder / "whole.wacz").read_bytes()


def folder_with_links(folder: Path) -> None:
    (folder / "m" / "a.example").mkdir(parents=True)
    (folder / "secret.html").write_text("<p>secret")
    (folder / "m" / "a.example" / "index.html").symlink_to(folder / "secret.html")
    (folder / "m" / "b.example").symlink_to(folder)


Make = Callable[[Path], object]
REFUSED: dict[str, tuple[str, Make, str]] = {
    "a HAR cut off": ("x.har", lambda f: (f / "x.har").write_bytes(cut(har(entry(URL)))), "not JSON"),
    "a gzipped HAR cut off": (
        "x.har.gz",
        lambda f: (f / "x.har.gz").write_bytes(cut(gzip.compress(har(entry(URL))))),
        "not whole gzip",
    ),
    "a WARC cut off": ("x.warc", lambda f: (f / "x.warc").write_bytes(cut(warc())), "x.warc: record 1"),
    "a gzipped WARC cut off": (
        "x.warc.gz",
        lambda f: (f / "x.warc.gz").write_bytes(cut(gzip.compress(warc()))),
        "does not end",
    ),
    "a WACZ cut off": ("x.wacz", lambda f: (f / "x.wacz").write_bytes(cut(whole_wacz(f))), "not a zip file"),
    "a record that says more": ("x.warc", lambda f: (f / "x.warc").write_bytes(warc(lie=99)), "missing"),
    "a record that says less": (
        "x.warc",
        lambda f: (f / "x.warc").write_bytes(warc(lie=-3)),
        "Content-Length",
    ),
    "a HAR that swells": (
        "x.har.gz",
        lambda f: (f / "x.har.gz").write_bytes(gzip.compress(bytes(1 << 20)) * 1_000),
        "more than 128 MiB",
    ),
    "a name that leads out": (
        "x.wacz",
        lambda f: write_wacz(f / "x.wacz", "archive/../../x.warc"),
        "leaves the archive",
    ),
    "an absolute name": ("x.wacz", lambda f: write_wacz(f / "x.wacz", "/etc/x.warc"), "leaves the archive"),
    "links that lead out": (f"m#{URL}", folder_with_links, "no file for the start page"),
    "no UTF-8": ("x.har", lambda f: (f / "x.har").write_bytes(b'{"log": "\xff"}'), "byte 9 is not UTF-8"),
    "an empty file": ("x.wacz", lambda f: (f / "x.wacz").write_bytes(b""), "not a zip file"),
    "a directory": ("x.har", lambda f: (f / "x.har").mkdir(), "x.har"),
    "a pipe": ("x.warc", lambda f: os.mkfifo(f / "x.warc"), "neither a file nor a directory"),
    "a device": ("/dev/zero", lambda f: None, "neither a file nor a directory"),
    "a HAR of any depth": ("x.har", lambda f: (f / "x.har").write_bytes(b'{"log":' * 200_000), "not JSON"),
    "a profile of any depth": ("x.json", lambda f: (f / "x.json").write_bytes(b"[" * 10_000_000), "x.json"),
    "bodies that are only claimed": (
        "x.har",
        lambda f: (f / "x.har").write_bytes(har(entry(URL, content={"size": 1 << 31}, bodySize=1 << 31))),
        "MiB of bodies and headers are not in it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_page_is_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, make, _ = REFUSED[case]
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    code = main(["pages", spec])
    said = capsys.readouterr()
    assert_refused(Ended(code, said.out, said.err), case)
    assert [file for file in home.rglob("*") if file.is_file() and file.stat().st_size] == []


@pytest.mark.parametrize("case", ["a pipe", "a HAR that swells"])
def test_a_run_refuses_it_before_it_starts_and_in_little_memory(case: str, program: Program) -> None:
    spec, make, _ = REFUSED[case]
    make(program.folder)
    assert_refused(program("run", "--out", "out", spec, wrap=measured()), case)
    assert not (program.folder / "out").exists()
    assert [file for file in program.files_elsewhere() if file.is_file() and file.stat().st_size] == []
    assert int((program.folder / "peak").read_text()) < MOST_KB


def assert_refused(ended: Ended, case: str) -> None:
    """Exit 2, one error that says why, and one hint."""
    assert ended.code == 2, ended
    error, hint = ended.err.strip().splitlines()
    assert error.startswith("error: ")
    assert REFUSED[case][2] in error
    assert hint.startswith("hint: ")
    assert ended.out == ""


def measured() -> tuple[str, ...]:
    """A wrap that writes the peak memory of the call, kB, to the file `peak`."""
    return (sys.executable, "-c", MEASURED)


def test_a_plan_without_end_is_refused(program: Program) -> None:
    ended = program("run", "--plan", "/dev/zero", "--out", "out", wrap=measured())
    assert ended.code == 2, ended
    assert "too long" in ended.err
    assert int((program.folder / "peak").read_text()) < MOST_KB


def test_what_an_archive_is_called_inside_moves_no_cursor(program: Program) -> None:
    write_wacz(program.folder / "x.wacz", "archive/\x1b[2J.warc", b"x")
    ended = program("pages", "x.wacz")
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "archive/\\x1b[2J.warc" in ended.err


def profile(url: str) -> str:
    """A profile of a document at `url`."""
    document = {"kind": "document", "mime": "text/html", "request_bytes": 300, "header_bytes": 200}
    resources = [{**document, "url": url, "body_bytes": 100}]
    return json.dumps({"format": "firstflight-profile/1", "name": "x", "resources": resources})


def test_a_profile_makes_curl_touch_no_local_file(program: Program) -> None:
    installed("curl")
    secret, stolen = program.folder / "secret", program.folder / "stolen"
    secret.write_text("secret")
    lines = ("output = /dev/null", f"url = file://{secret}", f"output = {stolen}", "user-agent = x")
    url = "\n".join([URL, *lines])
    (program.folder / "x.json").write_text(profile(url))
    flags = ("--client", "curl", "--rtt", "10", "--mode", "tcp", "--repeats", "1", "--out", "out")
    ended = program("run", "x.json", *flags)
    assert not stolen.exists(), "curl copied a local file"
    assert ended.code == 2, ended
    assert "resources[0].url" in ended.err


def circle(folder: Path) -> LoadedPage:
    """A page whose frame is redirected in a circle."""
    frame = "<iframe src=/1></iframe>"
    document = entry(
        URL, content={"size": len(frame), "mimeType": "text/html", "text": frame}, bodySize=len(frame)
    )
    file = folder / "circle.har"
    file.write_bytes(har(document, moved(f"{URL}1", f"{URL}2"), moved(f"{URL}2", f"{URL}1")))
    [page] = load_page(str(file))
    return page


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("client", ["loader", "chromium"])
def test_redirects_in_a_circle_end(client: str, tmp_path: Path) -> None:
    clients = {"chromium": Chromium(find_browser(installed("chromium")))} if client == "chromium" else {}
    record = load(Emulator(clients=clients), circle(tmp_path), "tcp", 10.0, client=client)
    asked = [request["url"] for request in record["requests"]]
    assert asked[0] == URL
    assert set(asked) == {URL, f"{URL}1", f"{URL}2"}
    assert record["load"]["unmatched_requests"] == 0
    assert known(record["load"]["requests"]) < 100, "a browser gives up after twenty"
