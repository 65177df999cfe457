"""A simulator that kills its worker process when it is asked for one chosen load, the first time only."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from firstflight.engines.engine import Record
from firstflight.engines.simulate import Simulator
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage


@dataclass(frozen=True)
class DyingSimulator:
    """Makes the engine; an `experiment.workers.processes.EngineFactory`.

    Attributes:
        fatal: The load that makes the process kill itself.
        mark: A file that the engine creates before that. Once it exists, no process kills itself.
    """

    fatal: str
    mark: Path

    def __call__(self) -> "_Engine":
        return _Engine(self)


class _Engine(Simulator):
    def __init__(self, factory: DyingSimulator) -> None:
        super().__init__()
        self._factory = factory

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        if planned.load_id == self._factory.fatal and not self._factory.mark.exists():
            self._factory.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(planned, page)
