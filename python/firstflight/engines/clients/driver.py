"""What drivers of browsers share: reading the job, writing the result, and waiting for an idle browser."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firstflight.engines.clients.job import Drive, DriveJob

GRACE_S = 5.0
"""How long a driver may take to write its result, once the load has ended or its time is up."""

MARKS = """() => new Promise(resolve => {
    const [navigation] = performance.getEntriesByType("navigation");
    const paint = name => performance.getEntriesByName(name, "paint")[0]?.startTime;
    const answer = lcp => resolve({
        load: navigation.loadEventStart,
        first_byte: navigation.responseStart,
        dom_content_loaded: navigation.domContentLoadedEventStart,
        first_paint: paint("first-paint"),
        first_contentful_paint: paint("first-contentful-paint"),
        lcp,
    });
    new PerformanceObserver(list => answer(list.getEntries().at(-1).startTime))
        .observe({type: "largest-contentful-paint", buffered: true});
    setTimeout(answer, 200);
})"""
"""A JavaScript function that returns the marks of the page it runs in, ms after navigation start."""


def run(arguments: list[str], drive: Callable[[DriveJob, Drive], None]) -> int:
    """Reads the job, controls the browser and writes the result. Returns 0 even if the load failed.

    Args:
        arguments: The file for the result.
        drive: Loads the page once. Its second argument gets the error, with all that was known before it.
    """
    result = Path(arguments[0])
    job = DriveJob(**json.load(sys.stdin))
    outcome = Drive()
    with _last_resort(result, outcome, (job.start_ms + job.timeout_ms) / 1000 + GRACE_S):
        drive(job, outcome)
    result.write_text(json.dumps(outcome.to_json()))
    return 0


@contextmanager
def _last_resort(result: Path, outcome: Drive, limit_s: float) -> Iterator[None]:
    """If the browser hangs, writes the result without it and ends this process."""

    def give_up() -> None:
        outcome.error, outcome.broken = f"the browser hung: no answer after {limit_s:g} s", True
        result.write_text(json.dumps(outcome.to_json()))
        os._exit(0)

    timer = threading.Timer(limit_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def take_marks(outcome: Drive, found: dict[str, float | None]) -> None:
    """Puts the result of `MARKS` into `outcome`; a mark that the page did not reach stays `None`."""
    outcome.plt_ms = found.pop("load") or None
    outcome.first_byte_ms = found.pop("first_byte") or None
    outcome.marks = {f"{name}_ms": found[name] for name in sorted(found)}


_WINDOW_S = 0.1
_WINDOWS = 3
_AT_REST = 0.05
_TIMEOUT_S = 10.0


def wait_until_idle() -> None:
    """Waits until the processes below this one used at most 5 % of a core for 0.3 s, at most 10 s."""
    deadline = time.monotonic() + _TIMEOUT_S
    at_rest, before = 0, _cpu_ticks()
    most = max(1.0, _AT_REST * _WINDOW_S * os.sysconf("SC_CLK_TCK"))
    while at_rest < _WINDOWS and time.monotonic() < deadline:
        time.sleep(_WINDOW_S)
        now = _cpu_ticks()
        at_rest = at_rest + 1 if now - before <= most else 0
        before = now


def _cpu_ticks() -> int:
    """CPU time of this process's descendants, clock ticks (proc_pid_stat(5))."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(entry / "stat")):
            children.setdefault(int(fields[1]), []).append(
                (int(entry.name), int(fields[11]) + int(fields[12]))
            )
    # The number of this process in this /proc, which may be that of another PID namespace.
    total, waiting = 0, [int(Path("/proc/self").readlink().name)]
    while waiting:
        for pid, ticks in children.get(waiting.pop(), []):
            total += ticks
            waiting.append(pid)
    return total


def _fields(stat: Path) -> list[str]:
    """The fields after the process name, which is in parentheses and may contain anything."""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
