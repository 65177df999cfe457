"""Loads made in this process, each block in one thread: for an engine that mostly waits, or a few loads.

A number as `jobs` is the number of blocks at a time. With `auto` it starts with one per core, and changes. A
round is as many loads as are made at a time, whose relays were on time with a margin. After a round with the
CPU less than 60 % busy it grows by one, up to four per core and at most 16. When a relay was late, or the CPU
more than 85 % busy, it is halved. Loads mostly wait, so many fit on a core, but they must not disturb each
other's measurements. Where a load keeps cores busy (a browser), `auto` never makes more loads than there are
cores for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path as FilePath
from typing import Literal, Protocol

from firstflight.engines.engine import Calibration, Engine, EngineStoppedError, Record
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.folder import Machine
from firstflight.experiment.recorder import make_block
from firstflight.experiment.schedule import Block
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.observer import Observer

LOOK_S = 0.25
"""How often the main thread wakes up, s. A signal that was delivered to another thread does not wake it."""


class Taker(Protocol):
    """Takes records from several threads, as `experiment.recorder.Recorder` does."""

    def attempts(self, planned: PlannedLoad) -> int:
        """How many attempts a load had."""

    def add(self, record: Record) -> None:
        """Takes the record of one attempt; if it raises, all loads in progress are stopped."""


class Threads:
    """Implements `experiment.workers.Workers`.

    Args:
        engine: Makes the loads.
        limit: Decides how many blocks are made at a time.
    """

    def __init__(self, engine: Engine, limit: ConcurrencyLimit) -> None:
        self._engine = engine
        self._limit = limit

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
    ) -> list[Calibration]:
        """Measures the empty paths."""
        return calibrate(self._engine, paths, bias_ms, observer)

    def machines(self) -> list[Machine]:
        """Empty: all loads are made on this machine."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Taker) -> None:
        """Makes every load of `blocks`. On any error or interrupt it stops all loads in progress."""
        feed = _Feed(blocks)
        with ThreadPoolExecutor(self._limit.most, thread_name_prefix="load") as pool:
            try:
                left = {pool.submit(self._work, feed, pages, recorder) for _ in range(self._limit.most)}
                while left:
                    done, left = wait(left, timeout=LOOK_S, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self._limit.close()
                self._engine.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _work(self, feed: _Feed, pages: Catalogue, recorder: Taker) -> None:
        more = True
        while more:
            more = self._next(feed, pages, recorder)

    def _next(self, feed: _Feed, pages: Catalogue, recorder: Taker) -> bool:
        try:
            if not self._limit.acquire() or (block := feed.take()) is None:
                return False
            make_block(
                self._engine,
                pages.open,
                block,
                recorder.attempts,
                lambda record: self._keep(recorder, record),
            )
            return True
        except EngineStoppedError:
            return False
        finally:
            self._limit.release()

    def _keep(self, recorder: Taker, record: Record) -> None:
        recorder.add(record)
        self._limit.note(record)


class _Feed:
    """Hands out each block once. Thread-safe."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._lock = threading.Lock()

    def take(self) -> Block | None:
        with self._lock:
            return next(self._blocks, None)


_MOST = 16
_BUSY, _TOO_BUSY = 0.60, 0.85
_ROOM = 0.5
"""The margin: the 99th percentile of a relay's lateness must be below this share of the bound."""


class ConcurrencyLimit:
    """Limits how many blocks are made at a time, and adapts the limit with `auto`.

    Args:
        jobs: A fixed number, or `auto`.
        late_bound_ms: A load whose relay was later than this is marked as late, ms.
        busy: Returns the share of CPU time in use since its last call, 0 to 1.
        cores: CPU cores available.
        cores_per_load: Cores that a load keeps busy; 0 for a load that mostly waits.
    """

    def __init__(
        self,
        jobs: int | Literal["auto"],
        late_bound_ms: float,
        busy: Callable[[], float] | None = None,
        cores: int | None = None,
        cores_per_load: int = 0,
    ) -> None:
        cores = cores or len(os.sched_getaffinity(0))
        self.adapts = jobs == "auto"
        room = max(1, cores // cores_per_load) if cores_per_load else 4 * cores
        self.most = min(_MOST, room) if jobs == "auto" else jobs
        self.open = min(self.most, cores) if jobs == "auto" else jobs
        self._late_bound_ms = late_bound_ms
        self._busy = busy or cpu_share()
        self._taken = 0
        self._closed = False
        self._punctual = 0
        self._change = threading.Condition()

    def acquire(self) -> bool:
        """Waits for a free slot; returns `False` once `close` was called."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._taken < self.open)
            self._taken += 1
            return not self._closed

    def release(self) -> None:
        """Frees a slot."""
        with self._change:
            self._taken -= 1
            self._change.notify_all()

    def note(self, record: Record) -> None:
        """Adapts the limit to the record of a load."""
        with self._change:
            if self.adapts:
                self._adapt(record)
                self._change.notify_all()

    def close(self) -> None:
        """Stops handing out slots."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _adapt(self, record: Record) -> None:
        relay = record["relay"]
        if relay.get("late"):
            self._shrink()
        elif relay.get("late_p99_ms", 0.0) < _ROOM * self._late_bound_ms:
            self._punctual += 1
        if self._punctual < self.open:
            return
        self._punctual = 0
        busy = self._busy()
        if busy > _TOO_BUSY:
            self._shrink()
        elif busy < _BUSY:
            self.open = min(self.most, self.open + 1)

    def _shrink(self) -> None:
        self.open = max(1, self.open // 2)
        self._punctual = 0


def cpu_share() -> Callable[[], float]:
    """Returns a function that gives the share of CPU time in use since its last call; 0 if unknown."""
    before = _cpu_times()

    def since() -> float:
        nonlocal before
        now = _cpu_times()
        idle, total = now[0] - before[0], now[1] - before[1]
        before = now
        return 1 - idle / total if total > 0 else 0.0

    return since


def _cpu_times() -> tuple[int, int]:
    """Idle and total jiffies of all cores since boot (proc_stat(5)).

    Time of niced tasks counts as idle: they give way to loads. Tasks that keep processors awake are niced.
    """
    try:
        fields = [int(field) for field in FilePath("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    _, nice, _, idle, waiting, *_ = fields
    return nice + idle + waiting, sum(fields)
