"""Whether a connection's first flight carried data, and if not, why: reasons as codes.

Each mechanism of a connection has one finding. Over TCP the mechanism is Fast Open, and with TLS also early
data; over QUIC it is 0-RTT. A reason follows from the packets and from the program's system calls. If the
calls could not be seen, the code says so, and no reason is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from firstflight.results.first_flights import (
    Flight,
    Hello,
    Opening,
    ServerFacts,
    Socket,
    Visit,
    Watched,
    Wire,
)


class Mechanism(StrEnum):
    """A mechanism that carries data before the handshake is complete."""

    FAST_OPEN = "tfo"
    EARLY_DATA = "early-data"
    ZERO_RTT = "0rtt"


class Reason(StrEnum):
    """Why a first flight carried data, or none. Scripts compare these codes, so a name never changes."""

    USED = "used"
    SYSCTL_OFF = "sysctl-off"
    DID_NOT_ASK = "did-not-ask"
    STATIC_BINARY = "static-binary"
    CALLS_NOT_SEEN = "calls-not-seen"
    ASKED_TOO_LATE = "asked-too-late"
    NO_OPTION_SENT = "no-option-sent"
    NO_COOKIE_YET = "no-cookie-yet"
    OPTION_NOT_ANSWERED = "option-not-answered"
    OPTION_DROPPED = "option-dropped"
    NO_DATA_WITH_COOKIE = "no-data-with-cookie"
    COOKIE_REFUSED = "cookie-refused"
    DATA_NOT_ACKNOWLEDGED = "data-not-acknowledged"
    SYN_DATA_DROPPED = "syn-data-dropped"
    BLACK_HOLE = "black-hole"
    RESET = "reset"
    NO_ANSWER = "no-answer"
    HELLO_TOO_LONG = "hello-too-long"
    NO_TLS = "no-tls"
    NO_TLS13 = "no-tls13"
    NO_RESUMPTION = "no-resumption"
    NO_TICKET_YET = "no-ticket-yet"
    NO_TICKET_KEPT = "no-ticket-kept"
    TICKET_WITHOUT_EARLY_DATA = "ticket-without-early-data"
    TICKET_REFUSED = "ticket-refused"
    EARLY_DATA_NOT_SENT = "early-data-not-sent"
    EARLY_DATA_REJECTED = "early-data-rejected"
    EARLY_DATA_UNANSWERED = "early-data-unanswered"
    ANSWERED_TOO_EARLY = "answered-too-early"
    SERVER_DID_NOT_ASK = "server-did-not-ask"
    NO_COOKIE_GIVEN = "no-cookie-given"
    NO_TICKETS_GIVEN = "no-tickets-given"


@dataclass(frozen=True)
class Finding:
    """The finding about one mechanism on one connection.

    Attributes:
        mechanism: The mechanism.
        reason: The reason, as a code.
        detail: The reason with this connection's numbers, in one sentence.
        hint: What to do about it; empty if nothing needs to be done.
    """

    mechanism: Mechanism
    reason: Reason
    detail: str
    hint: str = ""

    @property
    def used(self) -> bool:
        """Whether the first flight carried data that the server accepted."""
        return self.reason is Reason.USED

    def to_json(self) -> dict[str, object]:
        """The finding as the JSON document has it."""
        return {
            "mechanism": self.mechanism.value,
            "used": self.used,
            "reason": self.reason.value,
            "detail": self.detail,
            "hint": self.hint,
        }


@dataclass(frozen=True)
class Conditions:
    """What the laboratory set up for kernel and servers.

    Attributes:
        sysctl: `net.ipv4.tcp_fastopen` of the program.
        cookies: The state of cookies and tickets.
    """

    sysctl: int
    cookies: str


_CLIENT, _SERVER = 0x1, 0x2
"""Bits of `net.ipv4.tcp_fastopen`."""
_RECORD_HEADER = 5

HINTS: Final[Mapping[Reason, str]] = {
    Reason.SYSCTL_OFF: "as root: sysctl -w net.ipv4.tcp_fastopen=1 (3 for servers too)",
    Reason.DID_NOT_ASK: "look for an option of the program (curl --tcp-fastopen), or set "
    "TCP_FASTOPEN_CONNECT on the socket before connect; firstflight exec sets it from outside",
    Reason.STATIC_BINARY: "no library can be preloaded into it, so only a change of its source helps: set "
    "TCP_FASTOPEN_CONNECT (30) before connect, in Go by Control of net.Dialer",
    Reason.CALLS_NOT_SEEN: "run strace -f -e trace=%net on the program",
    Reason.ASKED_TOO_LATE: "set TCP_FASTOPEN_CONNECT between socket and connect",
    Reason.NO_OPTION_SENT: "look at the packets: --capture FILE.pcapng",
    Reason.NO_COOKIE_YET: "connect again: the kernel has the cookie now",
    Reason.OPTION_NOT_ANSWERED: "the server needs TCP_FASTOPEN on its listening socket and bit 2 of "
    "net.ipv4.tcp_fastopen; or a middlebox takes the option out",
    Reason.OPTION_DROPPED: "a middlebox drops SYNs with the option: each costs a second",
    Reason.NO_DATA_WITH_COOKIE: "write the request before anything that waits for the connection",
    Reason.COOKIE_REFUSED: "servers behind one address must share their key (net.ipv4.tcp_fastopen_key)",
    Reason.DATA_NOT_ACKNOWLEDGED: "a middlebox takes data or option out of SYNs, or the server's queue for "
    "Fast Open is full",
    Reason.SYN_DATA_DROPPED: "a middlebox drops SYNs with data, and each costs a second: do without "
    "Fast Open there",
    Reason.BLACK_HOLE: "do without it on this path; for Fast Open Linux has "
    "net.ipv4.tcp_fastopen_blackhole_timeout_sec",
    Reason.RESET: "a middlebox resets SYNs with data, or nothing listens there",
    Reason.NO_ANSWER: "nothing answers there",
    Reason.HELLO_TOO_LONG: "without a post-quantum key share (X25519MLKEM768) it is 1,220 bytes shorter",
    Reason.NO_TLS13: "early data needs TLS 1.3",
    Reason.NO_RESUMPTION: "its TLS library, or its settings, resume no session of TLS 1.3",
    Reason.NO_TICKET_KEPT: "keep sessions between connections; between processes in a file, as curl "
    "--ssl-sessions does",
    Reason.TICKET_WITHOUT_EARLY_DATA: "allow early data at the server (nginx: ssl_early_data on, for the "
    "default server)",
    Reason.TICKET_REFUSED: "servers behind one name must share their ticket keys",
    Reason.EARLY_DATA_NOT_SENT: "turn it on in the program (curl --tls-earlydata); most TLS libraries send "
    "none by themselves",
    Reason.EARLY_DATA_REJECTED: "servers behind one name must share their ticket keys",
    Reason.EARLY_DATA_UNANSWERED: "look at the packets: --capture FILE.pcapng",
    Reason.ANSWERED_TOO_EARLY: "the server wants this request after the handshake (RFC 8470)",
    Reason.SERVER_DID_NOT_ASK: "turn it on in the server (nginx: listen … fastopen=N; haproxy: bind … tfo), "
    "or set TCP_FASTOPEN on the listening socket",
    Reason.NO_COOKIE_GIVEN: "look at TCPFastOpenListenOverflow in /proc/net/netstat of the server",
    Reason.NO_TICKETS_GIVEN: "turn session tickets on",
}
"""What to do, by reason; reasons that need no action are left out."""


def judge_visit(flights: Sequence[Flight], visits: Sequence[Visit], given: Conditions) -> list[list[Finding]]:
    """The findings of every connection, in order.

    Args:
        flights: All connections of both visits.
        visits: The visits.
        given: What the laboratory set up.
    """
    findings = []
    resumable: set[str] = set()
    for flight in flights:
        findings.append(
            list(_of_flight(flight, visits[flight["visit"] - 1], given, flight["server"] in resumable))
        )
        if flight["tls"] == "1.3":
            resumable.add(flight["server"])
    return findings


def _of_flight(flight: Flight, visit: Visit, given: Conditions, has_been_there: bool) -> Iterator[Finding]:
    if flight["protocol"] == "udp":
        yield _zero_rtt(flight, given, has_been_there)
        return
    watched, place = visit["watched"], flight["socket"]
    yield _fast_open(flight, watched, None if place is None else watched["sockets"][place], given)
    hello = flight["client_hello"]
    if hello:
        yield _early_data(flight, hello, given, has_been_there)
    elif flight["origin"].startswith("https:") and flight["has_heard"]:
        yield Finding(Mechanism.EARLY_DATA, Reason.NO_TLS, "It speaks no TLS to a port that does.")


def _found(mechanism: Mechanism, reason: Reason, detail: str, hint: str | None = None) -> Finding:
    return Finding(mechanism, reason, detail, HINTS.get(reason, "") if hint is None else hint)


def _fast_open(flight: Flight, watched: Watched, socket: Socket | None, given: Conditions) -> Finding:
    if flight["syn_payload_bytes"] or flight["cookie"] != "none":
        return _of_option(flight, flight["client_hello"])
    reason, detail = _without_option(flight, watched, socket, given)
    return _found(Mechanism.FAST_OPEN, reason, detail)


def _of_option(wire: Wire, hello: Hello | None) -> Finding:
    """The finding about a connection whose SYN had the option."""
    reason, detail = _with_data(wire, hello) if wire["syn_payload_bytes"] else _without_data(wire)
    return _found(Mechanism.FAST_OPEN, reason, detail)


def _with_data(wire: Wire, hello: Hello | None) -> tuple[Reason, str]:
    carried = f"The SYN carried {wire['syn_payload_bytes']:,} bytes"
    if not wire["syn_data_acked"]:
        return _not_taken(wire, carried)
    if wire["interfered"] == "drop" and not wire["has_heard"]:
        return Reason.BLACK_HOLE, f"{carried}, the SYN-ACK took them, and nothing came after it."
    hello_bytes = hello["bytes"] + _RECORD_HEADER if hello else 0
    if hello_bytes > wire["syn_payload_bytes"]:
        of = "post-quantum " if hello and hello["is_post_quantum"] else ""
        return (
            Reason.HELLO_TOO_LONG,
            f"{carried} of a {of}ClientHello of {hello_bytes:,}: the rest waited for the SYN-ACK, "
            "and no round trip was saved.",
        )
    return Reason.USED, f"{carried}, and the SYN-ACK acknowledged them."


def _not_taken(wire: Wire, carried: str) -> tuple[Reason, str]:
    if not wire["is_answered"] and wire["closed_ms"] is not None:
        return Reason.RESET, f"{carried}, and a reset answered it."
    if not wire["is_answered"]:
        return (
            Reason.BLACK_HOLE,
            f"{carried}, and no SYN-ACK came, nor to {wire['syn_retransmits']} SYNs after it.",
        )
    if wire["syn_retransmits"]:
        return (
            Reason.SYN_DATA_DROPPED,
            f"{carried} and was not answered; the SYN that went again without them was.",
        )
    if wire["new_cookie"]:
        return (
            Reason.COOKIE_REFUSED,
            f"{carried} with a cookie that the server refused; it gave another, and the data went again.",
        )
    return Reason.DATA_NOT_ACKNOWLEDGED, f"{carried}; the SYN-ACK left them out and had no new cookie."


def _without_data(wire: Wire) -> tuple[Reason, str]:
    if not wire["is_answered"]:
        reason = Reason.NO_ANSWER if wire["closed_ms"] is None else Reason.RESET
        return reason, "The SYN had the option and no SYN-ACK came."
    if wire["cookie"] == "sent":
        return (
            Reason.NO_DATA_WITH_COOKIE,
            "The SYN carried a cookie and no data: the program had written nothing yet.",
        )
    if wire["new_cookie"]:
        return (
            Reason.NO_COOKIE_YET,
            "The kernel had no cookie for this server; the SYN asked for one, and one came.",
        )
    if wire["syn_retransmits"]:
        return (
            Reason.OPTION_DROPPED,
            "The SYN asked for a cookie and was not answered; one without the option, sent again, was.",
        )
    return Reason.OPTION_NOT_ANSWERED, "The SYN asked for a cookie, and the SYN-ACK brought none."


def _without_option(
    flight: Flight, watched: Watched, socket: Socket | None, given: Conditions
) -> tuple[Reason, str]:
    """Why a connection's SYN lacked the option."""
    if not flight["is_answered"] and flight["closed_ms"] is None:
        return Reason.NO_ANSWER, "A plain SYN was not answered."
    if socket is None:
        return _unseen(watched, given)
    return _unasked(socket) if socket["asked"] is None else _asked_without_effect(socket, given)


def _asked_without_effect(socket: Socket, given: Conditions) -> tuple[Reason, str]:
    asked = f"{socket['program']} asked by {socket['asked']}"
    if not given.sysctl & _CLIENT:
        return Reason.SYSCTL_OFF, f"{asked}, and the kernel refused: net.ipv4.tcp_fastopen is {given.sysctl}."
    return Reason.NO_OPTION_SENT, f"{asked}, and the kernel sent a SYN without the option."


def _unasked(socket: Socket) -> tuple[Reason, str]:
    program = socket["program"]
    if socket["asked_late"]:
        return (
            Reason.ASKED_TOO_LATE,
            f"{program} set TCP_FASTOPEN_CONNECT when the socket was connecting already.",
        )
    if socket["linkage"] == "static":
        return (
            Reason.STATIC_BINARY,
            f"{program} is linked statically and did not ask: connect came without TCP_FASTOPEN_CONNECT.",
        )
    return (
        Reason.DID_NOT_ASK,
        f"{program} did not ask: connect came without TCP_FASTOPEN_CONNECT, and no MSG_FASTOPEN.",
    )


def _unseen(watched: Watched, given: Conditions) -> tuple[Reason, str]:
    """Why a connection's SYN lacked the option, if the calls of its socket were not seen."""
    if watched["io_uring"]:
        why = f"{', '.join(watched['io_uring'])} uses io_uring, whose calls cannot be watched"
    else:
        why = watched["blind"] or "the call that opened it was not seen"
    if not given.sysctl & _CLIENT:
        return (
            Reason.SYSCTL_OFF,
            f"net.ipv4.tcp_fastopen is {given.sysctl}: the kernel refuses it to every program ({why}).",
        )
    return Reason.CALLS_NOT_SEEN, f"The SYN had no option; whether the program asked is not known: {why}."


def _early_data(flight: Flight, hello: Hello, given: Conditions, has_been_there: bool) -> Finding:
    reason, detail = _tls_reason(flight, hello, given, has_been_there)
    return _found(Mechanism.EARLY_DATA, reason, detail)


def _tls_reason(flight: Flight, hello: Hello, given: Conditions, has_been_there: bool) -> tuple[Reason, str]:
    sent = f"{flight['early_data_bytes']:,} bytes of early data followed the ClientHello"
    if hello["offers_early_data"]:
        return _fate_of_early_data(flight, given, sent)
    if not hello["offers_tls13"]:
        return Reason.NO_TLS13, "The ClientHello does not offer TLS 1.3."
    if not hello["offers_session"]:
        return _without_session(hello, has_been_there)
    if flight["resumed"] is False:
        return Reason.TICKET_REFUSED, "The program offered a session, and the server did not know it."
    if given.cookies == "no-early-data":
        return Reason.TICKET_WITHOUT_EARLY_DATA, "The session was resumed; its ticket allows no early data."
    return (
        Reason.EARLY_DATA_NOT_SENT,
        "The program offered a session whose ticket allows early data, and sent none.",
    )


def _fate_of_early_data(flight: Flight, given: Conditions, sent: str) -> tuple[Reason, str]:
    match flight["early_data"]:
        case "accepted" if given.cookies == "too-early":
            return Reason.ANSWERED_TOO_EARLY, f"{sent}; the server answered 425 Too Early."
        case "accepted":
            return Reason.USED, f"{sent}, and the server took them."
        case "rejected":
            return Reason.EARLY_DATA_REJECTED, f"{sent}, and the server rejected them."
        case "none" if not flight["early_data_bytes"]:
            return (
                Reason.EARLY_DATA_NOT_SENT,
                "The ClientHello announced early data, and none followed it.",
            )
    if flight["interfered"] == "drop":
        return Reason.BLACK_HOLE, f"{sent}, and the path dropped what carried them."
    return Reason.EARLY_DATA_UNANSWERED, f"{sent}; what the server made of them is not known."


def _without_session(hello: Hello, has_been_there: bool) -> tuple[Reason, str]:
    if not hello["can_resume"]:
        return (
            Reason.NO_RESUMPTION,
            "The ClientHello has no psk_key_exchange_modes: servers give such a client no ticket.",
        )
    if not has_been_there:
        return (
            Reason.NO_TICKET_YET,
            "It is the first connection with TLS to this server: there was no ticket.",
        )
    return Reason.NO_TICKET_KEPT, "The server had given tickets, and the program offered none."


def _zero_rtt(flight: Flight, given: Conditions, has_been_there: bool) -> Finding:
    reason, detail = _quic_reason(flight, given, has_been_there)
    return _found(Mechanism.ZERO_RTT, reason, detail)


def _quic_reason(flight: Flight, given: Conditions, has_been_there: bool) -> tuple[Reason, str]:
    if not flight["is_answered"]:
        return Reason.NO_ANSWER, "No datagram came back."
    if flight["early_data_bytes"]:
        sent = f"0-RTT packets of {flight['early_data_bytes']:,} bytes went with the Initial"
        return _fate_of_early_data(flight, given, sent)
    if flight["resumed"]:
        if given.cookies == "no-early-data":
            return (
                Reason.TICKET_WITHOUT_EARLY_DATA,
                "The session was resumed; its ticket allows no early data.",
            )
        return Reason.EARLY_DATA_NOT_SENT, "The session was resumed, and no 0-RTT packet was sent."
    if not has_been_there:
        return (
            Reason.NO_TICKET_YET,
            "It is the first connection over QUIC to this server: there was no ticket.",
        )
    return Reason.NO_TICKET_KEPT, "The server had given tickets, and no session was resumed."


def judge_server(facts: ServerFacts, port: int, sysctl: int) -> list[Finding]:
    """The findings about a server program.

    Args:
        facts: What the laboratory saw. The last connection had everything that the earlier ones received.
        port: The port that it listens on.
        sysctl: `net.ipv4.tcp_fastopen` of the program.
    """
    findings = [_server_fast_open(facts, port, sysctl)]
    if facts["speaks_tls"]:
        findings.append(_server_early_data(facts))
    return findings


def _server_fast_open(facts: ServerFacts, port: int, sysctl: int) -> Finding:
    last, watched = facts["openings"][-1], facts["watched"]
    if last["syn_payload_bytes"]:
        return _of_option(last, None)
    if any(opening["new_cookie"] for opening in facts["openings"]) or not last["is_answered"]:
        return _of_option(last, None)
    asked = any(listener["port"] in (None, port) for listener in watched["listeners"])
    if asked and not sysctl & _SERVER:
        return _found(
            Mechanism.FAST_OPEN,
            Reason.SYSCTL_OFF,
            f"The server set TCP_FASTOPEN; net.ipv4.tcp_fastopen is {sysctl}, and bit 2 is not set.",
            "as root: sysctl -w net.ipv4.tcp_fastopen=3",
        )
    if not asked and watched["blind"] is None and not watched["io_uring"]:
        return _found(
            Mechanism.FAST_OPEN,
            Reason.SERVER_DID_NOT_ASK,
            "The SYN asked for a cookie and got none: the server did not set TCP_FASTOPEN on its socket.",
        )
    return _found(
        Mechanism.FAST_OPEN,
        Reason.NO_COOKIE_GIVEN,
        "The SYN asked for a cookie, and the SYN-ACK brought none.",
    )


def _server_early_data(facts: ServerFacts) -> Finding:
    reason, detail = _server_tls_reason(facts)
    return _found(Mechanism.EARLY_DATA, reason, detail)


def _server_tls_reason(facts: ServerFacts) -> tuple[Reason, str]:
    last = facts["openings"][-1]
    if last["tls"] is None:
        return Reason.NO_TLS, f"The handshake of TLS failed: {last['error']}."
    if last["tls"] != "1.3":
        return Reason.NO_TLS13, f"The server speaks TLS {last['tls']}."
    if not any(opening["tickets"] for opening in facts["openings"][:-1]):
        return Reason.NO_TICKETS_GIVEN, "The server gave no session ticket."
    return _server_ticket(last)


def _server_ticket(last: Opening) -> tuple[Reason, str]:
    match last["early_data"]:
        case "accepted":
            return Reason.USED, "A request followed the ClientHello as early data, and the server took it."
        case "rejected":
            return (
                Reason.EARLY_DATA_REJECTED,
                "Its ticket allows early data, and the server rejected what was sent.",
            )
    if not last["resumed"]:
        return Reason.TICKET_REFUSED, "The server did not resume the session of its own ticket."
    return (
        Reason.TICKET_WITHOUT_EARLY_DATA,
        "The server resumed the session; its ticket allows no early data.",
    )
