"""Loads made by processes of this machine, one per core: for an engine that computes rather than waits.

A process, on this machine or a cluster, receives tasks. A task holds blocks of one page. If the engine needs
no bodies, the page is sent with the task. Otherwise the worker opens it at the same place as this machine
did, and checks that its fingerprint is the same.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Protocol

from firstflight.engines.engine import Calibration, Engine, Record
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.catalogue import Catalogue, Entry
from firstflight.experiment.folder import Machine
from firstflight.experiment.recorder import JournalLine, Recorder, journal_line, make_block
from firstflight.experiment.schedule import Block
from firstflight.experiment.workers.pool import Pool
from firstflight.experiment.workers.threads import LOOK_S
from firstflight.model.path import Path
from firstflight.observer import Observer
from firstflight.pages import LoadedPage

BLOCKS_AT_ONCE = 32
"""Simulated blocks in a task: so many that the cost of sending it does not matter."""

EngineFactory = Callable[[], Engine]
"""Makes the engine in the process that uses it. It can be pickled."""


@dataclass(frozen=True)
class Task:
    """Blocks of one page for one worker.

    Attributes:
        factory: A pickled `EngineFactory`.
        pages: The page or its location, by name. If the page has versions: each of them.
        blocks: The loads to make.
        attempts: The number of earlier attempts by the order of the load; loads without any are left out.
        keep: As in the plan.
    """

    factory: bytes
    pages: dict[str, LoadedPage | Entry]
    blocks: tuple[Block, ...]
    attempts: dict[int, int]
    keep: str


class FutureLike(Protocol):
    """A future of `concurrent.futures` or of Dask."""

    def result(self) -> list[JournalLine]:
        """The result of the task."""

    def add_done_callback(self, call: Callable[..., object]) -> None:
        """Calls `call` with the future once it has ended."""


def run_task(task: Task) -> list[JournalLine]:
    """Makes the loads of a task.

    Raises:
        PageInputError: The page is no longer there, or its fingerprint differs.
    """
    engine = engine_of(task.factory)
    results: list[JournalLine] = []

    def keep(record: Record) -> None:
        results.append(journal_line(record, task.keep))

    def open_page(name: str) -> LoadedPage:
        page = task.pages[name]
        return page if isinstance(page, LoadedPage) else _open(page)

    for block in task.blocks:
        make_block(engine, open_page, block, lambda planned: task.attempts.get(planned.order, 0), keep)
    return results


def tasks(blocks: Iterable[Block], most: int, make: Callable[[tuple[Block, ...]], Task]) -> Iterator[Task]:
    """Groups consecutive blocks of the same page into tasks of at most `most` blocks."""
    for _, same in groupby(blocks, key=lambda block: block.loads[0].page):
        while several := tuple(islice(same, most)):
            yield make(several)


def distribute(
    waiting: Iterator[Task], submit: Callable[[Task], FutureLike], room: Callable[[], int], recorder: Recorder
) -> None:
    """Submits tasks and writes their records, in this thread, until all are done.

    Args:
        waiting: The tasks; one is taken only when it can be submitted.
        submit: Submits a task.
        room: Returns how many tasks may be in progress now.
        recorder: Takes the records.
    """
    finished: SimpleQueue[FutureLike] = SimpleQueue()
    under_way: set[FutureLike] = set()
    while True:
        for task in islice(waiting, max(0, room() - len(under_way))):
            future = submit(task)
            under_way.add(future)
            future.add_done_callback(finished.put)
        if not under_way:
            return
        try:
            future = finished.get(timeout=LOOK_S)
        except Empty:
            continue
        under_way.discard(future)
        recorder.add_all(future.result())


@lru_cache(8)
def engine_of(factory: bytes) -> Engine:
    """The engine of this process, made on the first call."""
    make: EngineFactory = pickle.loads(factory)
    return make()


@lru_cache(8)
def _open(entry: Entry) -> LoadedPage:
    return entry.open()


class Processes:
    """Implements `experiment.workers.Workers`.

    Args:
        factory: Makes the engine of each process.
        jobs: The number of processes.
    """

    def __init__(self, factory: EngineFactory, jobs: int) -> None:
        self._factory = factory
        self._jobs = jobs

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
    ) -> list[Calibration]:
        """Measures the empty paths, in this process."""
        return calibrate(self._factory(), paths, bias_ms, observer)

    def machines(self) -> list[Machine]:
        """Empty: all loads are made on this machine."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Recorder) -> None:
        """Makes every load of `blocks`. On any error or interrupt it kills the processes."""
        factory = pickle.dumps(self._factory)

        def task(several: tuple[Block, ...]) -> Task:
            folder = recorder.journal.path.parent
            at = {name: pages.profile(name, folder) for block in several for name in block.recordings}
            return Task(factory, at, several, recorder.attempts_of(several), recorder.keep)

        with Pool(self._jobs) as pool:

            def submit(one: Task) -> FutureLike:
                return pool.submit(run_task, one, f"the page {one.blocks[0].loads[0].page}")

            distribute(tasks(blocks, BLOCKS_AT_ONCE, task), submit, lambda: 2 * self._jobs, recorder)
