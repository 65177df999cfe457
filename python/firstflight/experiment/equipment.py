"""What a plan needs to be carried out: its engine with its client, and a crew to use it."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from firstflight.clients import client_versions
from firstflight.clients.chromium.browser import browser_version, find_browser
from firstflight.clients.chromium.client import Artifacts, Chromium
from firstflight.clients.foreign import ForeignClient
from firstflight.clients.program import COMMANDS, Program, find_program
from firstflight.engines.emulate import LATE_BOUND_MS, Emulator
from firstflight.engines.preload import preload_library
from firstflight.engines.task import Engine
from firstflight.experiment.cluster import Cluster
from firstflight.experiment.crew import Crew
from firstflight.experiment.plan import Plan
from firstflight.experiment.pool import cores
from firstflight.experiment.processes import Processes
from firstflight.experiment.slots import Slots
from firstflight.experiment.threads import Threads

_CORES_PER_LOAD = {"chromium": 2}
"""Clients that work rather than wait."""

_FEW = 200
"""Simulated loads that are made before other processes would have started."""


@dataclass(frozen=True)
class Equipment:
    """Makes the engine of a plan, here or in another process; an `experiment.errand.Maker`.

    Attributes:
        engine: As in the plan.
        client: As in the plan.
        browser: As in the plan.
        har: Folder for a HAR of each load; `None`: none is kept.
        screenshots: Folder for a picture of each load; `None`: none is kept.
        keep: As in the plan.
    """

    engine: str
    client: str
    browser: str = ""
    har: Path | None = None
    screenshots: Path | None = None
    keep: str = "all"

    @classmethod
    def of(cls, plan: Plan, folder: Path) -> "Equipment":
        """The equipment of a plan whose results go to `folder`."""
        folder = folder.absolute()
        har, screenshots = folder / "har", folder / "screenshots"
        return cls(
            plan.engine,
            plan.client,
            plan.browser,
            har if plan.har else None,
            screenshots if plan.screenshots else None,
            plan.keep,
        )

    def __call__(self) -> Engine:
        """The engine.

        Raises:
            UsageError: The client is not installed.
            LabError: The laboratory was not built.
        """
        if self.engine == "simulate":
            from firstflight.engines.simulate import Simulator  # noqa: PLC0415 (needs nothing of this system)

            return Simulator(self.keep)
        return Emulator(clients=self._clients())

    def versions(self) -> dict[str, str]:
        """Versions of the clients that are installed. Raises `UsageError` when the plan's is not."""
        self._clients()
        if self.engine == "simulate":
            return {}
        found = client_versions()
        browser = (
            {"chromium": browser_version(find_browser(self.browser))} if self.client == "chromium" else {}
        )
        return {**found, **browser}

    def _clients(self) -> dict[str, ForeignClient]:
        """The plan's client if it is a program of its own."""
        if self.client in COMMANDS:
            return {self.client: Program(self.client, find_program(self.client), preload_library())}
        if self.client != "chromium":
            return {}
        artifacts = Artifacts(har=self.har, screenshots=self.screenshots)
        return {"chromium": Chromium(find_browser(self.browser), artifacts)}


@contextmanager
def crew_for(
    plan: Plan, equipment: Equipment, scheduler: str, warn: Callable[[str, str], object]
) -> Iterator[Crew]:
    """Who makes the loads of `plan`.

    Args:
        plan: What is measured.
        equipment: What it needs.
        scheduler: Address of a Dask scheduler; empty: this machine.
        warn: Told what is dangerous about a cluster, and what to do about it.

    Raises:
        UsageError: The cluster cannot be used.
    """
    if scheduler:
        cluster = Cluster(scheduler, equipment, labs=plan.engine == "emulate", warn=warn)
        try:
            yield cluster
        finally:
            cluster.close()
    elif plan.engine == "emulate":
        yield threads(plan, equipment())
    else:
        jobs = cores() if plan.jobs == "auto" else plan.jobs
        few = _most_loads(plan) <= _FEW
        yield Threads(equipment(), Slots(jobs, LATE_BOUND_MS)) if few else Processes(equipment, jobs)


def threads(plan: Plan, engine: Engine) -> Threads:
    """Threads of this process, for a plan."""
    cores = _CORES_PER_LOAD.get(plan.client, 0)
    return Threads(engine, Slots(plan.jobs, LATE_BOUND_MS, cores_per_load=cores))


def _most_loads(plan: Plan) -> float:
    """How many loads a plan has; unknown, so as many as can be, where a page is a pattern."""
    pages = math.inf if any(map(has_magic, plan.pages)) else len(plan.pages)
    return pages * len(plan.settings()) * len(plan.mode) * plan.repeats
