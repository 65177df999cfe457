"""Loads made in this process, each block in one thread: for an engine that waits, or a few loads."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from firstflight.engines.engine import Calibration, Engine, EngineStoppedError, Record
from firstflight.experiment.attempts import make_block
from firstflight.experiment.book import Book
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.schedule import Block
from firstflight.experiment.slots import Slots
from firstflight.experiment.watch import Watch
from firstflight.model.path import Path

LOOK_S = 0.25
"""How often the main thread wakes up: a signal that the system gave to another thread does not wake it."""


class Threads:
    """Implements `experiment.crew.Crew`.

    Args:
        engine: Makes the loads.
        slots: How many at a time.
    """

    def __init__(self, engine: Engine, slots: Slots) -> None:
        self._engine = engine
        self._slots = slots

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], watch: Watch
    ) -> list[Calibration]:
        """Measures the empty paths."""
        return calibrate(self._engine, paths, bias_ms, watch)

    def machines(self) -> list[dict[str, Any]]:
        """None but this one."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, book: Book) -> None:
        """Makes every load of `blocks`; on any error or interrupt stops all that is under way."""
        feed = _Feed(blocks)
        with ThreadPoolExecutor(self._slots.most, thread_name_prefix="load") as pool:
            try:
                left = {pool.submit(self._work, feed, pages, book) for _ in range(self._slots.most)}
                while left:
                    done, left = wait(left, timeout=LOOK_S, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self._slots.close()
                self._engine.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _work(self, feed: "_Feed", pages: Catalogue, book: Book) -> None:
        more = True
        while more:
            more = self._next(feed, pages, book)

    def _next(self, feed: "_Feed", pages: Catalogue, book: Book) -> bool:
        try:
            if not self._slots.acquire() or (block := feed.take()) is None:
                return False
            page = pages.open(block.loads[0].page)
            make_block(self._engine, page, block, book.attempts, lambda record: self._keep(book, record))
            return True
        except EngineStoppedError:
            return False
        finally:
            self._slots.release()

    def _keep(self, book: Book, record: Record) -> None:
        book.add(record)
        self._slots.note(record)


class _Feed:
    """Hands out blocks to threads, each once."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._lock = threading.Lock()

    def take(self) -> Block | None:
        with self._lock:
            return next(self._blocks, None)
