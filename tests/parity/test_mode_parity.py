"""Modes of transport on both clocks: the round trips that each promises, the same bytes in first flights."""

import json
from collections.abc import Iterable, Mapping
from itertools import product
from typing import TypeVar

import pytest
from clocks import Fields, emulate_all, simulate

from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

pytestmark = pytest.mark.timing

RTT_MS = 100
LONG_RTT_MS = 200
"""Of what is counted in round trips: it leaves room for the processor."""
DOCUMENTS = 4
ROUND_TRIPS = {
    ("tls12", "classic"): 4,
    ("tcp", "classic"): 3,
    ("resumption", "classic"): 3,
    ("tfo", "classic"): 2,
    ("early-data", "classic"): 2,
    ("tfo+early-data", "classic"): 1,
    ("quic", "classic"): 2,
    ("quic-0rtt", "classic"): 1,
    # A ClientHello with this share is longer than what a SYN carries.
    ("tfo", "post-quantum"): 3,
    ("early-data", "post-quantum"): 2,
    ("tfo+early-data", "post-quantum"): 2,
    # Over QUIC it takes two datagrams, which leave together.
    ("quic", "post-quantum"): 2,
    ("quic-0rtt", "post-quantum"): 1,
}
"""By mode and key share, for one document on a host of its own."""
ROOM = 0.2
"""How far a document may be from its round trips, in round trips: what a handshake takes of a processor."""
PLT = 0.05
"""How far the two clocks may be from each other on a page with a link of 4 Mbit/s."""

Cell = TypeVar("Cell", bound=tuple[str, ...])
"""A mode, and what else differs."""

Loads = Mapping[tuple[str, str], tuple[Fields, Fields]]


def chain(last: str = "GET") -> Fields:
    """Documents on hosts of their own, each known from the one before; `last`: the method of the last."""
    resources = []
    for number in range(DOCUMENTS):
        resource: Fields = {
            "url": f"https://h{number}.test/",
            "kind": "script" if number else "document",
            "mime": "text/javascript" if number else "text/html",
            "method": last if number == DOCUMENTS - 1 else "GET",
            "request_bytes": 400,
            "header_bytes": 200,
            "body_bytes": 1_000,
        }
        if number:
            resource["initiator"] = {"resource": number - 1, "via": "script"}
        resources.append(resource)
    return {"format": "firstflight-profile/1", "name": "chain", "resources": resources}


def job(
    mode: str, share: str, cookies: str = "warm", http: str = "1.1", *, ip: str = "4", **path: object
) -> Fields:
    """What either clock is asked for."""
    return {
        "scheme": "recorded",
        "ip": ip,
        "tls": {"post_quantum": share == "post-quantum", "http": http},
        "path": {"rtt_ms": RTT_MS, **path},
        "mode": mode,
        "cookies": cookies,
    }


def both(lab: Lab, asked: list[tuple[Fields, Fields]]) -> list[tuple[Fields, Fields]]:
    """What the laboratory and the simulator say; every load is ok, and proved."""
    pairs = list(zip(emulate_all(lab, asked), [simulate(*load) for load in asked], strict=True))
    for (_, what), answers in zip(asked, pairs, strict=True):
        for answer in answers:
            assert answer["status"] == "ok", (what["mode"], what["cookies"], answer["error"])
            assert answer["proof"]["ok"]
    return pairs


def first_flights(answer: Fields) -> list[tuple[object, ...]]:
    """What left each connection's client before it heard from its server, and what the server says of it."""
    columns = (
        "origin",
        "protocol",
        "syn_payload_bytes",
        "first_flight_bytes",
        "tls",
        "resumed",
        "early_data",
    )
    rows = [tuple(row[name] for name in (*columns, "early_data_bytes")) for row in answer["connections"]]
    return sorted(rows, key=str)


def versions(cells: Iterable[Cell]) -> list[tuple[Cell, str]]:
    """Each with HTTP/1.1, and with HTTP/2 where its mode goes over TCP."""
    both = product(cells, ("1.1", "2"))
    return [(cell, http) for cell, http in both if http == "1.1" or not cell[0].startswith("quic")]


def early_data(answer: Fields) -> list[str]:
    """What became of early data, by connection."""
    return [row["early_data"] for row in sorted(answer["connections"], key=lambda row: row["connection"])]


@pytest.mark.parametrize("ip", ["4", "6"])
def test_a_document_takes_the_round_trips_that_its_mode_promises_on_both_clocks(lab: Lab, ip: str) -> None:
    cells = versions(ROUND_TRIPS)
    asked = [
        (chain(), job(mode, share, http=http, ip=ip, rtt_ms=LONG_RTT_MS)) for (mode, share), http in cells
    ]
    for (cell, http), answers in zip(cells, both(lab, asked), strict=True):
        for answer in answers:
            trips = answer["plt_ms"] / LONG_RTT_MS / DOCUMENTS
            assert trips == pytest.approx(ROUND_TRIPS[cell], abs=ROOM), (cell, http)
            outcome = "accepted" if cell[0].endswith(("early-data", "0rtt")) else "none"
            assert early_data(answer) == [outcome] * DOCUMENTS
        assert first_flights(answers[0]) == first_flights(answers[1])


def test_what_is_not_known_or_not_safe_is_asked_for_again_or_waits(lab: Lab) -> None:
    """Servers have forgotten `stale` sessions, `cold` clients have none, and a POST may not be repeated.

    Tickets expire, or allow no early data; servers answer what comes early with 425.
    """
    pages = {"GET": chain(), "POST": chain("POST")}
    cells = [
        *product(("early-data", "resumption", "quic-0rtt"), ("stale", "cold"), ("GET",)),
        *product(("early-data", "quic-0rtt"), ("expired", "no-early-data", "too-early"), ("GET",)),
        ("early-data", "warm", "POST"),
        ("quic-0rtt", "warm", "POST"),
    ]
    asked = [
        (pages[method], job(mode, "classic", cookies, http))
        for (mode, cookies, method), http in versions(cells)
    ]
    lasts = {
        ("early-data", "stale", "GET"): (3, ["rejected"] * DOCUMENTS),
        ("early-data", "cold", "GET"): (3, ["none"] * DOCUMENTS),
        ("resumption", "stale", "GET"): (3, ["none"] * DOCUMENTS),
        ("resumption", "cold", "GET"): (3, ["none"] * DOCUMENTS),
        ("quic-0rtt", "stale", "GET"): (2, ["rejected"] * DOCUMENTS),
        ("quic-0rtt", "cold", "GET"): (2, ["none"] * DOCUMENTS),
        ("early-data", "expired", "GET"): (3, ["none"] * DOCUMENTS),
        ("early-data", "no-early-data", "GET"): (3, ["none"] * DOCUMENTS),
        ("early-data", "too-early", "GET"): (3, ["accepted"] * DOCUMENTS),
        ("quic-0rtt", "expired", "GET"): (2, ["none"] * DOCUMENTS),
        ("quic-0rtt", "no-early-data", "GET"): (2, ["none"] * DOCUMENTS),
        ("quic-0rtt", "too-early", "GET"): (2, ["accepted"] * DOCUMENTS),
        ("quic-0rtt", "warm", "POST"): (1 + 1 / DOCUMENTS, ["accepted"] * (DOCUMENTS - 1) + ["none"]),
        # One of the documents waits for the handshake.
        ("early-data", "warm", "POST"): (2 + 1 / DOCUMENTS, ["accepted"] * (DOCUMENTS - 1) + ["none"]),
    }
    for (cell, http), answers in zip(versions(cells), both(lab, asked), strict=True):
        expected, outcome = lasts[cell]
        for answer in answers:
            trips = answer["plt_ms"] / RTT_MS / DOCUMENTS
            assert trips == pytest.approx(expected, abs=ROOM), (cell, http)
            assert early_data(answer) == outcome, (cell, http)
        assert first_flights(answers[0]) == first_flights(answers[1])


@pytest.mark.parametrize("mode", ["quic", "quic-0rtt"])
def test_where_udp_is_blocked_the_loader_goes_over_to_tcp(lab: Lab, mode: str) -> None:
    """QUIC is 300 ms ahead; then come the handshakes of TCP and TLS, and the answer."""
    asked = (chain(), job(mode, "classic", middlebox={"kind": "drop-udp"}))
    expected = 3 + 300 / RTT_MS
    for answer in both(lab, [asked])[0]:
        assert answer["plt_ms"] / RTT_MS / DOCUMENTS == pytest.approx(expected, abs=ROOM)
        protocols = [row["protocol"] for row in answer["connections"]]
        assert sorted(protocols) == ["tcp"] * DOCUMENTS + ["udp"] * DOCUMENTS
        assert [row["tls"] for row in answer["connections"] if row["protocol"] == "udp"] == [None] * DOCUMENTS
        assert answer["proof"]["ledger"]["interfered"] == DOCUMENTS


def test_middleboxes_that_know_tls_and_udp_do_the_same_on_both_clocks(lab: Lab) -> None:
    """Large datagrams are quinn's probes for the path's MTU alone; what drops a hello drops it every time."""
    cells = [
        ("quic", "post-quantum", "drop-large-udp", True),
        ("quic", "classic", "limit-udp", True),
        ("early-data", "classic", "drop-early-data", False),
        ("tcp", "classic", "drop-early-data", True),
        ("tcp", "post-quantum", "drop-cut-hello", False),
        ("tcp", "classic", "drop-cut-hello", True),
    ]
    asked = [(chain(), job(mode, share, middlebox={"kind": kind})) for mode, share, kind, _ in cells]
    for _, one in asked:
        one["request_timeout_ms"] = 1_000
    answers = zip(emulate_all(lab, asked), [simulate(*load) for load in asked], strict=True)
    for (mode, share, kind, passes), both_answers in zip(cells, answers, strict=True):
        for answer in both_answers:
            assert (answer["status"] == "ok") is passes, (mode, kind, answer["error"])
            if passes:
                trips = answer["plt_ms"] / RTT_MS / DOCUMENTS
                assert trips == pytest.approx(ROUND_TRIPS.get((mode, share), 3), abs=ROOM), (mode, kind)
            else:
                assert answer["proof"]["ledger"]["interfered"] == 1


def test_a_long_certificate_chain_costs_quic_a_round_trip_unless_the_hello_is_long_too(lab: Lab) -> None:
    """Before a server knows that the client is there it may send three times what it received (RFC 9000)."""
    trips = {
        ("quic", "classic"): 3,
        ("quic", "post-quantum"): 2,
        ("quic-0rtt", "classic"): 1,
        ("tcp", "classic"): 3,
    }
    asked = [(chain(), job(*cell)) for cell in trips]
    for _, one in asked:
        one["tls"]["certificate_bytes"] = 4_000
    for (cell, expected), answers in zip(trips.items(), both(lab, asked), strict=True):
        for answer in answers:
            assert answer["plt_ms"] / RTT_MS / DOCUMENTS == pytest.approx(expected, abs=ROOM), cell


def test_a_load_over_quic_is_the_same_twice_and_another_seed_loses_others() -> None:
    asked = job("quic-0rtt", "post-quantum", loss=0.05, seed=7)
    first, second = (json.dumps(simulate(chain(), asked)) for _ in range(2))
    assert first == second
    assert json.dumps(simulate(chain(), job("quic-0rtt", "post-quantum", loss=0.05, seed=8))) != first


def test_a_client_keeps_the_sessions_of_every_host_of_a_large_page(lab: Lab) -> None:
    page = chain()
    document = page["resources"][0]
    image = {**document, "kind": "image", "mime": "image/png", "initiator": {"resource": 0, "via": "parser"}}
    images = [{**image, "url": f"https://i{number}.test/"} for number in range(60)]
    ((emulated, simulated),) = both(
        lab, [({**page, "resources": [document, *images]}, job("early-data", "classic"))]
    )
    assert early_data(emulated) == early_data(simulated) == ["accepted"] * 61


def assert_close_flights(page: Fields, simulated: Fields, emulated: Fields) -> None:
    """Equal but for requests over HTTP/2 that join early data about when the server is first heard.

    They join it for as long as the document goes on to arrive: one request more or less. Where a SYN takes
    the whole ClientHello, the rest of the early data leaves after the SYN-ACK, with the ServerHello right
    behind that: which is first is a race of two processes, and only what the SYN takes is sure.
    """
    longest = max(resource["request_bytes"] for resource in page["resources"])
    for ours, theirs in zip(first_flights(simulated), first_flights(emulated), strict=True):
        assert (*ours[:3], *ours[4:-1]) == (*theirs[:3], *theirs[4:-1])
        (syn, expected, early), (_, sent, sent_early) = (
            tuple(int(str(row[place])) for place in (2, 3, -1)) for row in (ours, theirs)
        )
        hello = expected - early
        assert sent - sent_early == hello
        assert (syn if syn > hello else expected - longest) <= sent <= expected + longest


def test_a_page_loads_as_fast_on_both_clocks_in_every_mode(lab: Lab) -> None:
    (loaded,) = (under("https", page) for page in open_pages(["wikipedia"]))
    page = json.loads(loaded.page.to_json())
    modes = dict.fromkeys(mode for mode, _ in ROUND_TRIPS)
    cells = [
        *product(modes, ("classic", "post-quantum"), ("warm",), ("1.1",)),
        *product(("early-data", "tfo+early-data"), ("classic", "post-quantum"), ("warm",), ("2",)),
    ]
    asked = [(page, job(*cell, down_bps=4_000_000, up_bps=4_000_000)) for cell in cells]
    for cell, (emulated, simulated) in zip(cells, both(lab, asked), strict=True):
        assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=PLT), cell
        # How requests share datagrams of QUIC depends on moments that are close to each other.
        if cell[3] == "2":
            assert_close_flights(page, simulated, emulated)
        elif not cell[0].startswith("quic"):
            assert first_flights(simulated) == first_flights(emulated), cell
        assert early_data(simulated) == early_data(emulated), cell
