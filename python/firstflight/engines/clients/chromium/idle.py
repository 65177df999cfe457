"""Has the browser come to rest? What it does after its start must not show in what is measured."""

import os
import time
from pathlib import Path

_WINDOW_S = 0.1
_WINDOWS = 3
_AT_REST = 0.05
_PATIENCE_S = 10.0


def wait_until_idle() -> None:
    """Returns when the processes below this one used at most 5 % of a core in three tenths of a second."""
    deadline = time.monotonic() + _PATIENCE_S
    at_rest, before = 0, _cpu_ticks()
    most = max(1.0, _AT_REST * _WINDOW_S * os.sysconf("SC_CLK_TCK"))
    while at_rest < _WINDOWS and time.monotonic() < deadline:
        time.sleep(_WINDOW_S)
        now = _cpu_ticks()
        at_rest = at_rest + 1 if now - before <= most else 0
        before = now


def _cpu_ticks() -> int:
    """Processor time of this process' descendants, clock ticks (proc_pid_stat(5))."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(entry / "stat")):
            children.setdefault(int(fields[1]), []).append(
                (int(entry.name), int(fields[11]) + int(fields[12]))
            )
    # By its number in this /proc, which may be another PID namespace's.
    total, waiting = 0, [int(Path("/proc/self").readlink().name)]
    while waiting:
        for pid, ticks in children.get(waiting.pop(), []):
            total += ticks
            waiting.append(pid)
    return total


def _fields(stat: Path) -> list[str]:
    """What follows the name, which stands in brackets and may hold anything."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
