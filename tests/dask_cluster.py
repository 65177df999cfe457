"""A Dask cluster of real processes on this machine."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import trustme
from distributed import Client

DEADLINE_S = 300.0
"""Only a process that hangs takes longer than this, however busy the machine is."""


class Workers:
    """The workers of a Dask scheduler. They run without a nanny, which would start a killed worker again.

    Attributes:
        address: The address of the scheduler.
        processes: The workers' processes.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.processes: list[subprocess.Popen[bytes]] = []
        self._folder = folder

    def add(self, count: int, *flags: str) -> None:
        """Starts workers with one thread each and waits until the scheduler knows them."""
        command = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *flags]
        for _ in range(count):
            self.processes.append(_dask(*command, "--local-directory", str(self._folder / "dask")))
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(len(self.processes), timeout=DEADLINE_S)


@contextmanager
def cluster(folder: Path, protocol: str = "tcp") -> Iterator[Workers]:
    """Starts a scheduler without workers; stops it and all workers that were added at the end."""
    file = folder / "scheduler.json"
    address = ("--protocol", protocol, "--host", "127.0.0.1", "--port", "0")
    scheduler = _dask("scheduler", *address, "--no-dashboard", "--scheduler-file", str(file))
    with ExitStack() as ends:
        ends.callback(_kill, [scheduler])
        workers = Workers(_address(file), folder)
        ends.callback(_kill, workers.processes)
        yield workers


@contextmanager
def tls_cluster(folder: Path) -> Iterator[Workers]:
    """A cluster that speaks TLS only; all its processes have certificates of one test authority."""
    with dask.config.set(certificates(folder)), cluster(folder, "tls") as workers:
        yield workers


def certificates(folder: Path) -> dict[str, object]:
    """Dask's configuration for TLS, with a new authority and a certificate of it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    ca_file, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    authority.cert_pem.write_to_path(ca_file)
    certificate.cert_chain_pems[0].write_to_path(cert)
    certificate.private_key_pem.write_to_path(key)
    pairs = {
        f"distributed.comm.tls.{role}.{part}": str(file)
        for role in ("scheduler", "worker", "client")
        for part, file in (("cert", cert), ("key", key))
    }
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(ca_file),
        **pairs,
    }


def _dask(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        env={
            **os.environ,
            "DASK_INTERNAL_INHERIT_CONFIG": dask.config.serialize(dask.config.global_config),
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _address(file: Path) -> str:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            return str(json.loads(file.read_text())["address"])
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise AssertionError("the scheduler did not start")
