"""What all engines share: their jobs, and how an answer becomes the record of a load.

The laboratory and the simulator check every load against its mode, its cookie state and its transport:
initial window, congestion control, ECN and key share of TLS (`crates/load/src/promise.rs`). This module
checks the other keys in which treatments may differ: `scheme`, `http` and `keep_alive`, as far as the rows of
requests and connections show them. No check compares times, or what the path does to packets.
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
    """The rate of a stream, Mbit/s; `None`: unlimited, or not measured."""

    expected: Required[ReadOnly[float | None]]
    measured: Required[ReadOnly[float | None]]


class Lateness(TypedDict, total=False):
    """How late the relay sent packets."""

    late: Required[ReadOnly[bool]]
    late_max_ms: Required[ReadOnly[float]]
    late_p99_ms: ReadOnly[float]


class Measured(TypedDict, total=False):
    """What crossed an empty path, as the laboratory reports it. `environment.json` keeps further keys too."""

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
    """A page as the laboratory takes it; its other keys are passed on unchanged."""

    resources: ReadOnly[list[ResourceJob]]


class Job(TypedDict):
    """The part of a job that is the same for every engine."""

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
    """A client that is an external program, as the laboratory takes it: see `clients.command.Command`."""

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
    """A job for the laboratory."""

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
    """An engine's answer to a load: the contents of its record, and keys that only its client reads."""

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
    """How a client that is an external program ended."""

    exit_code: ReadOnly[int]
    said: ReadOnly[str]


class Record(LoadRecord, total=False):
    """The record of one load, as the journal stores it."""

    unmatched: ReadOnly[list[str]]
    """URLs that the client requested and that have no recorded response; left out if there are none."""
    approximate_requests: ReadOnly[int]
    """Requests answered although a value that differs between visits did not match; left out if 0."""
    browser: ReadOnly[Mapping[str, object]]
    """Version of the browser and marks of the page, if a browser loaded it."""
    broken: ReadOnly[bool]
    """The client died or hung."""
    hint: ReadOnly[str]
    """What to do about an instrument failure."""


@dataclass(frozen=True)
class Calibration:
    """What was measured on a path that carried only probes and streams.

    Attributes:
        path: The path asked for.
        rate_ms: How long a stream ran each way, ms; 0: there was no stream.
        measured: RTT, rates and relay, as the laboratory reports them.
    """

    path: Path
    rate_ms: int
    measured: Measured

    def to_json(self) -> CalibrationRow:
        """The form for `environment.json`, with planned and measured values."""
        traces = {way: trace.describe() for way, trace in self.path.traces.items()}
        return {"path": {**self.path.to_json(seed=0), **traces}, "rate_ms": self.rate_ms, **self.measured}


class EngineStoppedError(Exception):
    """The engine was told to stop during this load, so the load has no record."""


class Engine(Protocol):
    """Makes loads. Several threads may call it at the same time."""

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        """Measures an empty path.

        Args:
            path: The path.
            bias_ms: What the relay adds to this RTT, ms; `None`: the engine measures it.

        Raises:
            LabError: The laboratory cannot be built.
        """

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load. If the page or the client caused an error, the record's `status` is `failed`.

        Raises:
            LabError: There is no result: the laboratory could not be built, or died.
            EngineStoppedError: `stop` was called during the load.
        """

    def stop(self) -> None:
        """Ends every load in progress and makes no more. Thread-safe."""


def job_of(planned: PlannedLoad, page: LoadedPage) -> Job:
    """The part of a load's job that is the same for every engine."""
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
    """Time limit of a load, ms. It is generous for the slowest page, so that it only ends loads that hang.

    Two minutes, 300 round trips and four times the time its bytes need at the path's rate, ms.
    """
    transfer_ms = body_bytes * 8_000 / path.down_bps if path.down_bps else 0.0
    return round(120_000 + 300 * path.rtt_ms + 4 * transfer_ms)


def failure(error: str) -> Answer:
    """The answer for a failed load."""
    return {"status": "failed", "error": error}


def record_of(planned: PlannedLoad, started_at: str | None, answer: Answer, *, whose: str) -> Record:
    """The record of a load.

    Args:
        planned: The planned load.
        started_at: When it began, ISO 8601 with a time zone; `None` on a virtual clock.
        answer: The engine's answer; it has at least `status`.
        whose: The engine or client, as error messages name it.

    Raises:
        LabError: The answer is malformed.
    """
    record = _record(planned, started_at, _held(planned, answer))
    if problem := check_record(record):
        raise LabError(f"the {whose}'s answer is malformed: {problem}", "please report this as a bug")
    return record


def instrument_failure_of(planned: PlannedLoad, started_at: str, error: LabError) -> Record:
    """The record for the journal when the laboratory gave no result."""
    record = _record(planned, started_at, failure(error.message))
    return {**record, "instrument_failure": True, "hint": error.hint}


def _held(planned: PlannedLoad, answer: Answer) -> Answer:
    """The answer, with status `failed` if its rows contradict the load's treatment."""
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
    """The row of `loads`: the planned values, then the results."""
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
    """Numbers of requests and connections: the engine's own counts, or else counts of its rows."""
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
"""Tolerance for the order of a response's end and the next request: their rows may use different clocks."""


def broken_promises(
    planned: PlannedLoad, requests: Sequence[RequestRow], connections: Sequence[ConnectionRow]
) -> list[str]:
    """How a load that ended ok contradicts its treatment. Rows that were not kept are not checked.

    Args:
        planned: The planned load.
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
    """HTTP/2 has one connection per origin. HTTP/1.1 sends a request only after the previous response ended.

    With `recorded` each origin does one or the other.
    """
    # A client replaces an origin's broken connection, so connections without a request do not count.
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
    """The requests of each connection with their times of sending, ms, in that order."""
    sent = [(row["sent_ms"], row) for row in requests if row["connection"] is not None]
    known = [(sent_ms, row) for sent_ms, row in sent if sent_ms is not None]
    found: dict[int, list[tuple[float, RequestRow]]] = {}
    for sent_ms, row in sorted(known, key=itemgetter(0)):
        found.setdefault(cast(int, row["connection"]), []).append((sent_ms, row))
    return found
