"""Which pages load over TLS by default, the warning when they load without TLS, and URLs given as pages."""

import json
import tomllib
from pathlib import Path

import pytest

from firstflight.api import load_page, path, simulate
from firstflight.cli import main
from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.plan_file import PlanFile, resolve
from firstflight.model.plan import PAPER_PAGES, Plan

PLANS = sorted((Path(__file__).parents[2] / "plans").glob("*.toml"))
IN_THE_CLEAR = ("paper", "course", "purdue")
FAST = ["--engine", "simulate", "--rtt", "20", "--repeats", "1", "--quiet"]


def har(folder: Path, name: str, scheme: str = "https", version: str = "") -> str:
    """Writes a HAR of one document, recorded over this scheme and version of HTTP."""
    body = "<title>x</title>"
    entry = {
        "startedDateTime": "2026-01-02T03:04:05.000Z",
        "time": 20,
        "request": {"method": "GET", "url": f"{scheme}://{name}.test/", "headers": []},
        "response": {
            "status": 200,
            "httpVersion": version,
            "headers": [{"name": "Content-Type", "value": "text/html"}],
            "content": {"size": len(body), "mimeType": "text/html", "text": body},
        },
        "timings": {"send": 1, "wait": 10, "receive": 1},
    }
    file = folder / f"{name}.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    return str(file)


def loads(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_a_page_recorded_over_https_is_loaded_over_https_unless_asked_otherwise(tmp_path: Path) -> None:
    page = load_page(har(tmp_path, "shop"))
    default, clear = (simulate(page, path(100), "tcp", **keys) for keys in ({}, {"scheme": "http"}))
    assert default.requests["url"].to_list() == ["https://shop.test/"]
    assert clear.requests["url"].to_list() == ["http://shop.test/"]
    assert default.plt_ms > clear.plt_ms + 95, "a TLS handshake more"
    assert (default.row["scheme"], clear.row["scheme"]) == ("recorded", "http")


def test_a_page_recorded_over_http_stays_in_the_clear(tmp_path: Path) -> None:
    load = simulate(load_page(har(tmp_path, "old", "http")), path(100), "tcp")
    assert load.requests["url"].to_list() == ["http://old.test/"]


@pytest.mark.parametrize("name", PAPER_PAGES)
def test_the_embedded_pages_of_2013_were_in_the_clear_and_stay_so(name: str) -> None:
    page = load_page(name)
    assert all(origin.startswith("http:") for origin in page.page.origins)
    default, clear = simulate(page, path(20)), simulate(page, path(20), scheme="http")
    assert default.plt_ms == clear.plt_ms


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_plan_that_comes_with_us_states_its_scheme(file: Path) -> None:
    stated = tomllib.loads(file.read_text())["scheme"]
    assert stated == "http" or not file.stem.startswith(IN_THE_CLEAR)


def test_the_plan_of_the_paper_is_as_it_was_but_for_its_name() -> None:
    assert resolve({}).scheme == "recorded" == Plan().scheme


@pytest.mark.parametrize(("scheme", "warnings"), [("http", 1), ("recorded", 0), ("", 0)])
def test_https_in_the_clear_is_one_warning_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheme: str, warnings: int
) -> None:
    pages = [har(tmp_path, name) for name in ("one", "two")]
    asked = ["--scheme", scheme] if scheme else []
    assert main(["run", *pages, *FAST, *asked, "--out", str(tmp_path / "out")]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "in the clear" in line]
    assert len(said) == warnings
    if said:
        assert said[0].startswith("warning: recorded over https and loaded in the clear")
        assert "one, two" in said[0] or "one.test, two.test" in said[0]
    assert len(loads(tmp_path / "out")) == 4


def test_pages_of_a_pattern_in_the_clear_are_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two", "three", "four"):
        har(tmp_path, name)
    run = ["run", str(tmp_path / "*.har"), *FAST, "--scheme", "http", "--out", str(tmp_path / "out")]
    assert main(run) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "in the clear" in line]
    assert len(said) == 1
    assert "and 1 more" in said[0]


def test_http_on_request_is_no_warning_where_nothing_was_https(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "wikipedia", *FAST, "--scheme", "http", "--out", str(tmp_path / "out")]) == 0
    assert "in the clear" not in capsys.readouterr().err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [["run"], ["pages"], ["profile", "-o", "x.json"]], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("https://www.example.org/", "firstflight record https://www.example.org/ -o www.example.org.wacz"),
        (
            "https://example.org/search?q=a&p=[1]",
            "firstflight record 'https://example.org/search?q=a&p=[1]' -o example.org.wacz",
        ),
        (
            "HTTP://example.org:8080/#top",
            "firstflight record 'HTTP://example.org:8080/#top' -o example.org.wacz",
        ),
    ],
)
def test_a_url_in_place_of_a_page_is_answered_with_the_command_to_give_first(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str], url: str, hint: str
) -> None:
    assert main([*command, url]) == 2
    shown = capsys.readouterr().err
    assert f"hint: {hint}, then give" in shown
    assert "record it first" in shown
    assert list(folder.iterdir()) == []


def test_what_is_no_possible_url_is_not_said_to_be_recordable() -> None:
    with pytest.raises(PageInputError, match="is not an http or https URL"):
        load_page("https://")


UNSHARED = "warning: recorded over HTTP/2 or HTTP/3 and loaded over HTTP/1.1: shop.test"


@pytest.mark.parametrize(
    ("version", "more", "warned"),
    [
        ("h2", ["--http", "1.1"], True),
        ("h3", ["--http", "1.1"], True),
        ("h2", ["--no-keep-alive"], True),
        ("HTTP/1.1", ["--http", "1.1"], False),
        ("", ["--http", "1.1"], False),
        ("h2", [], False),
        ("h2", ["--scheme", "http"], False),
        ("h3", ["--mode", "quic,quic-0rtt"], False),
    ],
)
def test_a_page_of_http_2_that_is_loaded_over_http_1_1_is_warned_of_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, more: list[str], *, warned: bool
) -> None:
    assert (
        main(["run", har(tmp_path, "shop", version=version), "--out", str(tmp_path / "r"), *FAST, *more]) == 0
    )
    assert capsys.readouterr().err.count(UNSHARED) == warned


UNTOLD = "warning: loaded over HTTP/1.1, since the recording does not say what its hosts spoke: shop.test"


@pytest.mark.parametrize(
    ("scheme", "version", "more", "warned"),
    [
        ("https", "", [], True),
        ("https", "", ["--http", "recorded"], True),
        ("https", "", ["--http", "2"], False),
        ("https", "h2", [], False),
        ("http", "", [], False),
    ],
)
def test_where_a_recording_lacks_the_version_of_http_it_is_1_1_and_a_warning_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    scheme: str,
    version: str,
    more: list[str],
    *,
    warned: bool,
) -> None:
    page = har(tmp_path, "shop", scheme, version)
    assert main(["run", page, "--out", str(tmp_path / "r"), *FAST, *more]) == 0
    assert capsys.readouterr().err.count(UNTOLD) == warned


def test_archives_alone_are_loaded_over_cable_where_nothing_is_said_of_the_link(tmp_path: Path) -> None:
    page, profile = har(tmp_path, "shop"), tmp_path / "p.json"
    profile.write_text(load_page("wikipedia").page.to_json())
    cable, paper = resolve({"network": "cable"}).paths(), resolve({}).paths()

    def paths(*pages: str, **more: object) -> object:
        return resolve({"pages": list(pages), **more}).paths()

    assert paths(page) == paths(page, har(tmp_path, "other")) == paths(str(tmp_path / "*.har")) == cable
    assert [found.loss for found in resolve({"pages": [page], "loss": 0.01}).paths()] == [0.01]
    assert (
        paths("wikipedia") == paths(str(profile)) == paths(page, "wikipedia") == paths("no-such.har") == paper
    )
    assert paths(page, rtt="20,100,200") == paper
    assert paths(page, network="paper") == paths(page, path="paper") == paper
    stored = PlanFile(values=resolve({"pages": [page], "rtt": "7"}).to_keys())
    assert resolve({}, stored).rtt == (7,)


def test_archives_alone_speak_their_versions_of_http_where_nothing_is_said_of_it(tmp_path: Path) -> None:
    page = har(tmp_path, "shop", version="h2")

    def http(*pages: str, **more: object) -> str:
        return resolve({"pages": list(pages), **more}).http

    assert (http(page), http("wikipedia"), http(page, "wikipedia")) == ("recorded", "1.1", "1.1")
    assert (http(page, http="1.1"), http(page, http="2")) == ("1.1", "2")
    assert [
        http(page, **one) for one in ({"client": "chromium"}, {"scheme": "http"}, {"keep_alive": False})
    ] == ["1.1", "1.1", "1.1"]
    stored = PlanFile(values=resolve({"pages": [page], "http": "1.1"}).to_keys())
    assert resolve({}, stored).http == "1.1"
    with pytest.raises(UsageError, match="keep_alive"):
        resolve({"pages": [page], "keep_alive": "perhaps"})


def test_the_caption_says_which_network_was_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", har(tmp_path, "shop"), "--engine", "simulate", "--repeats", "1", "--quiet"]
    assert main([*run, "--out", str(tmp_path / "out")]) == 0
    assert "network cable" in capsys.readouterr().out
