"""How firstflight finds and sets up Firefox, and turns its events into requests."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.engines.clients.firefox.network import Fetches
from firstflight.engines.clients.firefox.profile import preferences, write_profile
from firstflight.engines.clients.job import DriveJob, Fetch
from firstflight.engines.clients.versions import find_browser
from firstflight.errors import UsageError

JOB = DriveJob(
    url="https://a.test/",
    browser="/usr/bin/firefox-esr",
    preload="lib.so",
    hosts=["a.test", "b.test"],
    clear_hosts=[],
)
STARTED_MS = 1_795_493_472_666.95
NEVER = dict.fromkeys(
    ("requestTime", "connectStart", "tlsStart", "connectEnd", "requestStart", "responseStart", "responseEnd"),
    0.0,
)


def event(url: str, number: str, redirects: int = 0, **params: Any) -> dict[str, Any]:  # noqa: ANN401
    timings = {
        key: STARTED_MS + at_ms if at_ms is not None else 0.0
        for key, at_ms in params.pop("timings", {}).items()
    }
    request = {"request": number, "url": url, "method": "GET", "destination": "image"}
    return {"redirectCount": redirects, "request": {**request, "timings": {**NEVER, **timings}}, **params}


def response(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = {"status": 200, "mimeType": "image/png", "protocol": "h2", "fromCache": False}
    return {**answer, "bodySize": 500, "bytesReceived": 650, **fields}


def finished(*events: tuple[str, dict[str, Any]]) -> list[Fetch]:
    fetches = Fetches()
    for name, params in events:
        fetches.note(f"network.{name}", params)
    return fetches.finished()


def test_times_are_ms_after_the_first_request_and_a_used_connection_has_none_of_opening() -> None:
    times = {"requestTime": 0, "connectStart": 5, "connectEnd": 9, "requestStart": 9.5, "responseStart": 20}
    first, second = finished(
        ("beforeRequestSent", event("https://a.test/", "1", timings={"requestTime": 0})),
        (
            "responseCompleted",
            event("https://a.test/", "1", timings={**times, "responseEnd": 21}, response=response()),
        ),
        ("beforeRequestSent", event("https://a.test/2", "2", timings={"requestTime": 30})),
        (
            "responseCompleted",
            event(
                "https://a.test/2", "2", timings={"requestTime": 30, "requestStart": 31}, response=response()
            ),
        ),
    )
    assert (first.queued_ms, first.connect_start_ms, first.connect_end_ms) == (0, 5, 9)
    assert (first.sent_ms, first.first_byte_ms, first.end_ms) == (9.5, 20, 21)
    assert (first.status, first.protocol, first.body_bytes, first.wire_bytes) == (200, "h2", 500, 650)
    assert (second.queued_ms, second.sent_ms, second.connect_start_ms) == (30, 31, None)


def test_a_redirect_makes_a_request_of_each_of_its_ends_and_an_error_is_kept() -> None:
    first, second = finished(
        ("beforeRequestSent", event("http://a.test/old", "1", timings={"requestTime": 0})),
        (
            "responseCompleted",
            event("http://a.test/old", "1", timings={"requestTime": 0}, response=response(status=302)),
        ),
        ("beforeRequestSent", event("http://b.test/", "1", 1, timings={"requestTime": 8})),
        (
            "fetchError",
            event("http://b.test/", "1", 1, timings={"requestTime": 8}, errorText="NS_ERROR_UNKNOWN_HOST"),
        ),
    )
    assert (first.url, first.status, first.error) == ("http://a.test/old", 302, None)
    assert (second.url, second.status, second.sent_ms) == ("http://b.test/", None, None)
    assert second.error == "NS_ERROR_UNKNOWN_HOST"


def test_what_has_not_ended_is_under_way_and_what_began_before_is_ignored() -> None:
    fetches = Fetches()
    fetches.note("network.responseCompleted", event("https://a.test/", "1", response=response()))
    fetches.note("network.beforeRequestSent", event("data:image/png;base64,AA", "2"))
    assert not fetches.finished()
    fetches.note("network.beforeRequestSent", event("https://a.test/3", "3", timings={"requestTime": 0}))
    assert fetches.under_way == {("3", 0)}
    fetches.note("network.responseCompleted", event("https://a.test/3", "3", response=response()))
    assert (fetches.under_way, fetches.ended) == (set(), {"https://a.test/3"})


def test_one_key_share_is_sent_where_the_post_quantum_one_is_not_wanted() -> None:
    share, other = "security.tls.enable_kyber", "security.tls.client_hello.send_p256_keyshare"
    classic = preferences(replace(JOB, post_quantum=False))
    assert (classic[share], classic[other]) == (False, False)
    assert not {share, other} & preferences(JOB).keys()


def test_quic_is_spoken_to_every_host_from_the_first_request_on_or_not_at_all() -> None:
    mapping = "network.http.http3.alt-svc-mapping-for-testing"
    assert preferences(replace(JOB, quic=True))[mapping] == "a.test;h3=:443,b.test;h3=:443"
    assert mapping not in preferences(JOB)
    assert preferences(JOB)["network.http.http3.enable"] is False


def test_a_profile_says_each_preference_once(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile", JOB)
    names = re.findall(r'^user_pref\("([^"]+)", .+\);$', (tmp_path / "profile" / "user.js").read_text(), re.M)
    assert sorted(names) == sorted(preferences(JOB))


def test_a_machine_without_firefox_is_told_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no Firefox on this machine") as refused:
        find_browser("firefox")
    assert "firefox-esr" in refused.value.hint
