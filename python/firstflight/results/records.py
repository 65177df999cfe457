"""What a journal line holds, typed: one load with its requests, its connections and its proof.

`check` makes sure that a line is such a record when it is read and before it is written; no other code checks
it. `schema` says what each column means; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast


class Factors(TypedDict):
    """Columns in which two loads of a page may differ by the plan: path, transport, servers and client.

    Those that are read by name; null where an older journal does not say.
    """

    engine: str
    client: str
    cookies: str
    topology: str
    rtt_ms: float
    down_mbps: float | None
    up_mbps: float | None
    loss: float
    loss_burst: float | None
    loss_in_burst: float | None
    jitter_ms: float | None
    reorder: bool | None
    duplicate: float | None
    down_trace: str | None
    up_trace: str | None
    queue: str | None
    ecn: bool | None
    middlebox: str | None
    initial_window: int | None
    congestion_control: str | None
    scheme: str | None
    http: str | None
    post_quantum: bool | None
    keep_alive: bool | None
    origin_rtt: str | None
    lookups: bool | None
    server_time: bool | None
    processing: float | None
    determinism: bool | None
    browser: str | None
    what_if: str | None


class LoadRow(Factors):
    """The columns of the loads table that stand in a record's `load`."""

    load_id: str
    block: int
    order: int
    repeat: int
    page: str
    mode: str
    treatment: str
    baseline: str
    seed: int
    started_at: str | None
    plt_ms: float | None
    first_byte_ms: float | None
    requests: int | None
    failed_requests: int | None
    unmatched_requests: int | None
    connections: int | None
    tfo_offered: int | None
    tfo_accepted: int | None
    bytes_down: int | None
    bytes_up: int | None
    retransmits: int | None
    status: str
    error: str | None


class RequestRow(TypedDict):
    """A request: the columns of the requests table without `load_id`, and why it failed."""

    index: int
    url: str
    origin: str
    connection: int | None
    queued_ms: float | None
    connect_start_ms: float | None
    connect_end_ms: float | None
    sent_ms: float | None
    first_byte_ms: float | None
    end_ms: float | None
    status: int | None
    mime: str | None
    body_bytes: int | None
    wire_bytes: int | None
    initiator: int | None
    error: NotRequired[str | None]


class ConnectionRow(TypedDict):
    """A connection: the columns of the connections table without `load_id`, and what else the ledger saw."""

    connection: int
    origin: str
    opened_ms: float | None
    syn_payload_bytes: int
    cookie: str
    syn_data_acked: bool
    syn_retransmits: int
    bytes_down: int
    bytes_up: int
    closed_ms: float | None
    retransmits: NotRequired[int]
    interfered: NotRequired[str | None]


class Ledger(TypedDict, total=False):
    """Sums of what the relay saw of a load's connections."""

    interfered: int


class Proof(TypedDict, total=False):
    """What the witnesses of a load said; empty where it failed before.

    `ok`: all agree, and the load did what its treatment promises; else `disagreements` says what did not.
    """

    ok: bool
    disagreements: list[str] | None
    ledger: Ledger
    witnesses: list[str]
    tcp_info: dict[str, int]
    counters: dict[str, int]


class Relay(TypedDict, total=False):
    """What the relay did with packets, and how late; empty where the load failed before."""

    late: bool
    late_max_ms: float | None
    late_p99_ms: float
    lost: int
    dropped: int
    duplicated: int


class LoadRecord(TypedDict):
    """One load as it stands in the journal.

    Further keys stay in the journal and out of the tables.
    """

    load: LoadRow
    requests: list[RequestRow]
    connections: list[ConnectionRow]
    proof: Proof
    relay: Relay
    attempt: NotRequired[int]
    """Counts from 1; above it where a relay was late, or the client broke, and the load was made again."""
    instrument_failure: NotRequired[bool]
    """The laboratory could not be built, or died: `error` says how. The line is of no load."""


def plt_ms(record: LoadRecord) -> float:
    """The page load time of a load that ended ok, ms.

    Raises:
        ValueError: It has none.
    """
    found = record["load"]["plt_ms"]
    if found is None:
        raise ValueError(f"{record['load']['load_id']}: no page load time")
    return float(found)


def numeric(load: LoadRow, column: str) -> float | None:
    """A column of numbers, by its name."""
    return cast(Mapping[str, float | None], load)[column]
