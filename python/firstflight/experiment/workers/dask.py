"""Loads made by the workers of a Dask cluster, with the same tasks as the processes of one machine.

Only this process writes results. When a worker dies, the scheduler gives its tasks to another worker; a
record that arrives twice is written once. A task of an engine that builds laboratories takes one `lab`
resource of its worker. So a machine runs as many as its worker was started with: `dask worker ADDRESS
--resources lab=1`.
"""

import asyncio
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path as FilePath
from socket import getaddrinfo
from typing import TYPE_CHECKING, Any, cast

from firstflight.engines.engine import Calibration
from firstflight.errors import ExperimentError, FirstflightError, UsageError
from firstflight.experiment.calibrate import twice, warn_of
from firstflight.experiment.catalogue import Catalogue, Entry
from firstflight.experiment.folder import Machine, describe_machine
from firstflight.experiment.recorder import Recorder
from firstflight.experiment.schedule import Block
from firstflight.experiment.workers.processes import (
    BLOCKS_AT_ONCE,
    EngineFactory,
    FutureLike,
    Task,
    distribute,
    engine_of,
    run_task,
    tasks,
)
from firstflight.model.path import Path
from firstflight.observer import Observer
from firstflight.pages import LoadedPage

if TYPE_CHECKING:
    from distributed import Client, Future


LAB = "lab"
"""The worker resource of which each laboratory takes one."""

_CONNECT_S = 10
_START_HINT = "start one with `dask scheduler`, which prints its address, such as tcp://host:8786"
_TLS_HINT = (
    "an address tls://HOST:PORT needs distributed.comm.tls.ca-file, .client.cert and .client.key in Dask's "
    "configuration, of the scheduler's authority: docs/sweeps.md"
)
_TASKS_PER_THREAD = 2


class Cluster:
    """Implements `experiment.workers.Workers`.

    Args:
        address: Of the Dask scheduler, such as `tcp://host:8786`.
        factory: Makes the engine in each worker.
        labs: Whether the engine builds laboratories.
        warn: Told of each risk of the connection, and what to do about it.

    Raises:
        UsageError: `distributed` is not installed, the scheduler cannot be reached, it has no worker for
            these loads, or a worker has another version of firstflight.
    """

    def __init__(
        self, address: str, factory: EngineFactory, *, labs: bool, warn: Callable[[str, str], object]
    ) -> None:
        self._factory = pickle.dumps(factory)
        self._labs = labs
        self._client = _connect(address, warn)
        try:
            _check_workers(self._client, address, labs=labs)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnects from the cluster, which keeps running."""
        self._client.close(timeout=_CONNECT_S)

    def calibrate(
        self, paths: Sequence[Path], bias_ms: Mapping[float, float], observer: Observer
    ) -> list[Calibration]:
        """Measures the empty paths, each on any worker.

        Raises:
            LabError: A laboratory cannot be built there, or failed twice.
        """
        futures: list[Future[Any]] = []

        def submit(path: Path) -> "Future[Any]":
            futures.append(self._submit(_calibrate, self._factory, path, bias_ms.get(path.rtt_ms)))
            return futures[-1]

        waiting = {path: submit(path) for path in paths}

        def measure(path: Path) -> Calibration:
            return cast(Calibration, _result(waiting.pop(path) if path in waiting else submit(path)))

        try:
            calibrations = [twice(partial(measure, path), observer) for path in paths]
        except BaseException:
            self._client.cancel(futures)
            raise
        warn_of(calibrations, observer)
        return calibrations

    def machines(self) -> list[Machine]:
        """The machine of each worker."""
        return list(self._client.run(describe_machine).values())

    def make(self, blocks: Iterator[Block], pages: Catalogue, recorder: Recorder) -> None:
        """Makes every load of `blocks`. On any error or interrupt it cancels tasks that have not begun."""

        def task(several: tuple[Block, ...]) -> Task:
            folder = recorder.journal.path.parent
            at = {name: self._page(pages, name, folder) for block in several for name in block.recordings}
            return Task(self._factory, at, several, recorder.attempts_of(several), recorder.keep)

        most = 1 if self._labs else BLOCKS_AT_ONCE
        sent: set[_Sent] = set()

        def submit(one: Task) -> FutureLike:
            future = _Sent(self._submit(run_task, one), sent)
            sent.add(future)
            return future

        try:
            distribute(tasks(blocks, most, task), submit, self._room, recorder)
        except BaseException:
            with suppress(Exception):
                self._client.cancel([one.future for one in sent])
            raise

    def _page(self, pages: Catalogue, name: str, folder: FilePath) -> LoadedPage | Entry:
        """The page itself where no bodies are needed; else its location on a disk that all share."""
        if not self._labs:
            found = pages.profile(name, folder)
            return found.open() if isinstance(found, Entry) else found
        page = pages.open(name)
        if not page.bodies:
            return page
        entry = pages.entry(name)
        return (
            replace(entry, spec=str(FilePath(entry.spec).absolute())) if isinstance(entry, Entry) else entry
        )

    def _submit(self, call: Callable[..., object], *arguments: object) -> "Future[Any]":
        resources = {LAB: 1} if self._labs else None
        return self._client.submit(call, *arguments, pure=False, resources=resources)

    def _room(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, _TASKS_PER_THREAD * sum(_places(worker, labs=self._labs) for worker in workers))


class _Sent:
    """A Dask future whose errors are raised as firstflight's own."""

    def __init__(self, future: "Future[Any]", sent: "set[_Sent]") -> None:
        self.future = future
        self._sent = sent

    def result(self) -> Any:  # noqa: ANN401 (whatever the task gives)
        self._sent.discard(self)
        return _result(self.future)

    def add_done_callback(self, call: Callable[..., object]) -> None:
        self.future.add_done_callback(lambda _: call(self))


def _connect(address: str, warn: Callable[[str, str], object]) -> "Client":
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise UsageError(
            "scheduler: the package distributed is not installed",
            "pip install 'firstflight[cluster]'",
        ) from error
    try:
        if _is_exposed(address):
            warn(
                f"the connection to {address} is not encrypted, and what arrives on it is unpickled: "
                "anyone who can reach or alter it can run code here and on every worker",
                "give the cluster TLS (docs/sweeps.md), or tunnel the connection over ssh",
            )
        asyncio.run(_knock(address))
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        # `distributed` raises TypeError without certificates, RuntimeError where encryption is required.
        tls = isinstance(cause, TypeError | RuntimeError) or "SSL" in str(cause)
        raise UsageError(
            f"scheduler: no Dask scheduler answers at {address}: {cause}", _TLS_HINT if tls else _START_HINT
        ) from error


def _is_exposed(address: str) -> bool:
    """Whether the connection leaves this machine unencrypted. An unknown host counts as remote."""
    from distributed.comm.addressing import (  # noqa: PLC0415 (an extra)
        get_address_host,
        parse_address,
    )

    if parse_address(address)[0] in {"tls", "wss", "inproc"}:
        return False
    try:
        found = getaddrinfo(get_address_host(address), None)
    except OSError:
        return True
    return not all(ip_address(str(where[0]).split("%")[0]).is_loopback for *_, where in found)


async def _knock(address: str) -> None:
    """Raises where no scheduler answers. A `Client` that cannot connect prints warnings later."""
    from distributed.comm.core import connect  # noqa: PLC0415 (an extra)
    from distributed.security import Security  # noqa: PLC0415

    arguments = Security().get_connection_args("client")
    comm = await connect(address, timeout=_CONNECT_S, **arguments)
    comm.abort()


def _check_workers(client: "Client", address: str, *, labs: bool) -> None:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise UsageError(
            f"scheduler: {address} has no workers", f"start some: dask worker {address} --resources lab=1"
        )
    if not any(_places(worker, labs=labs) for worker in workers.values()):
        raise UsageError(
            f"scheduler: no worker of {address} has the resource {LAB}, and emulated loads take one each",
            f"start workers with it: dask worker {address} --resources {LAB}=1",
        )
    for worker, found in client.run(_version, on_error="return").items():
        if found != version("firstflight"):
            seen = "no firstflight" if isinstance(found, BaseException) else f"firstflight {found}"
            raise UsageError(
                f"scheduler: the worker {worker} has {seen}, this is {version('firstflight')}",
                "install the same version on every worker",
            )


def _places(worker: Mapping[str, Any], *, labs: bool) -> int:
    return int(worker["resources"].get(LAB, 0) if labs else worker["nthreads"])


def _version() -> str:
    return version("firstflight")


def _calibrate(factory: bytes, path: Path, bias_ms: float | None) -> Calibration:
    return engine_of(factory).calibrate(path, bias_ms)


def _result(future: "Future[Any]") -> object:
    try:
        return future.result()
    except FirstflightError:
        raise
    except Exception as error:
        raise ExperimentError(
            f"scheduler: a task failed on the cluster: {type(error).__name__}: {error}",
            "see the logs of its workers; then continue with --resume",
        ) from error
