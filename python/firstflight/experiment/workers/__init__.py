"""The workers that make the loads of a run: threads of this process, processes, or a Dask cluster."""

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
    """Makes loads until none is left or the run is interrupted."""

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
    ) -> list[Calibration]:
        """Measures the empty paths.

        Args:
            paths: The paths to measure.
            bias_ms: What the relay adds, ms, by RTT in ms. Where it is missing, the engine measures it.
            observer: Is warned of paths that differ from the plan.

        Raises:
            LabError: A laboratory cannot be built, or failed twice.
        """

    def machines(self) -> list[Machine]:
        """The machine of each worker of a cluster; empty if all loads are made on this machine."""

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Recorder) -> None:
        """Makes every load of `blocks` and gives its record to `recorder`. Takes blocks as it needs them.

        On any error or interrupt it stops all loads in progress and raises.
        """
