"""Loads with cold cookies, packet loss, servers that close or stay silent, many origins, and redirects."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pcapng
import pytest
from small_pages import assert_ok, chain, document, fan, load, load_all, page, planned

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.engines.lab import Lab
from firstflight.errors import LabError
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage, open_pages

ACCESS = {"down_bps": 4_000_000, "up_bps": 256_000}


def job(page: LoadedPage, mode: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """A job for the laboratory that no plan can describe."""
    path = {"topology": "access", "rtt_ms": 20.0, "queue": {"packets": 1000}, "loss": 0.0, "seed": 1}
    return {
        "page": json.loads(page.page.to_json()),
        "path": path,
        "mode": mode,
        "cookies": "warm",
        **fields,
    }


@pytest.mark.ordinary_user
def test_a_cold_load_asks_every_server_for_a_cookie_and_sends_no_data_with_it(emulator: Emulator) -> None:
    record = load(emulator, chain(5), "tfo", cookies="cold")
    assert_ok(record)
    openings = [(row["cookie"], row["syn_payload_bytes"]) for row in record["connections"]]
    assert openings == [("requested", 0)] * 5
    assert record["proof"]["counters"]["cookie_requests"] == 5
    assert (record["load"]["tfo_offered"], record["load"]["tfo_accepted"]) == (0, 0)


def test_a_cookie_got_in_a_cold_load_is_used_by_the_next_connection_to_that_host(emulator: Emulator) -> None:
    record = load(emulator, chain(4, hosts=1), "tfo", cookies="cold", keep_alive=False)
    assert_ok(record)
    assert [row["cookie"] for row in record["connections"]] == ["requested", "sent", "sent", "sent"]
    assert (record["load"]["tfo_offered"], record["load"]["tfo_accepted"]) == (3, 3)


def test_a_cold_load_of_a_real_page_never_sends_a_cookie_before_it_has_one(emulator: Emulator) -> None:
    [nytimes] = open_pages(["nytimes"])
    record = load(emulator, nytimes, "tfo", cookies="cold", **ACCESS)
    assert_ok(record)
    first: dict[str, str] = {}
    for row in sorted(record["connections"], key=lambda row: known(row["opened_ms"])):
        first.setdefault(row["origin"], row["cookie"])
    assert set(first.values()) == {"requested"}
    assert len(first) == len(nytimes.page.origins)


def test_cold_cookies_mean_nothing_to_a_tcp_load(emulator: Emulator) -> None:
    record = load(emulator, chain(3), "tcp", cookies="cold")
    assert_ok(record)
    assert {row["cookie"] for row in record["connections"]} == {"none"}


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_loads_over_a_lossy_path_end_and_their_witnesses_agree(mode: str, emulator: Emulator) -> None:
    [wikipedia] = open_pages(["wikipedia"])
    plans = [
        (wikipedia, planned(wikipedia, mode, 50.0, loss=loss, seed=seed, keep_alive=keep_alive, **ACCESS))
        for seed in range(3)
        for loss, keep_alive in ((0.01, True), (0.05, False))
    ]
    records = load_all(emulator, plans, at_a_time=6)
    for record in records:
        assert_ok(record)
        assert record["relay"]["lost"] > 0
    assert sum(known(record["load"]["retransmits"]) for record in records) > 0
    if mode == "tfo":
        # After the loss of a SYN, Linux sends it again without data. The ledger must then say that data was
        # offered and not accepted.
        lost = [row for record in records for row in record["connections"] if row["syn_retransmits"]]
        assert lost
        assert all(row["cookie"] == "sent" for row in lost)


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_queue_that_overflows_costs_time_and_not_the_proof(mode: str, emulator: Emulator) -> None:
    record = load(emulator, fan(20), mode, queue=Queue(packets=10), **ACCESS)
    assert_ok(record)
    assert record["relay"]["dropped"] > 0
    resent = sum(connection["syn_retransmits"] for connection in record["connections"])
    assert known(record["load"]["retransmits"]) >= resent > 0


@pytest.mark.parametrize("discipline", ["codel", "pie"])
def test_a_managed_queue_drops_and_the_page_loads(discipline: str, emulator: Emulator) -> None:
    record = load(emulator, fan(12, body_bytes=60_000), "tfo", queue=Queue(name=discipline), **ACCESS)
    assert_ok(record)
    assert record["relay"]["dropped"] > 0


def test_both_modes_and_every_repeat_of_a_seed_lose_the_same_packets(emulator: Emulator) -> None:
    lossy = chain(10)
    plans = [(lossy, planned(lossy, "tcp", loss=0.05, seed=seed)) for seed in (1, 1, 2, 3, 4)]
    first, again, *others = (record["relay"]["lost"] for record in load_all(emulator, plans, at_a_time=5))
    assert first == again
    assert {*others} != {first}


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_without_keep_alive_every_request_has_a_connection_of_its_own(mode: str, emulator: Emulator) -> None:
    [amazon] = open_pages(["amazon"])
    record = load(emulator, amazon, mode, keep_alive=False, **ACCESS)
    assert_ok(record)
    used = Counter(request["connection"] for request in record["requests"])
    assert set(used.values()) == {1}
    assert len(used) == len(amazon.page.resources)
    assert all(connection["closed_ms"] is not None for connection in record["connections"])


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_star_gives_the_same_proof(mode: str, emulator: Emulator) -> None:
    record = load(
        emulator, fan(20), mode, topology="star", down_bps=4_000_000, up_bps=4_000_000, keep_alive=False
    )
    assert_ok(record)
    assert record["load"]["tfo_accepted"] == (21 if mode == "tfo" else 0)


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_page_may_name_300_origins(mode: str, emulator: Emulator) -> None:
    record = load(emulator, fan(299), mode)
    assert_ok(record)
    assert len({connection["origin"] for connection in record["connections"]}) == 300
    assert record["load"]["tfo_accepted"] == (300 if mode == "tfo" else 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_to_its_target(status: int, emulator: Emulator) -> None:
    target = {**document(url="http://o1.test/there"), "initiator": {"resource": 0, "via": "redirect"}}
    record = load(emulator, page("moved", document(status=status), target), "tfo", 50.0)
    assert_ok(record)
    assert [request["status"] for request in record["requests"]] == [status, 200]
    assert record["load"]["tfo_accepted"] == 2
    # The load's first byte is that of the target, not of the redirect.
    assert known(record["load"]["first_byte_ms"]) >= 100


def test_the_same_origin_on_two_ports_is_two_origins_with_one_cookie(emulator: Emulator) -> None:
    other = {
        **document(url="http://o0.test:8080/x.js", kind="script", mime="text/javascript"),
        "initiator": {"resource": 0, "via": "script"},
    }
    record = load(emulator, page("ports", document(), other), "tfo")
    assert_ok(record)
    assert [row["origin"] for row in record["connections"]] == ["http://o0.test", "http://o0.test:8080"]
    assert record["load"]["tfo_accepted"] == 2


def test_an_origin_that_never_answers_is_counted_and_the_load_goes_on(lab: Lab) -> None:
    silent = fan(4, server_ms=600_000).page.resources[1]
    asked = job(fan(4), "tfo", request_timeout_ms=300)
    asked["page"]["resources"][1]["server_ms"] = silent.server_ms
    answer = lab.ask("load", asked, timeout_s=60)
    assert (answer["status"], answer["proof"]["ok"]) == ("ok", True)
    assert answer["plt_ms"] >= 300
    failed = {request["index"]: request["error"] for request in answer["requests"] if request["error"]}
    assert failed.keys() == {1}
    assert [request["status"] for request in answer["requests"]] == [200, None, 200, 200, 200]


def test_a_document_that_never_comes_fails_the_load(lab: Lab) -> None:
    asked = job(page("silent", document(server_ms=600_000)), "tfo", request_timeout_ms=300)
    answer = lab.ask("load", asked, timeout_s=60)
    assert (answer["status"], answer["plt_ms"]) == ("failed", None)
    assert answer["error"]
    assert answer["proof"]["ok"] is True


def test_a_load_that_takes_too_long_is_ended(lab: Lab) -> None:
    asked = job(fan(3, server_ms=600_000), "tcp", timeout_ms=500)
    answer = lab.ask("load", asked, timeout_s=60)
    assert (answer["status"], answer["plt_ms"]) == ("failed", None)
    assert sum(request["error"] is not None for request in answer["requests"]) == 3


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_capture_shows_what_the_ledger_says(mode: str, lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "load.pcapng"
    answer = lab.ask("load", job(chain(3), mode, capture=str(file)), timeout_s=60)
    assert (answer["status"], answer["proof"]["ok"]) == ("ok", True)
    packets = pcapng.read(file)
    opened = [packet for packet in packets if packet.syn and not packet.ack]
    assert len(opened) == 3
    for packet, connection in zip(opened, answer["connections"], strict=True):
        assert len(packet.payload) == connection["syn_payload_bytes"]
        assert (len(packet.fast_open or b"") > 0) == (mode == "tfo") == packet.payload.startswith(b"GET /")
    sizes = Counter(packet.destination == opened[0].source for packet in packets)
    assert sizes[True] > 3
    assert sizes[False] > 3
    times = [packet.time_s for packet in packets]
    assert times == sorted(times)


def test_a_cold_capture_shows_the_cookie_on_its_way(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "load.pcapng"
    asked = job(chain(2, hosts=1), "tfo", cookies="cold", keep_alive=False, capture=str(file))
    lab.ask("load", asked, timeout_s=60)
    syns = [packet for packet in pcapng.read(file) if packet.syn]
    asking, granting, using = (packet.fast_open for packet in syns[:3])
    assert asking == b""
    assert granting == using
    assert len(granting or b"") == 8


def test_a_capture_that_cannot_be_written_is_an_error_that_names_the_file(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "load.pcapng"
    with pytest.raises(LabError, match=str(file)) as raised:
        lab.ask("load", job(chain(1), "tfo", capture=str(file)), timeout_s=60)
    assert raised.value.hint
