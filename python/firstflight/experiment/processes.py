"""Loads made by processes of this machine, one per core: for an engine that works rather than waits.

Each is a Python of its own that reads errands from its standard input and ends with it: however this process
dies, they go too. A Ctrl-C in the terminal does not reach them.
"""

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock
from typing import Any, cast

from firstflight.engines.task import Calibration, EngineStoppedError, Path
from firstflight.errors import ExperimentError
from firstflight.experiment.book import Book, Made
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.errand import BLOCKS_AT_ONCE, Errand, Maker, distribute, errands
from firstflight.experiment.schedule import Block
from firstflight.experiment.watch import Watch
from firstflight.experiment.worker import receive, send

_TRIES = 2


class Processes:
    """Implements `experiment.crew.Crew`.

    Args:
        maker: Makes the engine of each process.
        jobs: How many processes.
    """

    def __init__(self, maker: Maker, jobs: int) -> None:
        self._maker = maker
        self._jobs = jobs

    def calibrate(self, paths: Sequence[Path], watch: Watch) -> list[Calibration]:
        """Measures the empty paths, in this process."""
        return calibrate(self._maker(), paths, watch)

    def machines(self) -> list[dict[str, Any]]:
        """None but this one."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, book: Book) -> None:
        """Makes every load of `blocks`; on any error or interrupt kills the processes."""
        maker = pickle.dumps(self._maker)

        def errand(several: tuple[Block, ...]) -> Errand:
            page = pages.profile(several[0].loads[0].page, book.journal.path.parent)
            return Errand(maker, page, several, book.attempts_of(several), book.keep)

        with _Pool(self._jobs) as pool:
            distribute(errands(blocks, BLOCKS_AT_ONCE, errand), pool.submit, lambda: 2 * self._jobs, book)


class _Pool:
    """Processes that are started when there is work, each used by one thread at a time."""

    def __init__(self, jobs: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._workers = [_Worker() for _ in range(jobs)]
        for worker in self._workers:
            self._idle.put(worker)
        self.submit = lambda errand: self._threads.submit(self._run, errand)

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(cancel_futures=True)

    def _run(self, errand: Errand) -> list[Made]:
        worker = self._idle.get()
        try:
            return worker.run(errand)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process; started again if it is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = Lock()

    def run(self, errand: Errand) -> list[Made]:
        """Sends an errand and waits for what comes of it.

        Raises:
            ExperimentError: The process died over it, twice.
            EngineStoppedError: `stop` was called.
        """
        for _ in range(_TRIES):
            process = self._started()
            try:
                send(process.stdin, errand)
                answer = receive(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                _end(process)
                continue
            if isinstance(answer, BaseException):
                raise answer
            return cast(list[Made], answer)
        page = errand.blocks[0].loads[0].page
        raise ExperimentError(
            f"a worker process died twice over the page {page} ({_ending(process.wait())})",
            "is memory short? use fewer: --jobs; then go on with --resume",
        )

    def stop(self) -> None:
        """Kills the process and starts no other."""
        with self._lock:
            self._stopped = True
            if self._process:
                _end(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise EngineStoppedError
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "firstflight.experiment.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    process_group=0,
                )
            return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with suppress(OSError, ValueError):  # A pipe that broke, or that the other thread has closed already.
        process.communicate()


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"code {code}"
