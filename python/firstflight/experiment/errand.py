"""Blocks that are made in another process: what a worker is sent, and what it does.

An errand holds blocks of one page. Its page is sent with it where the engine needs no bodies; otherwise the
worker opens it where this machine found it, and checks that it is the same.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Protocol

from firstflight.engines.engine import Engine, Record
from firstflight.experiment.attempts import make_block
from firstflight.experiment.book import Book, Made, made
from firstflight.experiment.catalogue import Entry
from firstflight.experiment.schedule import Block
from firstflight.experiment.threads import LOOK_S
from firstflight.pages import LoadedPage

BLOCKS_AT_ONCE = 32
"""Simulated blocks in an errand: enough that sending it costs nothing beside them."""

Maker = Callable[[], Engine]
"""Makes the engine in the process that uses it; can be pickled."""


@dataclass(frozen=True)
class Errand:
    """Blocks of one page for one worker.

    Attributes:
        maker: A pickled `Maker`.
        page: The page, or where it is.
        blocks: What is to be made.
        attempts: How often a load was made before, by its order, where it was.
        keep: As in the plan.
    """

    maker: bytes
    page: LoadedPage | Entry
    blocks: tuple[Block, ...]
    attempts: dict[int, int]
    keep: str


class FutureLike(Protocol):
    """A future of `concurrent.futures` or of Dask."""

    def result(self) -> list[Made]:
        """What the errand gave."""

    def add_done_callback(self, call: Callable[..., object]) -> None:
        """Calls `call` with the future once it has ended."""


def run_errand(errand: Errand) -> list[Made]:
    """Makes the blocks.

    Raises:
        PageInputError: The page is not where it was, or another.
    """
    engine = engine_of(errand.maker)
    page = errand.page if isinstance(errand.page, LoadedPage) else _open(errand.page)
    results: list[Made] = []

    def keep(record: Record) -> None:
        results.append(made(record, errand.keep))

    for block in errand.blocks:
        make_block(engine, page, block, lambda planned: errand.attempts.get(planned.order, 0), keep)
    return results


def errands(
    blocks: Iterable[Block], most: int, make: Callable[[tuple[Block, ...]], Errand]
) -> Iterator[Errand]:
    """Puts blocks of the same page that follow each other into errands of at most so many blocks."""
    for _, same in groupby(blocks, key=lambda block: block.loads[0].page):
        while several := tuple(islice(same, most)):
            yield make(several)


def distribute(
    waiting: Iterator[Errand], submit: Callable[[Errand], FutureLike], room: Callable[[], int], book: Book
) -> None:
    """Sends errands and writes down what comes back, in this thread, until all is done.

    Args:
        waiting: What is to be done; taken only as room is made.
        submit: Sends one.
        room: How many may be under way now.
        book: Takes the records.
    """
    finished: SimpleQueue[FutureLike] = SimpleQueue()
    under_way: set[FutureLike] = set()
    while True:
        for errand in islice(waiting, max(0, room() - len(under_way))):
            future = submit(errand)
            under_way.add(future)
            future.add_done_callback(finished.put)
        if not under_way:
            return
        try:
            future = finished.get(timeout=LOOK_S)
        except Empty:
            continue
        under_way.discard(future)
        book.add_all(future.result())


@lru_cache(8)
def engine_of(maker: bytes) -> Engine:
    """The engine of this process."""
    make: Maker = pickle.loads(maker)
    return make()


@lru_cache(8)
def _open(entry: Entry) -> LoadedPage:
    return entry.open()
