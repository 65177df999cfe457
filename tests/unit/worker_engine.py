"""An engine double that a worker process can make: it leaves a trace of every load in a file."""

import os
from dataclasses import dataclass
from pathlib import Path

from engine_double import EngineDouble

from firstflight.errors import LabError
from firstflight.model.load import PlannedLoad


@dataclass(frozen=True)
class TracedEngine:
    """Makes the engine; an `experiment.workers.processes.EngineFactory`.

    Attributes:
        trace: Gets a line per load: process and load.
        fatal: Load over which the process kills itself.
        deaths: How often it does.
        failing: Load whose laboratory always fails.
    """

    trace: Path
    fatal: str = ""
    deaths: int = 1
    failing: str = ""

    def __call__(self) -> EngineDouble:
        return EngineDouble(before=self._note)

    def _note(self, planned: PlannedLoad, number: int) -> None:
        with self.trace.open("a") as file:
            file.write(f"{os.getpid()} {planned.load_id}\n")
        if planned.load_id == self.fatal and self.lines().count(self.fatal) <= self.deaths:
            os.kill(os.getpid(), 9)
        if planned.load_id == self.failing:
            raise LabError("the laboratory died", "try: firstflight doctor")

    def lines(self) -> list[str]:
        """The loads that were begun, in order."""
        return [line.split()[1] for line in self.trace.read_text().splitlines()]

    def processes(self) -> set[int]:
        """Who made them."""
        return {int(line.split()[0]) for line in self.trace.read_text().splitlines()}
