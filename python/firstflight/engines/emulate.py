"""The engine on the real clock: the real kernel, TCP and sockets, over a path emulated packet by packet."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any

from firstflight.clients.foreign import ForeignClient
from firstflight.engines.answers import failure, job_of, record_of
from firstflight.engines.lab import Lab
from firstflight.engines.task import CA_FILE, Calibration, Path, PlannedLoad, Record
from firstflight.errors import LabError
from firstflight.pages import LoadedPage, paced

LATE_BOUND_MS = 2.0
"""A load is marked when its relay sent packets later than this after they were due."""

_PROBES = 20
_GRACE_S = 30.0


class Emulator:
    """Makes each load in a laboratory of its own; implements `engines.task.Engine`.

    Args:
        binary: The laboratory program; by default the one inside the package.
        clients: Those that are programs of their own, by name.
    """

    def __init__(
        self, binary: FilePath | None = None, clients: Mapping[str, ForeignClient] | None = None
    ) -> None:
        self._lab = Lab(binary)
        self._clients = clients or {}

    def calibrate(self, path: Path) -> Calibration:
        """Sends probes over the empty path, then one stream each way where seconds can tell its rate."""
        rate_ms = _rate_ms(path)
        job = {
            "path": replace(path, middlebox=None).to_json(seed=0),
            "probes": _PROBES,
            "rate_ms": rate_ms,
            "late_bound_ms": LATE_BOUND_MS,
        }
        limit_s = 2 * _GRACE_S + 2 * rate_ms / 1000 + _PROBES * (1 + path.rtt_ms / 1000)
        return Calibration(path, rate_ms, self._lab.ask("calibrate", job, timeout_s=limit_s))

    def examine(self) -> list[dict[str, Any]]:
        """What a laboratory needs of this machine: `name`, `ok`, `detail`, `hint` of every check."""
        checks: list[dict[str, Any]] = self._lab.ask("doctor", timeout_s=_GRACE_S)["checks"]
        return checks

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load; what the page or the client does wrong is in the record.

        Raises:
            LabError: There is no result: the laboratory could not be built, or died.
            EngineStoppedError: `stop` was called meanwhile.
        """
        timed = paced(page.page, server_time=planned.server_time, processing=planned.processing)
        page = replace(page, page=timed)
        client = self._clients.get(planned.client)
        job = _job(planned, page)
        if client:
            job = client.equip({**job, "ca_file": CA_FILE}, planned, page)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        answer = _proved(self._lab.ask("load", job, timeout_s=job["timeout_ms"] / 1000 + _GRACE_S))
        if client is None:
            return record_of(planned, started_at, answer, whose="laboratory")
        try:
            return record_of(planned, started_at, client.complete(answer, page), whose="client")
        except LabError as error:
            # What a client tells, a page may have made up: that is a failed load.
            return record_of(planned, started_at, failure(error.message), whose="client")

    def stop(self) -> None:
        """Kills the laboratories under way."""
        self._lab.stop()


def _rate_ms(path: Path) -> int:
    """How long a stream must run to show the rate, ms; 0, no stream, where something hides it."""
    slowest_bps = min(path.down_bps or math.inf, path.up_bps or math.inf)
    if (
        path.loss > 0
        or path.jitter_ms > 0
        or path.queue.is_managed
        or path.traces
        or path.rtt_ms > 500
        or slowest_bps < 100_000
    ):
        return 0
    return round(1000 + 10 * path.rtt_ms)


def _proved(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer. Raises `LabError` if it calls itself ok without proof."""
    proof = answer.get("proof")
    if answer.get("status") != "ok" or (isinstance(proof, dict) and proof.get("ok") is True):
        return answer
    raise LabError("the laboratory's answer is ok without proof", "please report this as a bug")


def _job(planned: PlannedLoad, page: LoadedPage) -> dict[str, Any]:
    return {
        **job_of(planned, page),
        "page": json.loads(page.page.to_json()),
        "bodies": {str(index): str(FilePath(file).resolve()) for index, file in page.bodies.items()},
        "headers": {str(index): list(fields) for index, fields in page.headers.items()},
        "transport": planned.transport.to_json(),
        "late_bound_ms": LATE_BOUND_MS,
        "capture": None,
    }
