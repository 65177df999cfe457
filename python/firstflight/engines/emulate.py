"""The engine on the real clock: the real kernel, TCP and sockets, over a path emulated packet by packet."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any, cast

from firstflight.engines.clients.command import ForeignClient
from firstflight.engines.engine import (
    Answer,
    Calibration,
    LabJob,
    Measured,
    Record,
    failure,
    job_of,
    page_job,
    record_of,
)
from firstflight.engines.lab import CA_FILE, LATE_BOUND_MS, Lab, may_keep_awake
from firstflight.errors import LabError
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.pages import LoadedPage, paced

_SPARSE = {"probes": 11, "probe_gap_ms": 10.0, "sparse": True}
"""Probes spaced like the first packets of a page load: one in flight, with pauses."""

_LONGEST_SPARSE_MS = 500.0
"""At longer RTTs sparse probes would take minutes, and the processor sleeps no deeper than at this one."""

_GRACE_S = 30.0


@dataclass(frozen=True)
class Check:
    """A check of this machine. If it is not `needed`, firstflight works without it."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    needed: bool = True


class Emulator:
    """Makes each load in a laboratory of its own; implements `engines.engine.Engine`.

    Args:
        binary: The laboratory program; by default the one inside the package.
        clients: The clients that are external programs, by name.
    """

    def __init__(
        self, binary: FilePath | None = None, clients: Mapping[str, ForeignClient] | None = None
    ) -> None:
        self._lab = Lab(binary)
        self._clients = clients or {}
        self._keeping_awake = threading.Lock()
        self._measuring_bias = threading.Lock()
        self._floor_ms: float | None = None
        self._bias_ms: dict[float, float] = {0.0: 0.0}

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        """Sends probes over the empty path, then one stream each way if that can show the rate.

        First it measures what the relay adds to the RTT, unless `bias_ms` gives it. This calibration and the
        loads on paths with that RTT subtract it from the propagation delay.
        """
        if bias_ms is not None:
            self._bias_ms[path.rtt_ms] = bias_ms
        bias_ms = self._measure_bias(path.rtt_ms)
        rate_ms = _rate_ms(path)
        job = {
            "path": replace(path, middlebox=None).to_json(seed=0),
            **_SPARSE,
            "sparse": path.rtt_ms <= _LONGEST_SPARSE_MS,
            "rate_ms": rate_ms,
            "late_bound_ms": LATE_BOUND_MS,
        }
        measured: Measured = self._ask("calibrate", job, path, _probes_s(path) + 2 * rate_ms / 1000)
        return Calibration(path, rate_ms, {**measured, "floor_ms": self._floor_ms, "bias_ms": bias_ms})

    def examine(self) -> list[Check]:
        """Checks whether this machine has what a laboratory needs."""
        return [Check(**check) for check in self._lab.ask("doctor", timeout_s=_GRACE_S)["checks"]]

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load. An error of the page or the client is in the record.

        Raises:
            LabError: There is no result: the laboratory could not be built, or died.
            EngineStoppedError: `stop` was called during the load.
        """
        timed = paced(page.page, server_time=planned.server_time, processing=planned.processing)
        page = replace(page, page=timed)
        client = self._clients.get(planned.client)
        job = _job(planned, page)
        if client:
            job = client.equip({**job, "ca_file": CA_FILE}, planned, page)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        answer = _proved(self._ask("load", job, planned.path, job["timeout_ms"] / 1000))
        if client is None:
            return record_of(planned, started_at, answer, whose="laboratory")
        try:
            return record_of(planned, started_at, client.complete(answer, page), whose="client")
        except LabError as error:
            # The page may influence what the client reports, so a malformed answer is a failed load.
            return record_of(planned, started_at, failure(error.message), whose="client")

    def stop(self) -> None:
        """Kills the laboratories that are running."""
        self._lab.stop()

    def _measure_bias(self, rtt_ms: float) -> float:
        """What the relay adds to an RTT, ms: that of sparse probes less that of a veth pair; 0 for RTT 0."""
        with self._measuring_bias:
            if rtt_ms not in self._bias_ms:
                probed_ms = min(rtt_ms, _LONGEST_SPARSE_MS)
                plain = {"path": {"rtt_ms": probed_ms}, **_SPARSE}
                if self._floor_ms is None:
                    floor = self._lab.ask("floor", _SPARSE, timeout_s=_GRACE_S)
                    self._floor_ms = float(floor["p50"])
                limit_s = 2 * _GRACE_S + probed_ms / 1000 * _SPARSE["probes"]
                with self._timing() as timing:
                    found = self._lab.ask("calibrate", {**plain, "timing": timing}, timeout_s=limit_s)
                self._bias_ms[rtt_ms] = round(found["rtt_ms"]["p50"] - probed_ms - self._floor_ms, 6)
            return self._bias_ms[rtt_ms]

    def _ask(self, command: str, job: Mapping[str, object], path: Path, limit_s: float) -> Any:  # noqa: ANN401
        take_out_ms = self._bias_ms.get(path.rtt_ms, 0.0)
        with self._timing() as timing:
            job = {**job, "timing": {**timing, "take_out_ms": take_out_ms}}
            return self._lab.ask(command, job, timeout_s=limit_s + _GRACE_S)

    @contextmanager
    def _timing(self) -> Iterator[dict[str, bool]]:
        """Timing options of a laboratory. Only one at a time keeps processors awake: that helps all."""
        keeps = may_keep_awake() and self._keeping_awake.acquire(blocking=False)
        try:
            yield {"keep_awake": keeps}
        finally:
            if keeps:
                self._keeping_awake.release()


def _probes_s(path: Path) -> float:
    """How long the probes of a calibration may take, s."""
    return _GRACE_S + _SPARSE["probes"] * (1 + path.rtt_ms / 1000)


def _rate_ms(path: Path) -> int:
    """How long a stream must run to measure the rate, ms; 0: no stream, since the path hides the rate."""
    rates_bps = [rate_bps for rate_bps in (path.down_bps, path.up_bps) if rate_bps is not None]
    if (
        path.loss > 0
        or path.jitter_ms > 0
        or path.queue.is_managed
        or path.traces
        or path.rtt_ms > 500
        or any(rate_bps < 100_000 or _fills_late(path, rate_bps) for rate_bps in rates_bps)
    ):
        return 0
    return round(1000 + 10 * path.rtt_ms)


def _fills_late(path: Path, rate_bps: int) -> bool:
    """Whether the link is idle after each loss: the queue is smaller than the bandwidth-delay product."""
    return path.queue.holds_bytes(rate_bps) < rate_bps / 8 * path.rtt_ms / 1000


def _proved(answer: Answer) -> Answer:
    """The answer. Raises `LabError` if its status is ok without a proof."""
    proof = answer.get("proof")
    if answer.get("status") != "ok" or (isinstance(proof, dict) and proof.get("ok") is True):
        return answer
    raise LabError("the laboratory's answer is ok without proof", "please report this as a bug")


def _job(planned: PlannedLoad, page: LoadedPage) -> LabJob:
    job = {
        **job_of(planned, page),
        **page_job(page),
        "transport": planned.transport.to_json(),
        "late_bound_ms": LATE_BOUND_MS,
        "capture": None,
    }
    return cast(LabJob, job)
