"""Programs that claim a TLS mode: packets and the servers' records prove or disprove the claim.

The programs are the system's: `openssl s_client`, which can send early data, and curl, which in Debian 12
cannot.
"""

import json
from pathlib import Path

import pytest
from program import Program as Firstflight
from small_pages import assert_ok, document, load, page

from firstflight.engines.clients.command import Program, find_program
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Record
from firstflight.engines.lab import preload_library

HOST, TARGET = "en.wikipedia.org", "/wiki/Transmission_Control_Protocol"
FETCH = f"""
talk() {{ openssl s_client -quiet -ign_eof -connect {HOST}:443 -CAfile "$FIRSTFLIGHT_CA" "$@"; }}
printf 'GET /.well-known/firstflight-visit HTTP/1.1\\r\\nHost: {HOST}\\r\\n\\r\\n' | talk -sess_out ticket
printf "$1 {TARGET} HTTP/1.1\\r\\nHost: {HOST}\\r\\nConnection: close\\r\\n\\r\\n" > request
WAY
"""
EARLY = "talk -sess_in ticket -early_data request < /dev/null"
LATE = "talk -sess_in ticket < request"
TICKETLESS = "talk < request"
NOT_EARLY = "connection 0: its request did not go with the ClientHello"


@pytest.mark.parametrize(
    ("mode", "method", "way", "disagreements"),
    [
        ("early-data", "GET", EARLY, []),
        ("early-data", "POST", LATE, []),
        ("early-data", "GET", LATE, [NOT_EARLY]),
        ("early-data", "GET", TICKETLESS, ["connection 0: it resumed no session"]),
        ("resumption", "GET", LATE, []),
        ("resumption", "GET", TICKETLESS, ["connection 0: it resumed no session"]),
    ],
)
def test_a_program_is_held_to_what_it_sent(
    mode: str, method: str, way: str, disagreements: list[str], program: Firstflight
) -> None:
    script = FETCH.replace("WAY", way)
    flags = ("--rtt", "20", "--scheme", "https", "--pages", "wikipedia", "--json", "record.json")
    ended = program("exec", "--mode", mode, *flags, "--", "sh", "-c", script, "sh", method)
    record = json.loads((program.folder / "record.json").read_text())
    assert record["proof"]["disagreements"] == disagreements, ended.err
    [connection] = record["connections"]  # without the connection of the visit before the load
    early = way == EARLY
    assert (connection["early_data"], connection["early_data_bytes"] > 0) == (
        ("accepted", True) if early else ("none", False)
    )
    assert connection["resumed"] is (way != TICKETLESS)
    assert ("warning: no proof: " in ended.err) is bool(disagreements)


SECURE = page(
    "secure",
    document(url="https://o0.test/"),
    *(
        {
            **document(url=f"https://o{number % 2}.test/{number}.png", kind="image", mime="image/png"),
            "initiator": {"resource": 0, "via": "parser", "at_byte": 500},
        }
        for number in range(1, 5)
    ),
)


def by_curl(folder: Path, mode: str, sed: str = "") -> Record:
    """Makes a load with curl. `sed` is a sed script that changes the configuration that curl reads."""
    program = find_program("curl")
    if sed:
        wrapper = folder / "curl"
        wrapper.write_text(f"#!/bin/sh\nsed '{sed}' | {program} \"$@\"\n")
        wrapper.chmod(0o755)
        program = str(wrapper)
        # Root runs clients as the user nobody, who may not enter pytest's folders.
        for parent in (folder, *folder.parents[:2]):
            parent.chmod(0o755)
    client = Program("curl", program, preload_library(), in_turn=True)
    return load(Emulator(clients={"curl": client}), SECURE, mode, client="curl", scheme="https")


def test_curl_resumes_a_session_of_every_host_and_its_visits_are_no_part_of_the_load(
    emulator: Emulator, tmp_path: Path
) -> None:
    assert emulator
    for mode, is_resumed in (("tcp", False), ("resumption", True)):
        record = by_curl(tmp_path, mode)
        assert_ok(record)
        rows = [(row["origin"], row["resumed"]) for row in record["connections"]]
        assert rows == [("https://o0.test", is_resumed), ("https://o1.test", is_resumed)]
        assert len(record["requests"]) == len(SECURE.page.resources)


@pytest.mark.parametrize(
    ("mode", "sed", "error"),
    [
        ("resumption", "1,/^next$/d", "no proof: connection 0: it resumed no session"),
        # This curl reports early data that it did not send. Real versions do so too: curl/curl#17481 and
        # #22649.
        (
            "early-data",
            "/^tls-earlydata$/d; s/%{tls_earlydata}/100/",
            f"no proof: {NOT_EARLY}; {NOT_EARLY.replace('0', '1')}; "
            "curl says that it sent early data with 5 of 5 requests (500 bytes)",
        ),
        ("tls12", "/^tls-max/d", "no proof: connection 0: it spoke TLS 1.3 in a load with TLS 1.2"),
    ],
)
def test_a_curl_that_does_not_do_what_it_says_fails_its_load(
    mode: str, sed: str, error: str, emulator: Emulator, tmp_path: Path
) -> None:
    assert emulator
    record = by_curl(tmp_path, mode, sed)
    assert record["load"]["status"] == "failed"
    assert str(record["load"]["error"]).startswith(error)


def test_an_answer_to_early_data_arrives_whole_where_the_server_then_closes(emulator: Emulator) -> None:
    """The client completes the TLS handshake while the server's answer is still in flight."""
    one = page("one", document(url="https://o0.test/", body_bytes=60_000))
    assert_ok(load(emulator, one, "early-data", 100.0, scheme="https", keep_alive=False))
