"""What the laboratory saw of a program's first flights: the facts of `prove`, without findings.

The keys are those of `crates/lab/src/jobs/prove`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import ReadOnly


class Socket(TypedDict):
    """A TCP socket that a program connected, according to its system calls.

    `linkage` is `dynamic` or `static`. `asked` is how it requested Fast Open: `TCP_FASTOPEN_CONNECT` or
    `MSG_FASTOPEN`. `asked_late`: it requested it when the socket was connected already.
    """

    program: ReadOnly[str]
    linkage: ReadOnly[str | None]
    tls_libraries: ReadOnly[list[str]]
    destination: ReadOnly[str | None]
    port: ReadOnly[int | None]
    asked: ReadOnly[str | None]
    asked_late: ReadOnly[bool]


class Listener(TypedDict):
    """A socket that was set to listen with Fast Open; `port` is null if it could not be read in time."""

    port: ReadOnly[int | None]


class Watched(TypedDict):
    """What was seen of system calls; `blind` says why nothing was seen."""

    blind: ReadOnly[str | None]
    sockets: ReadOnly[list[Socket]]
    listeners: ReadOnly[list[Listener]]
    io_uring: ReadOnly[list[str]]


class Visit(TypedDict):
    """One run of the program."""

    exit_code: ReadOnly[int]
    error: ReadOnly[str | None]
    elapsed_ms: ReadOnly[float]
    timed_out: ReadOnly[bool]
    left_running: ReadOnly[list[str]]
    output: ReadOnly[str]
    watched: ReadOnly[Watched]


class Hello(TypedDict):
    """The contents of a `ClientHello` over TCP; `bytes` is its length without record headers."""

    bytes: ReadOnly[int]
    is_post_quantum: ReadOnly[bool]
    offers_tls13: ReadOnly[bool]
    can_resume: ReadOnly[bool]
    offers_session: ReadOnly[bool]
    offers_early_data: ReadOnly[bool]


class Wire(TypedDict):
    """What one connection sent and received: some columns of `connections` (docs/results.md)."""

    origin: ReadOnly[str]
    protocol: ReadOnly[str]
    opened_ms: ReadOnly[float]
    syn_payload_bytes: ReadOnly[int]
    cookie: ReadOnly[str]
    syn_data_acked: ReadOnly[bool]
    new_cookie: ReadOnly[bool]
    syn_retransmits: ReadOnly[int]
    closed_ms: ReadOnly[float | None]
    interfered: ReadOnly[str | None]
    first_flight_bytes: ReadOnly[int]
    tls: ReadOnly[str | None]
    resumed: ReadOnly[bool | None]
    early_data: ReadOnly[str]
    early_data_bytes: ReadOnly[int]
    is_answered: ReadOnly[bool]
    has_heard: ReadOnly[bool]


class Flight(Wire):
    """One connection of the program; `socket` is its index in `sockets` of its visit."""

    visit: ReadOnly[int]
    server: ReadOnly[str]
    client_port: ReadOnly[int]
    is_accepted: ReadOnly[bool]
    client_hello: ReadOnly[Hello | None]
    quic_packets: ReadOnly[list[tuple[str, int]]]
    statuses: ReadOnly[list[int]]
    socket: ReadOnly[int | None]


class ProofOfAll(TypedDict):
    """Whether the relay, the servers' sockets and the kernel's counters agree."""

    ok: ReadOnly[bool]
    disagreements: ReadOnly[list[str]]


class ProveFacts(TypedDict):
    """The laboratory's report on a program."""

    visits: ReadOnly[list[Visit]]
    flights: ReadOnly[list[Flight]]
    proof: ReadOnly[ProofOfAll]


class Opening(Wire):
    """A connection from the laboratory's own client to a server program."""

    first_byte_ms: ReadOnly[float | None]
    tickets: ReadOnly[int]
    ticket_allows_early_data: ReadOnly[bool | None]
    error: ReadOnly[str | None]


class ServerFacts(TypedDict):
    """The laboratory's report on a server program."""

    speaks_tls: ReadOnly[bool]
    openings: ReadOnly[list[Opening]]
    watched: ReadOnly[Watched]
    output: ReadOnly[str]
