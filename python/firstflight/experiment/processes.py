"""Loads made by processes of this machine, one per core: for an engine that works rather than waits."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from firstflight.engines.engine import Calibration
from firstflight.experiment.book import Book
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.errand import (
    BLOCKS_AT_ONCE,
    Errand,
    FutureLike,
    Maker,
    distribute,
    errands,
    run_errand,
)
from firstflight.experiment.pool import Pool
from firstflight.experiment.schedule import Block
from firstflight.experiment.watch import Watch
from firstflight.model.path import Path


class Processes:
    """Implements `experiment.crew.Crew`.

    Args:
        maker: Makes the engine of each process.
        jobs: How many processes.
    """

    def __init__(self, maker: Maker, jobs: int) -> None:
        self._maker = maker
        self._jobs = jobs

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], watch: Watch
    ) -> list[Calibration]:
        """Measures the empty paths, in this process."""
        return calibrate(self._maker(), paths, bias_ms, watch)

    def machines(self) -> list[dict[str, Any]]:
        """None but this one."""
        return []

    def make(self, blocks: Iterator[Block], pages: Catalogue, book: Book) -> None:
        """Makes every load of `blocks`; on any error or interrupt kills the processes."""
        maker = pickle.dumps(self._maker)

        def errand(several: tuple[Block, ...]) -> Errand:
            page = pages.profile(several[0].loads[0].page, book.journal.path.parent)
            return Errand(maker, page, several, book.attempts_of(several), book.keep)

        with Pool(self._jobs) as pool:

            def submit(one: Errand) -> FutureLike:
                return pool.submit(run_errand, one, f"the page {one.blocks[0].loads[0].page}")

            distribute(errands(blocks, BLOCKS_AT_ONCE, errand), submit, lambda: 2 * self._jobs, book)
