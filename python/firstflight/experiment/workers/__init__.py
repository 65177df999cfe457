"""What makes the loads of a run: threads of this process, processes of this machine, or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from firstflight.engines.engine import Calibration
    from firstflight.experiment.catalogue import Catalogue
    from firstflight.experiment.folder import Machine
    from firstflight.experiment.recorder import Recorder
    from firstflight.experiment.schedule import Block
    from firstflight.model.path import Path
    from firstflight.observer import Observer


class Workers(Protocol):
    """Makes loads until none is left, or until it is interrupted."""

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
    ) -> list[Calibration]:
        """Measures the empty paths.

        Args:
            paths: Each is measured.
            bias_ms: What the relay adds, ms, by RTT in ms, where it is known; else it is measured.
            observer: Is told of paths that are off.

        Raises:
            LabError: A laboratory cannot be built, or failed twice.
        """

    def machines(self) -> list[Machine]:
        """What the machines of a cluster are, a worker each; empty for this machine."""

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Recorder) -> None:
        """Makes every load of `blocks` and gives it to `recorder`; takes blocks only when it needs them.

        On any error or interrupt it stops all that is under way and raises.
        """
