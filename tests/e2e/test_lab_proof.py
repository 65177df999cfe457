"""Proof on the paper's pages: what a load claims agrees with packets, sockets and kernel counters."""

import json
from itertools import product
from pathlib import Path

import pytest
from small_pages import assert_ok, chain, document, load, load_all, page, planned

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Record
from firstflight.engines.lab import lab_binary
from firstflight.errors import LabError
from firstflight.pages import LoadedPage, open_pages, under
from firstflight.results.records import plt_ms

SYN_DATA_BYTES = 1420
"""1,500 less 20 (IPv4), 20 (TCP) and 40, room for the longest options (`tcp_send_syn_data` in Linux)."""
NAMES = ("amazon", "nytimes", "wsj", "wikipedia")
RTTS_MS = (20.0, 200.0)
DOWN_BPS, UP_BPS = 4_000_000, 256_000

Loads = dict[tuple[str, str, float], Record]


@pytest.fixture(scope="module")
def pages() -> dict[str, LoadedPage]:
    return {page.page.name: under("http", page) for page in open_pages(NAMES)}


@pytest.fixture(scope="module")
def loads(emulator: Emulator, pages: dict[str, LoadedPage]) -> Loads:
    """Every page in both modes on the paper's access link, at the shortest and the longest RTT."""
    keys = list(product(NAMES, ("tcp", "tfo"), RTTS_MS))
    plans = [
        (pages[name], planned(pages[name], mode, rtt_ms, down_bps=DOWN_BPS, up_bps=UP_BPS))
        for name, mode, rtt_ms in keys
    ]
    return dict(zip(keys, load_all(emulator, plans, at_a_time=8), strict=True))


def first_requests(record: Record, page: LoadedPage) -> dict[int, int]:
    """Bytes of the first request of each connection."""
    first: dict[int, int] = {}
    for request in sorted(record["requests"], key=lambda request: known(request["sent_ms"])):
        first.setdefault(
            int(known(request["connection"])), page.page.resources[request["index"]].request_bytes
        )
    return first


@pytest.mark.parametrize("rtt_ms", RTTS_MS)
@pytest.mark.parametrize("name", NAMES)
def test_in_a_warm_tfo_load_every_syn_carried_its_request_and_was_acknowledged(
    name: str, rtt_ms: float, loads: Loads, pages: dict[str, LoadedPage]
) -> None:
    record = loads[name, "tfo", rtt_ms]
    assert_ok(record)
    requests = first_requests(record, pages[name])
    for connection in record["connections"]:
        expected = min(requests[connection["connection"]], SYN_DATA_BYTES)
        assert connection["syn_payload_bytes"] == expected
        assert (connection["cookie"], connection["syn_data_acked"]) == ("sent", True)
    counts = [record["load"][column] for column in ("connections", "tfo_offered", "tfo_accepted")]
    assert counts == [len(requests)] * 3
    assert len(requests) >= len(pages[name].page.origins)


@pytest.mark.parametrize("rtt_ms", RTTS_MS)
@pytest.mark.parametrize("name", NAMES)
def test_in_a_tcp_load_no_syn_carried_data_or_asked_for_a_cookie(
    name: str, rtt_ms: float, loads: Loads
) -> None:
    record = loads[name, "tcp", rtt_ms]
    assert_ok(record)
    openings = {
        (connection["cookie"], connection["syn_payload_bytes"], connection["syn_data_acked"])
        for connection in record["connections"]
    }
    assert openings == {("none", 0, False)}
    assert (record["load"]["tfo_offered"], record["load"]["tfo_accepted"]) == (0, 0)


def test_ledger_sockets_and_counters_give_the_same_number(loads: Loads) -> None:
    for (_, mode, _), record in loads.items():
        proof, count = record["proof"], len(record["connections"])
        accepted = count if mode == "tfo" else 0
        offers = {"offered": accepted, "accepted": accepted}
        asked = {"asked": 0, "given": 0}
        assert proof["ledger"] == {"connections": count, **asked, **offers, "interfered": 0}
        assert proof["tcp_info"] == {"syn_data": accepted}
        assert (proof["counters"]["active"], proof["counters"]["passive"]) == (accepted, accepted)
        assert (proof["counters"]["active_fail"], proof["counters"]["passive_fail"]) == (0, 0)
        assert proof["disagreements"] == []


def test_every_resource_is_loaded_once_with_the_bytes_it_was_recorded_with(
    loads: Loads, pages: dict[str, LoadedPage]
) -> None:
    for (name, _, _), record in loads.items():
        resources = pages[name].page.resources
        assert [request["index"] for request in record["requests"]] == list(range(len(resources)))
        for request, resource in zip(record["requests"], resources, strict=True):
            # Under which scheme a page is loaded is set by the plan, so only the rest of the URL is compared.
            assert request["url"].partition(":")[2] == resource.url.partition(":")[2]
            assert request["status"] == resource.status
            assert request["body_bytes"] == resource.body_bytes
        shares = [
            known(request["wire_bytes"]) / resource.wire_bytes
            for request, resource in zip(record["requests"], resources, strict=True)
        ]
        assert sum(shares) / len(shares) == pytest.approx(1, abs=0.01)


def test_the_ledger_and_the_requests_tell_of_the_same_connections(loads: Loads) -> None:
    for (_, mode, _), record in loads.items():
        used = {request["connection"] for request in record["requests"]}
        origins = {row["connection"]: row["origin"] for row in record["connections"]}
        assert all(origins[int(known(row["connection"]))] == row["origin"] for row in record["requests"])
        # While a connection is being opened, another one may take its request. It then stays idle, as in a
        # browser. With Fast Open an idle connection has no data for its SYN, so it sends no packet at all.
        assert used == origins.keys() if mode == "tfo" else used <= origins.keys()


def test_no_page_load_beats_the_rate_and_the_delay(loads: Loads) -> None:
    for (_, mode, rtt_ms), record in loads.items():
        # The first byte needs one round trip for the request. TCP needs one more before it, for the
        # handshake.
        delay_ms = {"tcp": 2, "tfo": 1}[mode] * rtt_ms
        load, requests = record["load"], record["requests"]
        assert known(load["first_byte_ms"]) >= delay_ms
        for until_ms in (plt_ms(record), max(known(request["end_ms"]) for request in requests)):
            arrived = sum(known(row["wire_bytes"]) for row in requests if known(row["end_ms"]) <= until_ms)
            assert until_ms >= delay_ms + arrived * 8 / DOWN_BPS * 1000


@pytest.mark.parametrize("request_bytes", [300, 1419, 1420, 1421, 3000])
def test_a_syn_carries_as_much_of_a_request_as_fits(request_bytes: int, emulator: Emulator) -> None:
    one = page("one", document(request_bytes=request_bytes))
    record = load(emulator, one, "tfo")
    assert_ok(record)
    assert [row["syn_payload_bytes"] for row in record["connections"]] == [min(request_bytes, SYN_DATA_BYTES)]


def test_no_load_among_hundreds_lacks_its_proof(emulator: Emulator) -> None:
    """Checks that the relay also forwards and records the very first SYN after it has set up the path."""
    one = chain(1)
    plans = [(one, planned(one, mode, 2.0)) for mode in ("tcp", "tfo") * 150]
    for record in load_all(emulator, plans, at_a_time=4):
        assert_ok(record)
        assert plt_ms(record) >= (2 if record["load"]["mode"] == "tfo" else 4)


def test_an_answer_without_proof_never_becomes_a_load_that_is_ok(emulator: Emulator, tmp_path: Path) -> None:
    """The engine rejects an answer whose status is `ok` although its own proof is not."""
    with pytest.raises(LabError, match="ok without proof"):
        load(doctored(tmp_path, 's/"proof":{"ok":true/"proof":{"ok":false/'), chain(2), "tfo")


def test_an_answer_with_no_proof_at_all_never_becomes_a_load_that_is_ok(
    emulator: Emulator, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match="ok without proof"):
        load(doctored(tmp_path, 's/"proof":{.*}/"proof":{}}/'), chain(2), "tfo")


def test_an_answer_that_is_not_doctored_is_believed(emulator: Emulator, tmp_path: Path) -> None:
    assert_ok(load(doctored(tmp_path, "s/nothing/nothing/"), chain(2), "tfo"))


def doctored(folder: Path, edit: str) -> Emulator:
    """An engine that runs the real laboratory and edits its answer with the sed command `edit`."""
    script = folder / "firstflight-lab"
    script.write_text(f"#!/bin/sh\n{json.dumps(str(lab_binary()))} \"$@\" | sed '{edit}'\n")
    script.chmod(0o755)
    return Emulator(script)
