"""Real Chromium in the laboratory: its requests, their times, the proof of each load, and failed loads."""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from program import Program, until
from small_pages import assert_ok, document, fan, load, page
from synth_site import program as installed

from firstflight.analysis.records import known
from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import LabJob, Record
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage, open_pages, under
from firstflight.results import Journal
from firstflight.results.records import plt_ms
from firstflight.results.tables import load_row

RTT_MS = 100.0
PAPER_PATH = {"down_bps": 4_000_000, "up_bps": 256_000}
MODES = ("tcp", "tfo")


@pytest.fixture(scope="module")
def browser(emulator: Emulator) -> Emulator:
    """The engine with the system's browser; without a laboratory, `emulator` ends the tests."""
    return Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})


@pytest.fixture(scope="module")
def wikipedia(browser: Emulator) -> dict[str, Record]:
    """The load of the paper's Wikipedia page in each mode."""
    [recorded] = open_pages(["wikipedia"])
    return {mode: load(browser, recorded, mode, RTT_MS, client="chromium", **PAPER_PATH) for mode in MODES}


@pytest.mark.timing
@pytest.mark.parametrize("mode", MODES)
def test_the_page_of_the_paper_is_asked_for_as_recorded(mode: str, wikipedia: dict[str, Record]) -> None:
    record = wikipedia[mode]
    assert_ok(record)
    [recorded] = open_pages(["wikipedia"])
    expected = sorted(resource.url for resource in recorded.page.resources)
    assert sorted(row["url"] for row in record["requests"]) == expected


def test_a_page_with_answers_that_a_cold_cache_cannot_use_asks_for_the_same_in_every_load(
    browser: Emulator,
) -> None:
    [recorded] = (under("http", page) for page in open_pages(["nytimes"]))
    expected = Counter(resource.url for resource in recorded.page.resources)
    assert 304 in {resource.status for resource in recorded.page.resources}
    for mode in MODES:
        record = load(browser, recorded, mode, 20.0, client="chromium")
        asked = Counter(row["url"] for row in record["requests"])
        assert (asked - expected, expected - asked) == (Counter(), Counter()), record["load"]


@pytest.mark.timing
def test_every_syn_carries_a_request_with_tfo_and_none_without(wikipedia: dict[str, Record]) -> None:
    openings = {
        mode: {
            (row["cookie"], row["syn_payload_bytes"] > 0, row["syn_data_acked"])
            for row in wikipedia[mode]["connections"]
        }
        for mode in MODES
    }
    assert openings == {"tcp": {("none", False, False)}, "tfo": {("sent", True, True)}}


@pytest.mark.timing
def test_the_document_comes_a_round_trip_sooner_with_tfo(wikipedia: dict[str, Record]) -> None:
    first_byte_ms = {mode: known(wikipedia[mode]["load"]["first_byte_ms"]) for mode in MODES}
    assert first_byte_ms["tcp"] >= 2 * RTT_MS
    assert RTT_MS <= first_byte_ms["tfo"] <= first_byte_ms["tcp"] - RTT_MS / 2
    assert plt_ms(wikipedia["tfo"]) < plt_ms(wikipedia["tcp"])


@pytest.mark.timing
@pytest.mark.parametrize("mode", MODES)
def test_requests_have_their_times_in_order_and_their_connection(
    mode: str, wikipedia: dict[str, Record]
) -> None:
    record = wikipedia[mode]
    opened_ms = {row["connection"]: known(row["opened_ms"]) for row in record["connections"]}
    for row in record["requests"]:
        queued_ms, sent_ms, first_byte_ms, end_ms = (
            known(row[moment]) for moment in ("queued_ms", "sent_ms", "first_byte_ms", "end_ms")
        )
        assert 0 <= queued_ms <= sent_ms <= first_byte_ms <= end_ms, row
        # With TFO the browser sends the request and its SYN crosses the path at the same moment. Half a round
        # trip is generous room for the difference.
        assert opened_ms[int(known(row["connection"]))] <= sent_ms + RTT_MS / 2
    assert min(opened_ms.values()) >= 0


@pytest.mark.timing
def test_the_browsers_own_marks_are_kept(wikipedia: dict[str, Record]) -> None:
    marks: dict[str, Any] = dict(wikipedia["tcp"]["browser"])
    first_byte_ms, load_ms = known(wikipedia["tcp"]["load"]["first_byte_ms"]), plt_ms(wikipedia["tcp"])
    assert marks["version"]
    assert first_byte_ms <= marks["first_paint_ms"] <= marks["lcp_ms"] <= load_ms
    assert marks["dom_content_loaded_ms"] <= load_ms
    row = load_row(wikipedia["tcp"])
    assert {
        name: row[name] for name in ("first_paint_ms", "first_contentful_paint_ms", "lcp_ms")
    }.items() <= marks.items()


@pytest.mark.timing
def test_a_small_page_takes_its_round_trips(browser: Emulator) -> None:
    """The path is so long that a busy machine adds less than one round trip."""
    rtt_ms = 3 * RTT_MS
    loads = {mode: load(browser, fan(3), mode, rtt_ms, client="chromium") for mode in MODES}
    for record in loads.values():
        assert_ok(record)
    assert plt_ms(loads["tcp"]) >= 4 * rtt_ms
    assert 2 * rtt_ms <= plt_ms(loads["tfo"]) <= plt_ms(loads["tcp"]) - rtt_ms


def test_what_the_page_was_not_recorded_with_fails_at_once_and_is_counted(
    browser: Emulator, tmp_path: Path
) -> None:
    body = (
        b"<!doctype html><script src=http://stranger.test/a.js></script>"
        b"<script src=http://www.example.com/b.js></script><img src=/unknown.png>"
    )
    file = tmp_path / "document.html"
    file.write_bytes(body)
    recorded = LoadedPage(page("strange", document(body_bytes=len(body))).page, {0: file})
    record = load(browser, recorded, "tcp", 20.0, client="chromium")
    assert record["load"]["status"] == "ok"
    assert record["load"]["unmatched_requests"] == 3
    errors = {row["url"]: row["error"] for row in record["requests"] if row["index"] > 0}
    unresolved = "net::ERR_NAME_NOT_RESOLVED"
    assert errors["http://stranger.test/a.js"] == errors["http://www.example.com/b.js"] == unresolved
    assert errors["http://o0.test/unknown.png"]
    assert not any("favicon" in url for url in errors)


class WithTls(Chromium):
    """Loads https pages as recorded, not in the clear."""

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        return super().equip({**job, "scheme": "recorded"}, planned, page)


@pytest.mark.parametrize("mode", MODES)
def test_a_page_with_tls_is_trusted_and_its_client_hello_rides_in_the_syn(mode: str) -> None:
    secure = page(
        "secure",
        document(url="https://o0.test/"),
        document(
            url="https://www.amazon.com/1.png",
            kind="image",
            mime="image/png",
            initiator={"resource": 0, "via": "parser", "at_byte": 100},
        ),
    )
    engine = Emulator(clients={"chromium": WithTls(find_browser(installed("chromium")))})
    record = load(engine, secure, mode, 20.0, client="chromium")
    assert_ok(record)
    assert {row["url"] for row in record["requests"]} == {"https://o0.test/", "https://www.amazon.com/1.png"}
    carried = {row["syn_payload_bytes"] > 0 for row in record["connections"]}
    assert carried == {mode == "tfo"}


def test_a_page_recorded_with_tls_is_loaded_as_recorded_or_in_the_clear_where_asked(
    browser: Emulator,
) -> None:
    recorded = page("recorded", document(url="https://www.nytimes.com/"))
    for scheme, loaded in (("https", recorded), ("http", under("http", recorded))):
        record = load(browser, loaded, "tcp", 20.0, client="chromium")
        assert_ok(record)
        assert [row["url"] for row in record["requests"]] == [f"{scheme}://www.nytimes.com/"]


@pytest.mark.parametrize(
    ("mode", "protocol", "resumed", "early_data"),
    [
        ("tls12", "tcp", False, "none"),
        ("resumption", "tcp", True, "none"),
        ("early-data", "tcp", True, "accepted"),
        ("tfo+early-data", "tcp", True, "accepted"),
        ("quic", "udp", False, "none"),
        ("quic-0rtt", "udp", True, "accepted"),
    ],
)
def test_a_page_comes_in_every_mode_of_tls_and_the_first_request_early_where_there_are_tickets(
    mode: str, protocol: str, resumed: bool, early_data: str
) -> None:
    image = document(
        url="https://o1.test/1.png",
        kind="image",
        mime="image/png",
        initiator={"resource": 0, "via": "parser", "at_byte": 100},
    )
    engine = Emulator(clients={"chromium": WithTls(find_browser(installed("chromium")))})
    secure = page("secure", document(url="https://o0.test/"), image)
    record = load(engine, secure, mode, 20.0, client="chromium")
    assert_ok(record)
    assert record["load"]["unmatched_requests"] == 0
    rows = record["connections"]
    seen = {(row["origin"], row["protocol"], row["resumed"], row["early_data"]) for row in rows}
    assert seen == {(f"https://o{number}.test", protocol, resumed, early_data) for number in range(2)}


def run(program: Program, *flags: str, page: LoadedPage) -> tuple[list[str], Path]:
    (program.folder / "page.json").write_text(page.page.to_json())
    # A rate so low that firstflight skips its calibration.
    path = ("--rtt", "20", "--down", "90kbit", "--up", "90kbit")
    plan = ("--client", "chromium", "--mode", "tcp", "--repeats", "1", "--out", "out")
    return ["run", "page.json", *path, *plan, *flags], program.folder / "out"


def test_a_har_and_a_picture_are_kept_of_each_load_if_asked_for(program: Program) -> None:
    installed("chromium")
    arguments, folder = run(program, "--har", "--screenshots", page=fan(2))
    assert program(*arguments).code == 0
    [record] = Journal(folder / "journal.jsonl").records()
    name = record["load"]["load_id"]
    har = json.loads((folder / "har" / f"{name}.har").read_text())["log"]
    assert har["version"] == "1.2"
    assert sorted(e["request"]["url"] for e in har["entries"]) == sorted(r["url"] for r in record["requests"])
    assert (folder / "screenshots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not [file for file in program.files_elsewhere() if "chromium" in str(file) or "play" in str(file)]


def test_a_load_whose_browser_is_killed_is_made_once_more(program: Program) -> None:
    installed("chromium")
    arguments, folder = run(program, page=page("slow", document(server_ms=5000.0)))
    process = program.start(*arguments)
    try:
        assert until(lambda: browsers_at_work(program))
        for pid in browsers_at_work(program):
            os.kill(pid, signal.SIGKILL)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    # The load that broke is made once more. After that, it may be made again because its relay was late.
    assert [line.get("broken", False) for line in lines] == [True, *[False] * (len(lines) - 1)]
    assert (lines[0]["load"]["status"], lines[-1]["load"]["status"]) == ("failed", "ok")
    assert lines[0]["load"]["error"] in said and "loads made again: 1, since the client broke" in said
    assert process.returncode == 0


def browsers_at_work(program: Program) -> list[int]:
    """The main processes of those browsers that have a connection to a server of their laboratory."""
    return [
        process.pid
        for process in program.processes()
        if process.name == "chromium"
        and b"--type=" not in read(process.folder / "cmdline")
        and any(
            # The address is in 198.19.0.0/16, in the byte order of a little-endian machine, and the state is
            # ESTABLISHED (proc_net_tcp(5)).
            line.split()[2].split(b":")[0].endswith(b"13C6") and line.split()[3] == b"01"
            for line in read(process.folder / "net" / "tcp").splitlines()[1:]
        )
    ]


def read(file: Path) -> bytes:
    """What a file of /proc says; nothing once its process has ended."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_a_browser_that_is_not_there_is_refused_before_anything_starts(program: Program) -> None:
    arguments, folder = run(program, "--browser", "/no/such/browser", page=fan(1))
    ended = program(*arguments)
    assert ended.code == 2
    assert "/no/such/browser is not a program" in ended.err and "hint:" in ended.err
    assert not folder.exists()


def test_a_program_that_is_no_browser_fails_the_load_and_is_reported(program: Program) -> None:
    arguments, folder = run(program, "--browser", "/bin/false", page=fan(1))
    ended = program(*arguments)
    assert ended.code == 1
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert [(line["load"]["status"], line["attempt"]) for line in lines] == [("failed", 1), ("failed", 2)]
    assert "loads made again: 1, since the client broke" in ended.err
