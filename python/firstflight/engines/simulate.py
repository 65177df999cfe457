"""The engine on a virtual clock. It simulates TCP packet by packet on any platform, without a laboratory."""

import json
import math
from collections import OrderedDict
from threading import Event, Lock

from firstflight import _core
from firstflight.engines.engine import (
    Calibration,
    EngineStoppedError,
    Measured,
    Record,
    failure,
    job_of,
    record_of,
)
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.pages import LoadedPage, paced

_PREPARED = 64
"""How many pages are kept prepared."""

_UDP_BYTES = 36
"""Size of a probe in the laboratory's calibration: 8 bytes in a UDP datagram."""


def simulated_job(planned: PlannedLoad, page: LoadedPage, keep: str = "all") -> str:
    """The simulator's job for a load, as JSON; `playground/job.mjs` makes the same.

    Args:
        planned: The load.
        page: Its page.
        keep: As in the plan.
    """
    what_if = planned.what_if.to_json()
    return json.dumps(
        {**job_of(planned, page), **planned.transport.to_json(), "what_if": what_if, "keep": keep}
    )


class Simulator:
    """Makes loads on the virtual clock; implements `engines.engine.Engine`.

    The same load gives the same record on every machine; so `started_at` is null.

    Args:
        keep: As in the plan. With `loads` it only counts requests and connections, in half the time.
    """

    def __init__(self, keep: str = "all") -> None:
        self._keep = keep
        self._pages: OrderedDict[tuple[str, bool, float], tuple[LoadedPage, _core.Simulator]] = OrderedDict()
        self._lock = Lock()
        self._stopped = Event()

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        """Returns the planned values: there is nothing to measure on a simulated path."""
        sent_ms = [_UDP_BYTES * 8_000 / rate if rate else 0.0 for rate in (path.down_bps, path.up_bps)]
        rtt_ms = path.rtt_ms + math.fsum(sent_ms)
        down, up = (rate and rate / 1e6 for rate in (path.down_bps, path.up_bps))
        measured: Measured = {
            "simulated": True,
            "rtt_ms": {"p50": rtt_ms, "expected": rtt_ms},
            "down_mbps": {"expected": down, "measured": down},
            "up_mbps": {"expected": up, "measured": up},
            "relay": {"late": False, "late_max_ms": 0.0},
        }
        return Calibration(path, 0, measured)

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load; an error is in the record."""
        if self._stopped.is_set():
            raise EngineStoppedError
        try:
            answer = json.loads(self._prepared(page, planned).load(simulated_job(planned, page, self._keep)))
        except ValueError as error:
            answer = failure(str(error))
        return record_of(planned, None, answer, whose="simulator")

    def stop(self) -> None:
        """Makes no more loads. A load in progress takes milliseconds."""
        self._stopped.set()

    def _prepared(self, page: LoadedPage, planned: PlannedLoad) -> _core.Simulator:
        key = (page.page.name, planned.server_time, planned.processing)
        with self._lock:
            known, simulator = self._pages.get(key, (None, None))
            if known is page and simulator is not None:
                self._pages.move_to_end(key)
                return simulator
        timed = paced(page.page, server_time=planned.server_time, processing=planned.processing)
        simulator = _core.Simulator(timed.to_json())
        with self._lock:
            self._pages[key] = (page, simulator)
            while len(self._pages) > _PREPARED:
                self._pages.popitem(last=False)
        return simulator
