"""Who makes the loads of a run: threads of this process, processes of this machine, or a cluster."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from firstflight.engines.task import Calibration, Path
from firstflight.experiment.book import Book
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.schedule import Block
from firstflight.experiment.watch import Watch


@runtime_checkable
class Crew(Protocol):
    """Makes loads until none is left, or until it is interrupted."""

    def calibrate(self, paths: Sequence[Path], watch: Watch) -> list[Calibration]:
        """Measures the empty paths. Raises `LabError` when a laboratory cannot be built."""

    def machines(self) -> list[dict[str, Any]]:
        """What the machines of a cluster are, a worker each; empty for this machine."""

    def make(self, blocks: Iterator[Block], pages: Catalogue, book: Book) -> None:
        """Makes every load of `blocks` and writes it down in `book`; takes blocks only when it needs them.

        On any error or interrupt it stops all that is under way and raises.
        """
