"""Builds what a plan needs: its engine, its clients, and the workers that use them."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import has_magic
from pathlib import Path

from firstflight.engines.clients import client_versions
from firstflight.engines.clients.browser import Artifacts, Browser, hosts_of
from firstflight.engines.clients.chromium.browser import (
    UNSANDBOXED,
    browser_version,
    check_hosts,
    no_sandbox,
)
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.clients.command import (
    COMMANDS,
    CurlBuild,
    ForeignClient,
    Program,
    check_tickets,
    find_program,
)
from firstflight.engines.clients.firefox.client import Firefox
from firstflight.engines.clients.versions import find_browser
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Engine
from firstflight.engines.lab import LATE_BOUND_MS, Lab, check_descriptors, preload_library
from firstflight.engines.simulate import Simulator
from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.workers import Workers
from firstflight.experiment.workers.dask import Cluster
from firstflight.experiment.workers.pool import cores
from firstflight.experiment.workers.processes import Processes
from firstflight.experiment.workers.threads import ConcurrencyLimit, Threads
from firstflight.model.plan import Plan
from firstflight.model.treatment import MODES, SAFE_METHODS
from firstflight.pages import LoadedPage

_CORES_PER_LOAD = {"chromium": 2, "firefox": 2}
"""CPU cores that a load of these clients keeps busy; other clients mostly wait."""

_BROWSERS: dict[str, type[Browser]] = {"chromium": Chromium, "firefox": Firefox}

_CHECK_S = 30.0

_FEW = 200
"""Up to this many simulated loads, threads finish before other processes would have started."""


@dataclass(frozen=True)
class EngineSetup:
    """Makes the engine of a plan, in this or another process; a `workers.processes.EngineFactory`.

    Attributes:
        engine: As in the plan.
        clients: Of the plan's treatments.
        modes: Of the plan's treatments.
        program: As in the plan.
        browser: As in the plan.
        har: Folder for a HAR of each load; `None`: do not write any.
        screenshots: Folder for a screenshot of each load; `None`: do not write any.
        keep: As in the plan.
        browser_sandbox: Whether a browser must have its own sandbox. No plan can switch it off.
    """

    engine: str
    clients: tuple[str, ...]
    browser: str = ""
    har: Path | None = None
    screenshots: Path | None = None
    keep: str = "all"
    browser_sandbox: bool = True
    modes: tuple[str, ...] = ()
    program: str = ""

    @classmethod
    def of(cls, plan: Plan, folder: Path, *, browser_sandbox: bool = True) -> "EngineSetup":
        """The setup of a plan whose results go to `folder`."""
        folder = folder.absolute()
        har, screenshots = folder / "har", folder / "screenshots"
        return cls(
            plan.engine,
            plan.clients,
            plan.browser,
            har if plan.har else None,
            screenshots if plan.screenshots else None,
            plan.keep,
            browser_sandbox,
            tuple(mode.name for mode in plan.modes),
            plan.program,
        )

    def __call__(self) -> Engine:
        """Makes the engine.

        Raises:
            UsageError: The client is not installed.
            LabError: The laboratory was not built.
        """
        if self.engine == "simulate":
            return Simulator(self.keep)
        return Emulator(clients=self._clients())

    def check_page(self, servers: int, mode_of_tls: str, page: LoadedPage) -> None:
        """Refuses a page with more origins or hosts than a laboratory here, or the browser, can have.

        Args:
            servers: The most servers behind an address; 0 where the laboratories are on other machines.
            mode_of_tls: A mode of the plan that needs an https origin; empty: no mode does.
            page: The page.

        Raises:
            PageInputError: It has too many, or it lacks an https origin or a request that the plan needs.
        """
        if mode_of_tls and not page.page.is_secure:
            raise PageInputError(
                f"{page.page.name}: no origin speaks TLS, which the mode {mode_of_tls} needs",
                "add --scheme https (profiles only), or leave the page or the mode out",
            )
        early = next((name for name in self.modes if MODES[name].early_data), "")
        secure = [resource for resource in page.page.resources if resource.url.startswith("https:")]
        if early and secure and not any(resource.method in SAFE_METHODS for resource in secure):
            raise PageInputError(
                f"{page.page.name}: none of its requests may ride in early data, which the mode {early} "
                f"sends: all are {' or '.join(sorted({resource.method for resource in secure}))}",
                "early data carries GET and HEAD only (RFC 8470); leave the page or the mode out",
            )
        try:
            if self.engine == "emulate":
                check_descriptors(len(page.page.origins), servers)
            if "chromium" in self.clients:
                check_hosts(hosts_of(page))
            if "curl" in self.clients and any(MODES[name].sessions for name in self.modes):
                check_tickets(page.page)
        except UsageError as error:
            raise PageInputError(f"{page.page.name}: {error.message}", error.hint) from error

    def versions(self) -> dict[str, str]:
        """Versions of the plan's clients. Raises `UsageError` when one of them is not installed."""
        self._clients()
        if self.engine == "simulate":
            return {}
        found = client_versions((name for name in self.clients if name not in _BROWSERS), self.program)
        without = "" if self.browser_sandbox else " without its sandbox"
        for name in _BROWSERS.keys() & {*self.clients}:
            found[name] = browser_version(find_browser(name, self.browser)) + without
        return found

    def check(self, warn: Callable[[str, str], object]) -> None:
        """Checks whether this machine meets the needs of the client.

        Args:
            warn: Told that the caller switched the sandbox off, and what that means.

        Raises:
            UsageError: A browser cannot have its sandbox, and the caller did not switch it off.
        """
        if self.engine != "emulate" or "chromium" not in self.clients:
            return
        if not self.browser_sandbox:
            warn(*UNSANDBOXED)
        elif not Lab().ask("try-browser-sandbox", timeout_s=_CHECK_S)["sandbox"]:
            raise no_sandbox("client")

    def _clients(self) -> dict[str, ForeignClient]:
        """The plan's clients that are external programs."""
        programs = [name for name in self.clients if name in COMMANDS]
        if self.program and len(programs) != 1:
            which = (
                "none of the plan's clients is one" if not programs else f"{' and '.join(programs)} are two"
            )
            raise UsageError(f"program: {which}", "give it with --client curl or --client wget2")
        modes = [MODES[name] for name in self.modes]
        # In all modes the loads send requests and share connections in the same way, so that modes are
        # comparable.
        in_turn = any(mode.sessions for mode in modes)
        found: dict[str, ForeignClient] = {}
        for name in programs:
            program = find_program(name, self.program)
            if name == "curl" and any(mode.secure for mode in modes):
                build = CurlBuild.of(program)
                for mode in modes:
                    build.check(mode)
            found[name] = Program(name, program, preload_library(), in_turn=in_turn)
        artifacts = Artifacts(har=self.har, screenshots=self.screenshots)
        browsers = [name for name in _BROWSERS if name in self.clients]
        if self.browser and len(browsers) > 1:
            raise UsageError(
                f"browser: {' and '.join(browsers)} are two programs",
                "leave --browser out: each is then the system's",
            )
        for name in browsers:
            found[name] = _BROWSERS[name](
                find_browser(name, self.browser),
                artifacts,
                sandbox=self.browser_sandbox,
                partitions=not in_turn,
            )
        return found


@contextmanager
def workers_for(
    plan: Plan, setup: EngineSetup, scheduler: str, warn: Callable[[str, str], object]
) -> Iterator[Workers]:
    """Chooses the workers that make the loads of `plan`.

    Args:
        plan: What is measured.
        setup: Makes its engine.
        scheduler: Address of a Dask scheduler; empty: this machine.
        warn: Told of each risk of a cluster or a client, and what to do about it.

    Raises:
        UsageError: The cluster or the client cannot be used.
    """
    if scheduler:
        cluster = Cluster(scheduler, setup, labs=plan.engine == "emulate", warn=warn)
        try:
            yield cluster
        finally:
            cluster.close()
    elif plan.engine == "emulate":
        setup.check(warn)
        yield threads(plan, setup())
    else:
        jobs = cores() if plan.jobs == "auto" else plan.jobs
        few = _most_loads(plan) <= _FEW
        yield Threads(setup(), ConcurrencyLimit(jobs, LATE_BOUND_MS)) if few else Processes(setup, jobs)


def page_check(plan: Plan, setup: EngineSetup, scheduler: str) -> Callable[[LoadedPage], None]:
    """A function that refuses a page which `plan` cannot load with `setup`; it can be pickled."""
    states = (state for arm in plan.arms().values() for state in arm.cookies)
    pools = [int(state.partition(":")[2]) for state in states if state.startswith("pool:")]
    servers = 0 if scheduler else max([1, *pools])
    of_tls = next((mode.name for mode in plan.modes if mode.secure), "")
    return partial(setup.check_page, servers, of_tls)


def threads(plan: Plan, engine: Engine) -> Threads:
    """Workers that are threads of this process, for a plan."""
    cores = max(_CORES_PER_LOAD.get(client, 0) for client in plan.clients)
    return Threads(engine, ConcurrencyLimit(plan.jobs, LATE_BOUND_MS, cores_per_load=cores))


def _most_loads(plan: Plan) -> float:
    """How many loads a plan has; infinity where a page is a pattern, whose number of files is not known."""
    named = plan.pages or tuple(plan.versions.values())
    pages = math.inf if any(map(has_magic, named)) else max(1, len(plan.pages))
    return pages * len(plan.settings()) * len(plan.treatments) * plan.repeats
