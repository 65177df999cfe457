"""An engine without a laboratory: it returns synthetic records, which a test can make late or failed."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

from synthetic_results import load_record

from firstflight.engines.engine import Calibration, EngineStoppedError, Record
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.pages import LoadedPage, open_pages

MEASURED: Any = {
    "rtt_ms": {"expected": 20.0, "p50": 20.1, "p99": 20.2, "received": 20},
    "down_mbps": {"asked": 4.0, "expected": 3.86, "measured": 3.86},
    "up_mbps": {"asked": 0.256, "expected": 0.247, "measured": 0.247},
    "relay": {"late": False, "late_p99_ms": 0.1, "late_max_ms": 0.2},
    "setup_ms": 5.0,
}

Change = Callable[[PlannedLoad, int], Mapping[str, object]]


def pages(*names: str) -> list[LoadedPage]:
    return open_pages(names or ["amazon", "wikipedia"])


class EngineDouble:
    """Returns synthetic records, and keeps the planned loads that it was asked for in `made`.

    Args:
        before: Called with each planned load and the number of the call, before the record is returned.
        relay: Changes to the relay of each record.
        load: Changes to the load of each record.
        broken: Whether the client breaks in every load.
    """

    def __init__(
        self,
        before: Callable[[PlannedLoad, int], object] = lambda planned, number: None,
        relay: Change = lambda planned, number: {},
        load: Change = lambda planned, number: {},
        *,
        broken: bool = False,
    ) -> None:
        self._broken = broken
        self.made: list[PlannedLoad] = []
        self.calibrated: list[Path] = []
        self.known_bias_ms: list[float | None] = []
        self.stopped = threading.Event()
        self._before, self._relay, self._load = before, relay, load
        self._lock = threading.Lock()

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        self.calibrated.append(path)
        self.known_bias_ms.append(bias_ms)
        rtt_ms = {"expected": path.rtt_ms, "p50": path.rtt_ms, "p99": path.rtt_ms, "received": 20}
        return Calibration(
            path, 1200, MEASURED | {"rtt_ms": rtt_ms, "bias_ms": 0.05 if bias_ms is None else bias_ms}
        )

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        with self._lock:
            self.made.append(planned)
            number = len(self.made)
        self._before(planned, number)
        if self.stopped.is_set():
            raise EngineStoppedError
        columns: dict[str, Any] = {**planned.columns(), **self._load(planned, number)}
        record = cast(Record, load_record(**columns))
        relay: Any = {**record["relay"], **self._relay(planned, number)}
        record["relay"], record["broken"] = relay, self._broken
        return record

    def stop(self) -> None:
        self.stopped.set()
