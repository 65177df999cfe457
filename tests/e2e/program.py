"""The program `firstflight` as a process, and all its processes as the system shows them."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

T = TypeVar("T")
DEADLINE_S = 60.0
COMMAND = (sys.executable, "-c", "import sys; from firstflight.cli import main; sys.exit(main())")
"""Runs what the script `firstflight` runs; where that script is depends on how the tests are started."""
_MARK = "FIRSTFLIGHT_TEST"
_LABORATORY = "firstflight-lab"


@dataclass(frozen=True)
class Ended:
    """What a call printed, and its exit code."""

    code: int
    out: str
    err: str


class Program:
    """Calls `firstflight` with empty working, home and temporary folders of its own.

    Args:
        parent: Where these folders are made.

    Attributes:
        folder: The working folder.
    """

    def __init__(self, parent: Path) -> None:
        self.folder = parent / "work"
        self._elsewhere = [parent / "home", parent / "tmp"]
        for folder in (self.folder, *self._elsewhere):
            folder.mkdir()
        self._mark = uuid.uuid4().hex

    def __call__(self, *arguments: str | Path, wrap: tuple[str, ...] = ()) -> Ended:
        """Runs the program until it ends; `wrap` is a command line that goes in front of the program's."""
        process = self.start(*arguments, wrap=wrap)
        try:
            out, err = process.communicate(timeout=2 * DEADLINE_S)
        finally:
            process.kill()
        return Ended(process.returncode, out, err)

    def start(self, *arguments: str | Path, wrap: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Starts a call in a process group of its own, as a terminal does."""
        home, temporary = self._elsewhere
        return subprocess.Popen(
            [*wrap, *COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={
                **os.environ,
                _MARK: self._mark,
                "HOME": str(home),
                "TMPDIR": str(temporary),
                "NO_COLOR": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def laboratories(self) -> list["Process"]:
        """The processes of this program's laboratories: those outside their namespaces and those inside."""
        return [process for process in self.processes() if process.name == _LABORATORY]

    def clients(self) -> list["Process"]:
        """The processes of foreign clients in this program's laboratories."""
        everything = {process.pid: process for process in _everything()}
        inside = {process.pid for process in self.laboratories()}
        return [
            process
            for process in everything.values()
            if process.pid not in inside and inside & set(_ancestors(process, everything))
        ]

    def descendants(self) -> list["Process"]:
        """Every process below this program's process, even one that has overwritten its environment."""
        everything = {process.pid: process for process in _everything()}
        own = {process.pid for process in self.processes()}
        return [found for found in everything.values() if own & {found.pid, *_ancestors(found, everything)}]

    def processes(self) -> list["Process"]:
        """Every process that descends from this program, even if its parent has ended since."""
        mark = f"{_MARK}={self._mark}".encode()
        return [process for process in _everything() if mark in process.environment()]

    def files_elsewhere(self) -> list[Path]:
        """Files that the program wrote outside the working folder."""
        return [file for folder in self._elsewhere for file in folder.rglob("*")]


@dataclass(frozen=True)
class Process:
    """A running process."""

    pid: int
    parent: int
    name: str

    @property
    def folder(self) -> Path:
        """Its folder in /proc."""
        return Path(f"/proc/{self.pid}")

    def environment(self) -> list[bytes]:
        """The environment variables that the process started with, if this user may read them."""
        try:
            return (self.folder / "environ").read_bytes().split(b"\0")
        except OSError:
            return []

    def is_pytest(self) -> bool:
        """Whether it runs tests."""
        try:
            return b"pytest" in (self.folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False

    def namespaces(self) -> set[str]:
        """The namespaces of all its threads, such as `net:[4026532281]`."""
        kinds = ("user", "net", "mnt", "pid")
        return {_link(task / "ns" / kind) for task in _list(self.folder / "task") for kind in kinds} - {""}


def own_namespaces() -> set[str]:
    """The namespaces of this process."""
    return {_link(link) for link in _list(Path("/proc/self/ns"))}


def namespaces_alive() -> set[str]:
    """Every namespace that a process is in or holds open, as far as this user may see.

    The kernel may give the number of a namespace that has ended to a new one. Left out are the processes that
    may have it now: those of laboratories, and those that other runs of pytest have started.
    """
    everything = {process.pid: process for process in _everything()}
    others = [process.folder for process in everything.values() if not _is_foreign(process, everything)]
    tasks = [task for process in others for task in _list(process / "task")]
    links = [link for task in tasks for link in _list(task / "ns")]
    handles = [handle for process in others for handle in _list(process / "fd")]
    return {_link(link) for link in [*links, *handles]} - {""}


def unavailable(reason: str) -> NoReturn:
    """Ends the test because something that it needs is missing: a failure in CI, a skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def until(condition: Callable[[], T], within_s: float = DEADLINE_S) -> T | None:
    """Waits until `condition` returns a true value.

    Returns:
        That value; `None` if `condition` returns none within `within_s`.
    """
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    return found


def _everything() -> list[Process]:
    found = (_process(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [process for process in found if process]


def _process(pid: int) -> Process | None:
    try:
        # The name stands in brackets and may hold anything (proc_pid_stat(5)).
        before, _, after = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return None
    state, parent = after.split()[:2]
    return None if state in "ZX" else Process(pid, int(parent), before.partition("(")[2])


def _is_foreign(process: Process, everything: dict[int, Process]) -> bool:
    """Whether a process is, or was started by, a laboratory or another pytest than this one."""
    line = [process.pid, *_ancestors(process, everything)]
    if os.getpid() in line:
        line = line[: line.index(os.getpid())]
    return any(everything[pid].name == _LABORATORY or everything[pid].is_pytest() for pid in line)


def _ancestors(process: Process, everything: dict[int, Process]) -> Iterator[int]:
    parent = everything.get(process.parent)
    while parent:
        yield parent.pid
        parent = everything.get(parent.parent)


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
