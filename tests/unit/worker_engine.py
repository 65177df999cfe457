"""An engine double for worker processes: it writes a line to a file for every load."""

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
        trace: A file; each load that begins adds a line with the process and the load.
        fatal: The load at which the process kills itself.
        deaths: How often it does so.
        failing: The load whose laboratory always fails.
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
        """The loads that began, in order."""
        return [line.split()[1] for line in self.trace.read_text().splitlines()]

    def processes(self) -> set[int]:
        """The processes that made loads."""
        return {int(line.split()[0]) for line in self.trace.read_text().splitlines()}
