"""What all engines have in common: what they are asked, and a load's record out of what they answer.

The laboratory and the simulator hold every load to its mode, its cookie state and its transport: initial
window, congestion control, ECN and key share of TLS (`crates/load/src/promise.rs`). Here it is held to the
other keys in which the treatments of its plan differ, as far as its rows of requests and connections show
them: `scheme`, `http` and `keep_alive`. No check compares times, or what the path does to packets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, Required, TypedDict, cast

from firstflight.errors import LabError
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.results.check import check_record
from firstflight.results.records import ConnectionRow, LoadRecord, LoadRow, Proof, Relay, RequestRow

if TYPE_CHECKING:
    from typing_extensions import ReadOnly

    from firstflight.pages import LoadedPage


class Rtt(TypedDict, total=False):
    """The round-trip time of probes, ms."""

    p50: Required[ReadOnly[float]]
    expected: Required[ReadOnly[float]]


class Rate(TypedDict, total=False):
    """The rate of a stream, Mbit/s; `None`: not limited, or not measured."""

    expected: Required[ReadOnly[float | None]]
    measured: Required[ReadOnly[float | None]]


class Lateness(TypedDict, total=False):
    """How late the relay sent packets."""

    late: Required[ReadOnly[bool]]
    late_max_ms: Required[ReadOnly[float]]
    late_p99_ms: ReadOnly[float]


class Measured(TypedDict, total=False):
    """What crossed an empty path, as the laboratory gives it; further keys stay in `environment.json`."""

    simulated: ReadOnly[bool]
    rtt_ms: Required[ReadOnly[Rtt]]
    down_mbps: Required[ReadOnly[Rate]]
    up_mbps: Required[ReadOnly[Rate]]
    relay: Required[ReadOnly[Lateness]]
    floor_ms: ReadOnly[float | None]
    bias_ms: ReadOnly[float]


class ResourceJob(TypedDict, total=False):
    """A resource of a page as the laboratory takes it: the profile format (docs/profile.md)."""

    url: Required[ReadOnly[str]]
    kind: ReadOnly[str]
    mime: ReadOnly[str | None]
    request_bytes: ReadOnly[int]
    header_bytes: ReadOnly[int]
    body_bytes: ReadOnly[int]
    blocks_load: ReadOnly[bool]
    initiator: ReadOnly[object]
    status: ReadOnly[int]


class PageJob(TypedDict):
    """A page as the laboratory takes it; its other keys are handed on as they are."""

    resources: ReadOnly[list[ResourceJob]]


class Job(TypedDict):
    """What every engine is asked."""

    scheme: ReadOnly[str]
    tls: ReadOnly[object]
    ip: ReadOnly[str]
    path: ReadOnly[object]
    origin_rtt: ReadOnly[str]
    lookups: ReadOnly[bool]
    priorities: ReadOnly[str]
    mode: ReadOnly[str]
    cookies: ReadOnly[str]
    keep_alive: ReadOnly[bool]
    timeout_ms: ReadOnly[int]
    request_timeout_ms: ReadOnly[int]


class CommandJob(TypedDict):
    """A client that is a program of its own, as the laboratory takes it: see `clients.command.Command`."""

    kind: ReadOnly[str]
    argv: ReadOnly[list[str]]
    env: ReadOnly[dict[str, str]]
    input: ReadOnly[str]
    accepts: ReadOnly[list[int]]
    result: ReadOnly[str | None]
    reads: ReadOnly[list[str]]
    keeps: ReadOnly[dict[str, str]]


class ServedPage(TypedDict):
    """A page with the files and header fields of its responses, by the index of the resource."""

    page: ReadOnly[PageJob]
    bodies: ReadOnly[dict[str, str]]
    headers: ReadOnly[dict[str, list[tuple[str, str]]]]


class LabJob(Job, ServedPage):
    """What the laboratory is asked."""

    transport: ReadOnly[object]
    late_bound_ms: ReadOnly[float]
    capture: ReadOnly[str | None]
    ca_file: NotRequired[ReadOnly[str | None]]
    client: NotRequired[ReadOnly[CommandJob]]


class CalibrationRow(Measured, total=False):
    """A calibration as `environment.json` keeps it."""

    path: ReadOnly[Mapping[str, object]]
    rate_ms: ReadOnly[int]


class Answer(TypedDict, total=False):
    """What an engine says of a load: what stands in its record, and what only its client looks at."""

    status: Required[ReadOnly[str]]
    error: ReadOnly[str | None]
    plt_ms: ReadOnly[float | None]
    first_byte_ms: ReadOnly[float | None]
    requests: ReadOnly[list[RequestRow]]
    connections: ReadOnly[list[ConnectionRow]]
    request_count: ReadOnly[int]
    failed_requests: ReadOnly[int]
    connection_count: ReadOnly[int]
    unmatched_requests: ReadOnly[int]
    unmatched: ReadOnly[list[str]]
    approximate_requests: ReadOnly[int]
    tfo_offered: ReadOnly[int]
    tfo_accepted: ReadOnly[int]
    bytes_down: ReadOnly[int]
    bytes_up: ReadOnly[int]
    retransmits: ReadOnly[int]
    proof: ReadOnly[Proof]
    relay: ReadOnly[Relay]
    browser: ReadOnly[Mapping[str, object]]
    broken: ReadOnly[bool]
    client: ReadOnly[ClientAnswer]
    result: ReadOnly[object]


class ClientAnswer(TypedDict):
    """How a client that is a program of its own ended."""

    exit_code: ReadOnly[int]
    said: ReadOnly[str]


class Record(LoadRecord, total=False):
    """What came of one load, as it goes to the journal."""

    unmatched: ReadOnly[list[str]]
    """URLs that the client asked for and no recording answers, where there were any."""
    approximate_requests: ReadOnly[int]
    """Requests answered although a value that changes with every visit differs, where there were any."""
    browser: ReadOnly[Mapping[str, object]]
    """Version and moments of the page, where a browser loaded it."""
    broken: ReadOnly[bool]
    """The client died or hung."""
    hint: ReadOnly[str]
    """What can be done about an instrument failure."""


@dataclass(frozen=True)
class Calibration:
    """What a path turned out to be when nothing but probes crossed it.

    Attributes:
        path: The path asked for.
        rate_ms: How long a stream ran each way, ms; 0: none did.
        measured: RTT, rates and relay, as the laboratory gives them.
    """

    path: Path
    rate_ms: int
    measured: Measured

    def to_json(self) -> CalibrationRow:
        """For `environment.json`: asked and measured side by side."""
        traces = {way: trace.describe() for way, trace in self.path.traces.items()}
        return {"path": {**self.path.to_json(seed=0), **traces}, "rate_ms": self.rate_ms, **self.measured}


class EngineStoppedError(Exception):
    """The engine was told to stop while this load was under way: there is no record of it."""


class Engine(Protocol):
    """Makes loads, several at once when called from several threads."""

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        """Measures an empty path.

        Args:
            path: The path.
            bias_ms: What the relay adds to this RTT, ms, if that is known already; None: it is measured.

        Raises:
            LabError: The laboratory cannot be built.
        """

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load. A load that the page or the client made fail is a record with `status` `failed`.

        Raises:
            LabError: There is no result: the laboratory could not be built, or died.
            EngineStoppedError: `stop` was called meanwhile.
        """

    def stop(self) -> None:
        """Ends every load under way, at once and for good. Safe from any thread."""


def job_of(planned: PlannedLoad, page: LoadedPage) -> Job:
    """What the jobs of all engines say in the same words."""
    limit_ms = time_limit_ms(planned.path, sum(resource.body_bytes for resource in page.page.resources))
    return {
        "scheme": planned.scheme,
        "tls": {
            "post_quantum": planned.post_quantum,
            "http": planned.http,
            "certificate_bytes": planned.certificate_bytes or None,
        },
        "ip": planned.ip,
        "path": planned.path.to_json(planned.seed),
        "origin_rtt": planned.origin_rtt,
        "lookups": planned.lookups,
        "priorities": planned.priorities,
        "mode": planned.mode,
        "cookies": planned.cookies,
        "keep_alive": planned.keep_alive,
        "timeout_ms": limit_ms,
        "request_timeout_ms": limit_ms // 4,
    }


def page_job(page: LoadedPage) -> ServedPage:
    """A page as the laboratory's servers take it."""
    return {
        "page": json.loads(page.page.to_json()),
        "bodies": {str(index): str(FilePath(file).resolve()) for index, file in page.bodies.items()},
        "headers": {str(index): list(fields) for index, fields in page.headers.items()},
    }


def time_limit_ms(path: Path, body_bytes: int) -> int:
    """How long a load may take: generous for the slowest page, so that only what hangs is cut off.

    Two minutes, 300 round trips and four times the time its bytes need at the path's rate, ms.
    """
    transfer_ms = body_bytes * 8_000 / path.down_bps if path.down_bps else 0.0
    return round(120_000 + 300 * path.rtt_ms + 4 * transfer_ms)


def failure(error: str) -> Answer:
    """The answer of a load that went wrong."""
    return {"status": "failed", "error": error}


def record_of(planned: PlannedLoad, started_at: str | None, answer: Answer, *, whose: str) -> Record:
    """The record of a load.

    Args:
        planned: What was asked for.
        started_at: When it began, ISO 8601 with a time zone; `None` on a virtual clock.
        answer: What the engine said: at least `status`.
        whose: The engine or client, as errors name it.

    Raises:
        LabError: The answer is malformed.
    """
    record = _record(planned, started_at, _held(planned, answer))
    if problem := check_record(record):
        raise LabError(f"the {whose}'s answer is malformed: {problem}", "please report this as a bug")
    return record


def instrument_failure_of(planned: PlannedLoad, started_at: str, error: LabError) -> Record:
    """What is journalled where the laboratory gave no record of a load."""
    record = _record(planned, started_at, failure(error.message))
    return {**record, "instrument_failure": True, "hint": error.hint}


def _held(planned: PlannedLoad, answer: Answer) -> Answer:
    """The answer, failed if its rows break what the load's treatment promises: such a load is no result."""
    rows = (answer.get("requests") or [], answer.get("connections") or [])
    if answer["status"] != "ok" or not (broken := broken_promises(planned, *rows)):
        return answer
    proof = answer.get("proof", {})
    disagreements = [*(proof.get("disagreements") or []), *broken]
    return {
        **answer,
        **failure(f"no proof: {'; '.join(broken)}"),
        "proof": {**proof, "ok": False, "disagreements": disagreements},
    }


def _record(planned: PlannedLoad, started_at: str | None, answer: Answer) -> Record:
    record: Record = {
        "load": _load_row(planned, started_at, answer),
        "requests": answer.get("requests", []),
        "connections": answer.get("connections", []),
        "proof": answer.get("proof", {}),
        "relay": answer.get("relay", {}),
    }
    if "browser" in answer:
        record = {**record, "browser": answer["browser"]}
    if answer.get("unmatched"):
        record = {**record, "unmatched": answer["unmatched"]}
    if answer.get("approximate_requests"):
        record = {**record, "approximate_requests": answer["approximate_requests"]}
    if answer.get("broken"):
        record = {**record, "broken": True}
    return record


def _load_row(planned: PlannedLoad, started_at: str | None, answer: Answer) -> LoadRow:
    """The columns of `loads`: what was planned, then what came of it."""
    row = {
        **planned.columns(),
        "started_at": started_at,
        "plt_ms": answer.get("plt_ms"),
        "first_byte_ms": answer.get("first_byte_ms"),
        **_counts(answer),
        "unmatched_requests": answer.get("unmatched_requests"),
        "tfo_offered": answer.get("tfo_offered"),
        "tfo_accepted": answer.get("tfo_accepted"),
        "bytes_down": answer.get("bytes_down"),
        "bytes_up": answer.get("bytes_up"),
        "retransmits": answer.get("retransmits"),
        "status": answer["status"],
        "error": answer.get("error"),
    }
    return cast(LoadRow, row)


def _counts(answer: Answer) -> dict[str, int | None]:
    """As the engine counted, or of the rows that it gave."""
    if "request_count" in answer:
        requests, failed = answer["request_count"], answer["failed_requests"]
        return {"requests": requests, "failed_requests": failed, "connections": answer["connection_count"]}
    rows, connections = answer.get("requests"), answer.get("connections")
    failed_rows = [row for row in rows or [] if row.get("error") or row.get("status") is None]
    return {
        "requests": None if rows is None else len(rows),
        "failed_requests": None if rows is None else len(failed_rows),
        "connections": None if connections is None else len(connections),
    }


_AT_ONCE_MS = 1.0
"""A response may end, and the next request leave, this much out of order in rows of different clocks."""


def broken_promises(
    planned: PlannedLoad, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> list[str]:
    """How a load that ended ok breaks what its treatment promises; rows that were not kept say nothing.

    Args:
        planned: What was asked for.
        requests: Its rows of requests.
        connections: Its rows of connections.
    """
    keys = [key for key in planned.compared if key in _PROMISES]
    return [text for key in keys for text in _PROMISES[key](getattr(planned, key), requests, connections)]


def _scheme(
    scheme: str, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> Iterator[str]:
    if scheme == "recorded":
        return
    other = [row["origin"] for row in connections if row["origin"] and not _is_of(row, scheme)]
    if other:
        yield f"scheme={scheme}: {len(other)} of {len(connections)} connections to {other[0]}"


def _http(http: str, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]) -> Iterator[str]:
    """HTTP/2 has one connection an origin; HTTP/1.1 sends a request once the response before it has ended.

    As recorded each origin does one or the other.
    """
    # An origin's connection that broke is opened again: those that never carried a request do not count.
    used = {row["connection"] for row in requests if row["sent_ms"] is not None}
    secure = [row["origin"] for row in connections if _is_of(row, "https") and row["connection"] in used]
    failed = {row["origin"] for row in requests if row["end_ms"] is None}
    several = {origin for origin in secure if secure.count(origin) > 1} - failed
    if http == "2":
        for origin in sorted(several)[:1]:
            yield f"http=2: {secure.count(origin)} connections to {origin}"
        return
    for connection, rows in _by_connection(requests).items():
        if not all(_is_of(row, "https") for _, row in rows):
            continue
        for (_, before), (sent_ms, after) in pairwise(rows):
            is_shared = http == "recorded" and after["origin"] not in several
            if not is_shared and before["end_ms"] is not None and sent_ms < before["end_ms"] - _AT_ONCE_MS:
                yield f"http={http}: two requests at once on connection {connection} to {after['origin']}"
                return


def _keep_alive(
    keep_alive: bool, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> Iterator[str]:
    if keep_alive:
        return
    for connection, rows in _by_connection(requests).items():
        if len(rows) > 1:
            origin = rows[0][1]["origin"]
            yield f"keep_alive=false: {len(rows)} requests on connection {connection} to {origin}"
            return


_PROMISES: Mapping[str, Callable[[Any, Sequence[RequestRow], Sequence[ConnectionRow]], Iterator[str]]] = {
    "scheme": _scheme,
    "http": _http,
    "keep_alive": _keep_alive,
}


def _is_of(row: RequestRow | ConnectionRow, scheme: str) -> bool:
    return str(row["origin"]).startswith(f"{scheme}:")


def _by_connection(requests: Sequence[RequestRow]) -> dict[int, list[tuple[float, RequestRow]]]:
    """The requests that each connection carried, with when each was sent, ms, in that order."""
    sent = [(row["sent_ms"], row) for row in requests if row["connection"] is not None]
    known = [(sent_ms, row) for sent_ms, row in sent if sent_ms is not None]
    found: dict[int, list[tuple[float, RequestRow]]] = {}
    for sent_ms, row in sorted(known, key=itemgetter(0)):
        found.setdefault(cast(int, row["connection"]), []).append((sent_ms, row))
    return found
