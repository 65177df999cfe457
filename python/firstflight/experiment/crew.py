"""Who makes the loads of a run: threads of this process, processes of this machine, or a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from firstflight.engines.engine import Calibration
from firstflight.experiment.book import Book
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.schedule import Block
from firstflight.experiment.watch import Watch
from firstflight.model.path import Path


@runtime_checkable
class Crew(Protocol):
    """Makes loads until none is left, or until it is interrupted."""

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], watch: Watch
    ) -> list[Calibration]:
        """Measures the empty paths.

        Args:
            paths: Each is measured.
            bias_ms: What the relay adds, ms, by RTT in ms, where it is known; else it is measured.
            watch: Is told of paths that are off.

        Raises:
            LabError: A laboratory cannot be built, or failed twice.
        """

    def machines(self) -> list[dict[str, Any]]:
        """What the machines of a cluster are, a worker each; empty for this machine."""

    def make(self, blocks: Iterator[Block], pages: Catalogue, book: Book) -> None:
        """Makes every load of `blocks` and writes it down in `book`; takes blocks only when it needs them.

        On any error or interrupt it stops all that is under way and raises.
        """
