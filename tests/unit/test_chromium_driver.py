"""How firstflight finds and starts Chromium, and turns its events into requests."""

import errno
import json
import subprocess
import sys
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.engines.clients import versions
from firstflight.engines.clients.chromium.browser import check_hosts, find_browser, flags, write_profile
from firstflight.engines.clients.chromium.network import Fetches
from firstflight.engines.clients.driver import wait_until_idle
from firstflight.engines.clients.job import Drive, DriveJob, Fetch
from firstflight.errors import UsageError

JOB = DriveJob(
    url="http://a.test/",
    browser="/usr/bin/chromium",
    preload="lib.so",
    hosts=["a.test", "b.test"],
    clear_hosts=["a.test"],
)


def asked(name: str, url: str, at_s: float, **params: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"requestId": name, "timestamp": at_s, "request": {"url": url, "method": "GET"}, **params}


def response(url: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"url": url, "status": 200, "mimeType": "text/html", "encodedDataLength": 150, **fields}


def finished(*events: tuple[str, dict[str, Any]], started_s: float = 100.0) -> list[Fetch]:
    fetches = Fetches()
    for event, params in events:
        fetches.note(f"Network.{event}", params)
    return fetches.finished(started_s)


def test_times_are_ms_after_navigation_start_and_sizes_are_those_of_the_wire() -> None:
    timing = {"requestTime": 100.01, "connectStart": 1, "connectEnd": 2, "sendEnd": 3, "receiveHeadersEnd": 9}
    [fetch] = finished(
        ("requestWillBeSent", asked("1", "http://a.test/", 100.005, type="Document")),
        ("responseReceived", {"requestId": "1", "response": response("http://a.test/", timing=timing)}),
        ("loadingFinished", {"requestId": "1", "timestamp": 100.05, "encodedDataLength": 650}),
    )
    assert (fetch.queued_ms, fetch.connect_start_ms, fetch.connect_end_ms) == (5, 11, 12)
    assert (fetch.sent_ms, fetch.first_byte_ms, fetch.end_ms) == (13, 19, 50)
    assert (fetch.wire_bytes, fetch.body_bytes, fetch.status) == (650, 500, 200)


def test_a_redirect_makes_a_request_of_each_of_its_ends() -> None:
    redirect = response("http://a.test/old", status=302)
    first, second = finished(
        ("requestWillBeSent", asked("1", "http://a.test/old", 100.0)),
        ("requestWillBeSent", asked("1", "http://a.test/new", 100.2, redirectResponse=redirect)),
        ("loadingFailed", {"requestId": "1", "timestamp": 100.3, "errorText": "net::ERR_FAILED"}),
    )
    assert (first.url, first.status, first.end_ms, first.error) == ("http://a.test/old", 302, 200, None)
    assert (second.url, second.initiator, second.end_ms) == ("http://a.test/new", "http://a.test/old", None)
    assert second.error == "net::ERR_FAILED"


def test_a_script_is_named_as_initiator_by_the_top_of_its_stack() -> None:
    stack = {"callFrames": [{"url": ""}, {"url": "http://a.test/b.js"}, {"url": "http://a.test/"}]}
    [fetch] = finished(
        (
            "requestWillBeSent",
            asked("1", "http://a.test/c.png", 100, initiator={"type": "script", "stack": stack}),
        )
    )
    assert fetch.initiator == "http://a.test/b.js"


def test_what_does_not_use_the_network_is_no_request_and_unknown_ids_are_ignored() -> None:
    assert not finished(
        ("requestWillBeSent", asked("1", "data:image/png;base64,AA", 100)),
        ("loadingFinished", {"requestId": "2", "timestamp": 101, "encodedDataLength": 0}),
    )


def test_only_recorded_hosts_resolve() -> None:
    [rules] = [flag for flag in flags(JOB) if flag.startswith("--host-resolver-rules=")]
    assert rules.endswith("=MAP * ~NOTFOUND, EXCLUDE a.test, EXCLUDE b.test")


@pytest.mark.parametrize("host", ["*", "a.test, MAP * 192.0.2.1", "a.test b.test", "", "a.test\n"])
def test_no_host_makes_another_resolver_rule(host: str) -> None:
    with pytest.raises(ValueError, match="no host that a page can name"):
        flags(replace(JOB, hosts=[host]))


def test_the_laboratorys_authority_is_trusted_by_its_key(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("SPKI-SHA256: abc+/=\n-----BEGIN CERTIFICATE-----\n")
    secure = replace(JOB, authority=str(authority))
    assert "--ignore-certificate-errors-spki-list=abc+/=" in flags(secure)
    assert not any("certificate" in flag for flag in flags(JOB))


def test_the_profile_lets_recorded_http_hosts_be_asked_in_the_clear(tmp_path: Path) -> None:
    write_profile(tmp_path, JOB)
    preferences = json.loads((tmp_path / "Default" / "Preferences").read_text())
    assert preferences["hsts"]["policy"]["upgrade_bypass_list"] == ["a.test"]


def test_job_and_answer_survive_json() -> None:
    drive = Drive(plt_ms=12.5, fetches=[Fetch("http://a.test/", "GET", "Document", 1.0)])
    assert Drive.from_json(json.loads(json.dumps(drive.to_json()))) == drive
    assert DriveJob(**json.loads(json.dumps(JOB.to_json()))) == JOB


def test_without_a_browser_the_error_names_the_package_and_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError) as refused:
        find_browser()
    assert "package chromium" in refused.value.hint and "--browser" in refused.value.hint


def test_a_named_browser_must_be_a_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for named in (tmp_path / "text", tmp_path / "nothing", tmp_path):
        with pytest.raises(UsageError, match="is not a program"):
            find_browser(str(named))
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_browser(str(program)) == program


def test_without_the_post_quantum_share_the_browser_stops_at_tls_1_2() -> None:
    assert "--ssl-version-max=tls1.2" in flags(replace(JOB, post_quantum=False))
    assert not [flag for flag in flags(JOB) if flag.startswith("--ssl-version")]


def test_the_script_of_a_worker_that_has_ended_is_not_waited_for() -> None:
    fetches = Fetches()
    fetches.note("Network.requestWillBeSent", asked("W", "http://a.test/worker.js", 100.0))
    assert fetches.under_way == {"W"}
    fetches.note("Target.detachedFromTarget", {"sessionId": "S", "targetId": "W"})
    assert not fetches.under_way
    assert fetches.ended == {"http://a.test/worker.js"}


def test_a_worker_whose_scripts_end_is_not_reported_is_told_from_other_requests() -> None:
    fetches = Fetches()
    assert fetches.awaits_workers_alone
    worker = {**asked("517A5B1F", "http://a.test/worker.js", 100.0), "type": "Script"}
    fetches.note("Network.requestWillBeSent", worker)
    assert fetches.awaits_workers_alone
    script = {**asked("131.7", "http://a.test/s.js", 100.0), "type": "Script"}
    fetches.note("Network.requestWillBeSent", script)
    assert not fetches.awaits_workers_alone
    fetches.note("Network.loadingFailed", {"requestId": "131.7", "timestamp": 101.0, "errorText": "gone"})
    assert fetches.awaits_workers_alone
    fetches.note(
        "Network.requestWillBeSent", {**asked("718FE347", "http://b.test/", 100.0), "type": "Document"}
    )
    assert not fetches.awaits_workers_alone


def test_an_answer_with_unknown_keys_is_read_and_one_of_another_type_is_refused() -> None:
    answer = {**Drive(plt_ms=1.0).to_json(), "surprise": 1}
    assert Drive.from_json(answer) == Drive(plt_ms=1.0)
    damaged: list[dict[str, object]] = [
        {**answer, "fetches": [1]},
        {**answer, "plt_ms": "fast"},
        {"marks": []},
    ]
    for hostile in damaged:
        with pytest.raises(ValueError, match="validation error"):
            Drive.from_json(hostile)


NAMES_ITSELF = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, "a process abcdü".encode(), 0, 0, 0)
print("named", flush=True)
sys.stdin.read()
"""
"""A process whose name Linux cuts in the middle of a character, after 15 bytes (PR_SET_NAME(2const))."""


def test_a_driver_is_not_stopped_by_a_process_whose_name_is_not_utf_8() -> None:
    named = subprocess.Popen(
        [sys.executable, "-c", NAMES_ITSELF], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert named.stdout
        assert named.stdout.readline() == b"named\n"
        with pytest.raises(UnicodeDecodeError):
            Path(f"/proc/{named.pid}/comm").read_text("utf-8")
        wait_until_idle()
    finally:
        named.communicate()


def test_hosts_are_refused_exactly_where_linux_refuses_the_argument_that_names_them() -> None:
    def is_started(hosts: list[str]) -> bool:
        [rules] = [flag for flag in flags(replace(JOB, hosts=hosts)) if "host-resolver-rules" in flag]
        try:
            return subprocess.run(["true", rules], check=False).returncode == 0
        except OSError as error:
            assert error.errno == errno.E2BIG
            return False

    hosts = [f"host{number:04}.example.com" for number in range(6_000)]
    counts = range(1, len(hosts))
    most = bisect_left(counts, True, key=lambda count: not is_started(hosts[:count]))
    assert 4_000 < most < 5_000
    check_hosts(hosts[:most])
    with pytest.raises(UsageError, match=f"its {most + 1} hosts take") as refused:
        check_hosts(hosts[: most + 1])
    assert "--client loader" in refused.value.hint


def test_a_browser_without_the_package_that_drives_it_is_refused_with_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho Chromium 1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(versions, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="chromium needs the Python package playwright") as raised:
        find_browser()
    assert raised.value.hint == "pip install 'firstflight[browser]'"
    [chromium] = [client for client in versions.installed_clients() if client.name == "chromium"]
    assert (chromium.version, chromium.lacks) == ("1.2.3", "playwright")
    assert chromium.hint.endswith("pip install 'firstflight[browser]'")
