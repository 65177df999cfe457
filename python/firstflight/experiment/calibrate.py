"""Measures every path before the experiment and warns where one differs from the plan."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from firstflight.engines.engine import Calibration, Engine, Rate
from firstflight.errors import LabError
from firstflight.model.path import Path
from firstflight.model.units import write_rate
from firstflight.observer import Observer

_AT_A_TIME = 1
"""Two laboratories at a time would disturb each other's relay."""

_RTT_SLACK_MS, _RTT_SLACK = 1.0, 0.02
_RATE_SLACK = 0.05
_RATE_GRAIN_BITS = 3 * 1500 * 8
"""The bytes of a stream are counted at each acknowledgement, which covers two or three segments."""


def calibrate(
    engine: Engine, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
) -> list[Calibration]:
    """Measures every path, one at a time, and warns of those that differ from the plan.

    Args:
        engine: Measures the paths.
        paths: The paths.
        bias_ms: What the relay adds, ms, by RTT in ms. Where it is missing, the engine measures it.
        observer: Gets the warnings.

    Raises:
        LabError: The laboratory cannot be built, or failed twice.
    """

    def measure(path: Path) -> Calibration:
        return twice(partial(engine.calibrate, path, bias_ms.get(path.rtt_ms)), observer)

    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="calibrate") as pool:
        try:
            calibrations = list(pool.map(measure, paths))
        except BaseException:
            engine.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    warn_of(calibrations, observer)
    return calibrations


def twice(measure: Callable[[], Calibration], observer: Observer) -> Calibration:
    """Measures a path; if the laboratory fails, measures it once more.

    Raises:
        LabError: It failed twice.
    """
    try:
        return measure()
    except LabError as error:
        observer.warn(f"the laboratory failed, the path is measured again: {error.message}", error.hint)
        return measure()


def warn_of(calibrations: Iterable[Calibration], observer: Observer) -> None:
    """Warns of each difference between a path and the plan."""
    for calibration in calibrations:
        for problem in problems(calibration):
            observer.warn(problem, "is the machine busy? stop other work, then run again")


def problems(calibration: Calibration) -> Iterator[str]:
    """Describes each difference between a measured path and the plan.

    The RTT may differ by 1 ms + 2 %, a rate by 5 % + three segments. With a trace the RTT may be longer: a
    probe waits for the next delivery opportunity.
    """
    path, measured = calibration.path, calibration.measured
    name = f"path {path.rtt_ms:g} ms, {write_rate(path.down_bps)} down, {write_rate(path.up_bps)} up"
    rtt_ms, expected_ms = measured["rtt_ms"]["p50"], measured["rtt_ms"]["expected"]
    off_ms = expected_ms - rtt_ms if path.traces else abs(rtt_ms - expected_ms)
    if path.loss == path.jitter_ms == 0 and off_ms > _RTT_SLACK_MS + _RTT_SLACK * expected_ms:
        yield f"{name}: the measured RTT is {rtt_ms:.2f} ms, expected were {expected_ms:.2f}"
    for key, rate in (("down_mbps", measured["down_mbps"]), ("up_mbps", measured["up_mbps"])):
        if _is_off(rate, calibration.rate_ms):
            yield f"{name}: {key} is {rate['measured']:.3g}, expected were {rate['expected']:.3g}"
    if measured["relay"]["late"]:
        yield f"{name}: the relay was late by up to {measured['relay']['late_max_ms']:.2f} ms"


def _is_off(rate: Rate, rate_ms: int) -> bool:
    """Whether a rate differs too much. A rate that is unlimited or was not measured is never off."""
    expected, measured = rate["expected"], rate["measured"]
    if expected is None or measured is None or not rate_ms:
        return False
    grain_mbps = _RATE_GRAIN_BITS / rate_ms / 1000
    return bool(abs(measured - expected) > _RATE_SLACK * expected + grain_mbps)
