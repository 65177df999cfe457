"""Loads made by processes of this machine, one per core: for an engine that works rather than waits.

A process, here or on a cluster, is sent tasks. A task holds blocks of one page. Its page is sent with it
where the engine needs no bodies; otherwise the worker opens it where this machine found it, and checks that
it is the same.
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
"""Simulated blocks in a task: enough that sending it costs next to nothing."""

EngineFactory = Callable[[], Engine]
"""Makes the engine in the process that uses it; can be pickled."""


@dataclass(frozen=True)
class Task:
    """Blocks of one page for one worker.

    Attributes:
        factory: A pickled `EngineFactory`.
        pages: The page, or where it is, by its name; of several versions each.
        blocks: What is to be made.
        attempts: How often a load was made before, by its order, where it was.
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
        """What the task gave."""

    def add_done_callback(self, call: Callable[..., object]) -> None:
        """Calls `call` with the future once it has ended."""


def run_task(task: Task) -> list[JournalLine]:
    """Makes the blocks.

    Raises:
        PageInputError: The page is not where it was, or another.
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
    """Puts blocks of the same page that follow each other into tasks of at most so many blocks."""
    for _, same in groupby(blocks, key=lambda block: block.loads[0].page):
        while several := tuple(islice(same, most)):
            yield make(several)


def distribute(
    waiting: Iterator[Task], submit: Callable[[Task], FutureLike], room: Callable[[], int], recorder: Recorder
) -> None:
    """Sends tasks and writes down what comes back, in this thread, until all is done.

    Args:
        waiting: What is to be done; taken only as room is made.
        submit: Sends one.
        room: How many may be under way now.
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
    """The engine of this process."""
    make: EngineFactory = pickle.loads(factory)
    return make()


@lru_cache(8)
def _open(entry: Entry) -> LoadedPage:
    return entry.open()


class Processes:
    """Implements `experiment.workers.Workers`.

    Args:
        factory: Makes the engine of each process.
        jobs: How many processes.
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
        """None but this one."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Recorder) -> None:
        """Makes every load of `blocks`; on any error or interrupt kills the processes."""
        factory = pickle.dumps(self._factory)

        def task(several: tuple[Block, ...]) -> Task:
            folder = recorder.journal.path.parent
            at = {name: pages.profile(name, folder) for block in several for name in block.recordings}
            return Task(factory, at, several, recorder.attempts_of(several), recorder.keep)

        with Pool(self._jobs) as pool:

            def submit(one: Task) -> FutureLike:
                return pool.submit(run_task, one, f"the page {one.blocks[0].loads[0].page}")

            distribute(tasks(blocks, BLOCKS_AT_ONCE, task), submit, lambda: 2 * self._jobs, recorder)
