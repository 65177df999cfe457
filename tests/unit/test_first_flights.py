"""Reasons for what a first flight carried: one code for each combination of recorded facts."""

from typing import Any, cast

import pytest

from firstflight.analysis.first_flights import Conditions, Mechanism, Reason, judge_server, judge_visit
from firstflight.results.first_flights import Flight, Opening, ServerFacts, Visit

WARM = Conditions(sysctl=1, cookies="warm")
SOCKET = {
    "program": "app",
    "linkage": "dynamic",
    "tls_libraries": [],
    "destination": "198.19.0.1:80",
    "port": 40_000,
    "asked": None,
    "asked_late": False,
}
HELLO = {
    "bytes": 250,
    "is_post_quantum": False,
    "offers_tls13": True,
    "can_resume": True,
    "offers_session": True,
    "offers_early_data": False,
}
RESUMED = {"tls": "1.3", "resumed": True}


def wire(**changed: object) -> dict[str, object]:
    """The ledger's row of a plain TCP connection with an answer."""
    return {
        "origin": "http://http.test",
        "protocol": "tcp",
        "opened_ms": 0.0,
        "syn_payload_bytes": 0,
        "cookie": "none",
        "syn_data_acked": False,
        "new_cookie": False,
        "syn_retransmits": 0,
        "closed_ms": 300.0,
        "interfered": None,
        "first_flight_bytes": 80,
        "tls": None,
        "resumed": None,
        "early_data": "none",
        "early_data_bytes": 0,
        "is_answered": True,
        "has_heard": True,
        **changed,
    }


def flight(**changed: object) -> Flight:
    of_program = {
        "visit": 1,
        "server": "198.19.0.1:80",
        "client_port": 40_000,
        "is_accepted": True,
        "client_hello": None,
        "quic_packets": [],
        "statuses": [200],
        "socket": 0,
    }
    return cast(Flight, {**wire(), **of_program, **changed})


def visit(**socket: object) -> Visit:
    watched = {"blind": None, "sockets": [{**SOCKET, **socket}], "io_uring": []}
    return cast(Visit, {"watched": watched})


def reasons(one: Flight, seen: Visit | None = None, given: Conditions = WARM) -> dict[str, str]:
    [findings] = judge_visit([one], [seen or visit()], given)
    assert all(finding.detail.endswith(".") for finding in findings)
    return {finding.mechanism.value: finding.reason.value for finding in findings}


SENT = {"cookie": "sent", "syn_payload_bytes": 80}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({**SENT, "syn_data_acked": True}, "used"),
        ({**SENT, "syn_data_acked": True, "has_heard": False, "interfered": "drop"}, "black-hole"),
        ({**SENT, "is_answered": False, "closed_ms": None, "syn_retransmits": 5}, "black-hole"),
        ({**SENT, "is_answered": False, "has_heard": False}, "reset"),
        ({**SENT, "syn_retransmits": 1}, "syn-data-dropped"),
        ({**SENT, "new_cookie": True}, "cookie-refused"),
        (SENT, "data-not-acknowledged"),
        ({"cookie": "sent"}, "no-data-with-cookie"),
        ({"cookie": "requested", "new_cookie": True}, "no-cookie-yet"),
        ({"cookie": "requested"}, "option-not-answered"),
        ({"cookie": "requested", "syn_retransmits": 1}, "option-dropped"),
        ({"is_answered": False, "closed_ms": None}, "no-answer"),
        ({}, "did-not-ask"),
    ],
)
def test_what_became_of_fast_open_is_told_from_the_wire(changed: dict[str, object], reason: str) -> None:
    assert reasons(flight(**changed)) == {"tfo": reason}


@pytest.mark.parametrize(
    ("socket", "sysctl", "reason"),
    [
        ({}, 1, "did-not-ask"),
        ({}, 0, "did-not-ask"),
        ({"linkage": "static"}, 1, "static-binary"),
        ({"linkage": "static", "asked": "MSG_FASTOPEN"}, 0, "sysctl-off"),
        ({"asked": "TCP_FASTOPEN_CONNECT"}, 0, "sysctl-off"),
        ({"asked": "TCP_FASTOPEN_CONNECT"}, 1, "no-option-sent"),
        ({"asked_late": True}, 1, "asked-too-late"),
    ],
)
def test_why_a_syn_has_no_option_is_told_from_what_the_program_asked(
    socket: dict[str, object], sysctl: int, reason: str
) -> None:
    assert reasons(flight(), visit(**socket), Conditions(sysctl, "warm")) == {"tfo": reason}


def test_where_calls_were_not_seen_nothing_is_said_of_what_the_program_asked() -> None:
    no_filter: dict[str, object] = {"blind": "no filter", "sockets": [], "io_uring": []}
    by_io_uring: dict[str, object] = {"blind": None, "sockets": [], "io_uring": ["app"]}
    for watched in (no_filter, by_io_uring):
        blind = cast(Visit, {"watched": watched})
        assert reasons(flight(socket=None), blind) == {"tfo": "calls-not-seen"}
        assert reasons(flight(socket=None), blind, Conditions(0, "warm")) == {"tfo": "sysctl-off"}


def test_a_client_hello_that_is_longer_than_the_syn_saves_nothing() -> None:
    hello = {**HELLO, "bytes": 1_500, "is_post_quantum": True, "offers_session": False}
    long = flight(cookie="sent", syn_payload_bytes=1_420, syn_data_acked=True, client_hello=hello, tls="1.3")
    assert reasons(long)["tfo"] == "hello-too-long"
    fits = {**long, "client_hello": {**hello, "bytes": 1_415}}
    assert reasons(cast(Flight, fits))["tfo"] == "used"


EARLY = {"offers_early_data": True}


@pytest.mark.parametrize(
    ("hello", "changed", "cookies", "reason"),
    [
        (EARLY, {**RESUMED, "early_data": "accepted", "early_data_bytes": 90}, "warm", "used"),
        (
            EARLY,
            {**RESUMED, "early_data": "accepted", "early_data_bytes": 90},
            "too-early",
            "answered-too-early",
        ),
        (
            EARLY,
            {"tls": "1.3", "early_data": "rejected", "early_data_bytes": 90},
            "stale",
            "early-data-rejected",
        ),
        (EARLY, {**RESUMED, "early_data": "none"}, "warm", "early-data-not-sent"),
        (EARLY, {"early_data": "sent", "early_data_bytes": 90}, "warm", "early-data-unanswered"),
        ({}, RESUMED, "warm", "early-data-not-sent"),
        ({}, RESUMED, "no-early-data", "ticket-without-early-data"),
        ({}, {"tls": "1.3", "resumed": False}, "stale", "ticket-refused"),
        ({"offers_tls13": False, "offers_session": False}, {"tls": "1.2"}, "warm", "no-tls13"),
        ({"can_resume": False, "offers_session": False}, {"tls": "1.3"}, "warm", "no-resumption"),
        ({"offers_session": False}, {"tls": "1.3"}, "warm", "no-ticket-yet"),
    ],
)
def test_what_became_of_early_data(
    hello: dict[str, object], changed: dict[str, object], cookies: str, reason: str
) -> None:
    one = flight(origin="https://https.test", client_hello={**HELLO, **hello}, **changed)
    assert reasons(one, given=Conditions(1, cookies))["early-data"] == reason


def test_a_ticket_is_missed_only_where_the_server_had_given_one() -> None:
    first = flight(client_hello={**HELLO, "offers_session": False}, tls="1.3")
    other = flight(client_hello={**HELLO, "offers_session": False}, tls="1.3", server="198.19.0.9:443")
    found = judge_visit([first, first, other], [visit()], WARM)
    early = [next(f for f in of if f.mechanism is Mechanism.EARLY_DATA).reason for of in found]
    assert early == [Reason.NO_TICKET_YET, Reason.NO_TICKET_KEPT, Reason.NO_TICKET_YET]


def test_quic_has_0_rtt_and_no_fast_open() -> None:
    over_udp: dict[str, Any] = {"protocol": "udp", "socket": None, "tls": "1.3"}
    assert reasons(flight(**over_udp)) == {"0rtt": "no-ticket-yet"}
    assert reasons(flight(**over_udp, resumed=True)) == {"0rtt": "early-data-not-sent"}
    used = flight(**over_udp, resumed=True, early_data="accepted", early_data_bytes=400)
    assert reasons(used) == {"0rtt": "used"}


def opening(**changed: object) -> Opening:
    of_server = {"first_byte_ms": 200.0, "tickets": 0, "ticket_allows_early_data": None, "error": None}
    return cast(Opening, {**wire(cookie="requested"), **of_server, **changed})


def server(
    *openings: Opening, listeners: tuple[int | None, ...] = (80,), speaks_tls: bool = False
) -> ServerFacts:
    watched: dict[str, object] = {
        "blind": None,
        "sockets": [],
        "listeners": [{"port": port} for port in listeners],
        "io_uring": [],
    }
    facts = {"speaks_tls": speaks_tls, "openings": list(openings), "watched": watched, "output": ""}
    return cast(ServerFacts, facts)


def test_a_server_that_takes_no_data_in_the_syn_gets_the_reason() -> None:
    def reason(facts: ServerFacts, sysctl: int = 3) -> str:
        [finding] = judge_server(facts, 80, sysctl)
        return finding.reason.value

    given, taken = opening(new_cookie=True), opening(**SENT, syn_data_acked=True)
    assert reason(server(given, taken)) == "used"
    assert reason(server(given, opening(**SENT))) == "data-not-acknowledged"
    assert reason(server(opening(), opening())) == "no-cookie-given"
    assert reason(server(opening(), opening(), listeners=())) == "server-did-not-ask"
    # The program listens on another port with Fast Open, but not on this one.
    assert reason(server(opening(), opening(), listeners=(81,))) == "server-did-not-ask"
    assert reason(server(opening(), opening(), listeners=(81, None))) == "no-cookie-given"
    assert reason(server(opening(), opening()), sysctl=1) == "sysctl-off"


def test_a_server_with_tls_is_judged_by_its_tickets() -> None:
    def reason(first: dict[str, object], last: dict[str, object]) -> str:
        openings = (opening(tls="1.3", **first), opening(**{"tls": "1.3", **last}))
        return judge_server(server(*openings, speaks_tls=True), 80, 3)[1].reason.value

    tickets: dict[str, object] = {"tickets": 2}
    assert reason(tickets, {"resumed": True, "early_data": "accepted"}) == "used"
    assert reason(tickets, {"resumed": True, "early_data": "rejected"}) == "early-data-rejected"
    assert reason(tickets, {"resumed": True}) == "ticket-without-early-data"
    assert reason(tickets, {"resumed": False}) == "ticket-refused"
    assert reason({}, {"resumed": False}) == "no-tickets-given"
    assert reason(tickets, {"tls": "1.2"}) == "no-tls13"
    assert reason(tickets, {"tls": None, "error": "it hung up"}) == "no-tls"
