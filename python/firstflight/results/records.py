"""Types of a journal line: one load with its requests, its connections and its proof.

`check` verifies that a line is such a record when it is read and before it is written; no other code checks
it. `schema` has the meaning of each column; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from typing_extensions import ReadOnly


class Factors(TypedDict):
    """Columns in which two loads of a page may differ by the plan: path, transport, servers and client.

    Only those that code reads by name are listed. A value is null if an older journal lacks it.
    """

    engine: ReadOnly[str]
    client: ReadOnly[str]
    cookies: ReadOnly[str]
    topology: ReadOnly[str]
    rtt_ms: ReadOnly[float]
    down_mbps: ReadOnly[float | None]
    up_mbps: ReadOnly[float | None]
    loss: ReadOnly[float]
    loss_burst: ReadOnly[float | None]
    loss_in_burst: ReadOnly[float | None]
    jitter_ms: ReadOnly[float | None]
    reorder: ReadOnly[bool | None]
    duplicate: ReadOnly[float | None]
    down_trace: ReadOnly[str | None]
    up_trace: ReadOnly[str | None]
    queue: ReadOnly[str | None]
    ecn: ReadOnly[bool | None]
    middlebox: ReadOnly[str | None]
    initial_window: ReadOnly[int | None]
    congestion_control: ReadOnly[str | None]
    ip: ReadOnly[str]
    scheme: ReadOnly[str | None]
    http: ReadOnly[str | None]
    priorities: ReadOnly[str]
    post_quantum: ReadOnly[bool | None]
    certificate_bytes: ReadOnly[int]
    keep_alive: ReadOnly[bool | None]
    origin_rtt: ReadOnly[str | None]
    lookups: ReadOnly[bool | None]
    server_time: ReadOnly[bool | None]
    processing: ReadOnly[float | None]
    determinism: ReadOnly[bool | None]
    browser: ReadOnly[str | None]
    what_if: ReadOnly[str | None]


class LoadRow(Factors):
    """The columns of the loads table that are in a record's `load`."""

    load_id: ReadOnly[str]
    block: ReadOnly[int]
    order: ReadOnly[int]
    repeat: ReadOnly[int]
    page: ReadOnly[str]
    version: ReadOnly[str]
    mode: ReadOnly[str]
    treatment: ReadOnly[str]
    baseline: ReadOnly[str]
    seed: ReadOnly[int]
    started_at: ReadOnly[str | None]
    plt_ms: ReadOnly[float | None]
    first_byte_ms: ReadOnly[float | None]
    requests: ReadOnly[int | None]
    failed_requests: ReadOnly[int | None]
    unmatched_requests: ReadOnly[int | None]
    connections: ReadOnly[int | None]
    tfo_offered: ReadOnly[int | None]
    tfo_accepted: ReadOnly[int | None]
    bytes_down: ReadOnly[int | None]
    bytes_up: ReadOnly[int | None]
    retransmits: ReadOnly[int | None]
    status: ReadOnly[str]
    error: ReadOnly[str | None]


class RequestRow(TypedDict):
    """A request: the columns of the requests table without `load_id`, and the error if it failed."""

    index: ReadOnly[int]
    url: ReadOnly[str]
    origin: ReadOnly[str]
    connection: ReadOnly[int | None]
    queued_ms: ReadOnly[float | None]
    connect_start_ms: ReadOnly[float | None]
    connect_end_ms: ReadOnly[float | None]
    sent_ms: ReadOnly[float | None]
    first_byte_ms: ReadOnly[float | None]
    end_ms: ReadOnly[float | None]
    status: ReadOnly[int | None]
    mime: ReadOnly[str | None]
    body_bytes: ReadOnly[int | None]
    wire_bytes: ReadOnly[int | None]
    initiator: ReadOnly[int | None]
    error: NotRequired[ReadOnly[str | None]]


class ConnectionRow(TypedDict):
    """A connection: the columns of the connections table without `load_id`, and further ledger entries."""

    connection: ReadOnly[int]
    origin: ReadOnly[str]
    opened_ms: ReadOnly[float | None]
    syn_payload_bytes: ReadOnly[int]
    cookie: ReadOnly[str]
    syn_data_acked: ReadOnly[bool]
    syn_retransmits: ReadOnly[int]
    bytes_down: ReadOnly[int]
    bytes_up: ReadOnly[int]
    closed_ms: ReadOnly[float | None]
    retransmits: NotRequired[ReadOnly[int]]
    interfered: NotRequired[ReadOnly[str | None]]
    first_flight_bytes: NotRequired[ReadOnly[int | None]]
    tls: NotRequired[ReadOnly[str | None]]
    resumed: NotRequired[ReadOnly[bool | None]]
    early_data: NotRequired[ReadOnly[str | None]]
    early_data_bytes: NotRequired[ReadOnly[int | None]]
    protocol: NotRequired[ReadOnly[str]]


class Ledger(TypedDict, total=False):
    """Totals of what the relay saw of a load's connections."""

    interfered: ReadOnly[int]


class Proof(TypedDict, total=False):
    """The independent observations of a load; empty if the load failed before there were any.

    `ok`: they agree, and the load did what its treatment promises. If not, `disagreements` has the
    differences.
    """

    ok: ReadOnly[bool]
    disagreements: ReadOnly[list[str] | None]
    ledger: ReadOnly[Ledger]
    witnesses: ReadOnly[list[str]]
    tcp_info: ReadOnly[dict[str, int]]
    counters: ReadOnly[dict[str, int]]


class Relay(TypedDict, total=False):
    """What the relay did with packets, and how late; empty if the load failed before."""

    late: ReadOnly[bool]
    late_max_ms: ReadOnly[float | None]
    late_p99_ms: ReadOnly[float]
    lost: ReadOnly[int]
    dropped: ReadOnly[int]
    duplicated: ReadOnly[int]


class LoadRecord(TypedDict):
    """One load in the journal.

    Further keys stay in the journal and are in no table.
    """

    load: ReadOnly[LoadRow]
    requests: ReadOnly[list[RequestRow]]
    connections: ReadOnly[list[ConnectionRow]]
    proof: ReadOnly[Proof]
    relay: ReadOnly[Relay]
    attempt: NotRequired[ReadOnly[int]]
    """Counts from 1. It is higher for a load that was repeated since a relay was late or the client broke."""
    instrument_failure: NotRequired[ReadOnly[bool]]
    """The laboratory could not be built, or died; `error` says how. The line is not a load."""


def plt_ms(record: LoadRecord) -> float:
    """The page load time of a load that ended ok, ms.

    Raises:
        ValueError: It has none.
    """
    found = record["load"]["plt_ms"]
    if found is None:
        raise ValueError(f"{record['load']['load_id']}: no page load time")
    return float(found)


def attempt_of(record: LoadRecord) -> int:
    """The number of the attempt, from 1."""
    return record.get("attempt", 1)


def numeric(load: LoadRow, column: str) -> float | None:
    """A numeric column by its name."""
    return cast(Mapping[str, float | None], load)[column]
