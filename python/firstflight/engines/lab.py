"""Runs the laboratory, the program `firstflight-lab`: one process per job, with JSON as input and output."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from firstflight import _core
from firstflight.engines.engine import EngineStoppedError
from firstflight.errors import LabError, UsageError
from firstflight.text import plural

CA_FILE = "/dev/shm/firstflight-ca.pem"
"""The certificate of the laboratory's authority, on a file system of the laboratory's own."""


def preload_library() -> str:
    """The library's path for `LD_PRELOAD`. Raises `LabError` when it is missing or has separators."""
    library = Path(_core.__file__).parent / "_bin" / "libfirstflight_preload.so"
    if not library.is_file():
        raise LabError("the library libfirstflight_preload.so is missing", "build it: make")
    # The separators of LD_PRELOAD cannot be escaped (ld.so(8)).
    if " " in str(library) or ":" in str(library):
        raise LabError(
            f"LD_PRELOAD cannot name {library}: its path has a space or a colon",
            "install firstflight in a folder without",
        )
    return str(library)


LATE_BOUND_MS = 2.0
"""A load is marked as late when its relay sent a packet more than this after it was due."""

_STDERR_TAIL = 2000

_BEYOND_LISTENERS = 1_024
"""File descriptors of a laboratory in addition to its listeners, as in `crates/lab/src/descriptors.rs`."""


def lab_binary() -> Path:
    """The path of the laboratory program in the package. Raises `LabError` when it was not built."""
    binary = Path(__file__).parent.parent / "_bin" / "firstflight-lab"
    if not binary.is_file():
        raise LabError("the laboratory program firstflight-lab is missing", "build it: make")
    return binary


def may_keep_awake() -> bool:
    """Whether laboratories may keep processors from halting; the user can forbid it."""
    return os.environ.get("FIRSTFLIGHT_KEEP_AWAKE") != "0"


def check_descriptors(origins: int, servers: int) -> None:
    """Refuses a laboratory that needs more file descriptors than this process may have.

    Args:
        origins: Number of origins of the page.
        servers: Number of servers behind each address; each has a listening descriptor.

    Raises:
        UsageError: The hard limit is too low.
    """
    listeners = origins * servers
    needed = listeners + _BEYOND_LISTENERS
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != limit < needed:
        raise UsageError(
            f"{plural(listeners, 'listener')} {'needs' if listeners == 1 else 'need'} {needed} file "
            f"descriptors, and the hard limit is {limit}",
            f"as root: ulimit -Hn {needed}; a service: LimitNOFILE={needed}; a container: --ulimit "
            f"nofile={needed}; or simulate it (--engine simulate), which needs none",
        )


class Lab:
    """Runs laboratory jobs. Several threads may call it at the same time.

    A laboratory watches its standard input: when this process dies, however it dies, the pipe closes and the
    laboratory ends too. It has its own session and so no terminal: a Ctrl-C reaches only this process.

    Args:
        binary: The laboratory program; by default the one inside the package.
    """

    def __init__(self, binary: Path | None = None) -> None:
        self._binary = binary or lab_binary()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def ask(self, command: str, job: Mapping[str, object] | None = None, *, timeout_s: float) -> Any:  # noqa: ANN401 (the command says what)
        """Runs one job to its end and returns its JSON answer.

        Args:
            command: A command of `firstflight-lab`, such as `load`, `calibrate` or `doctor`.
            job: Its standard input.
            timeout_s: After this time it is killed. Jobs have shorter time limits of their own.

        Raises:
            LabError: The laboratory could not be built, died, or gave no answer.
            EngineStoppedError: `stop` was called.
        """
        with tempfile.TemporaryFile() as stderr:
            process = self._start(command, stderr)
            last_resort = threading.Timer(timeout_s, process.kill)
            try:
                # Started inside `try`: a signal may arrive while the thread starts, and the interpreter would
                # wait at exit for a timer that was not cancelled.
                last_resort.start()
                output = _converse(process, job)
            finally:
                last_resort.cancel()
                self._end(process)
            if self._stopped:
                raise EngineStoppedError
            return answer_of(command, process.returncode, output, _tail(stderr))

    def stop(self) -> None:
        """Kills every job in progress and starts no new one."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _start(self, command: str, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise EngineStoppedError
            try:
                process = subprocess.Popen(
                    [self._binary, command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise LabError(
                    f"cannot start {self._binary}: {error.strerror}", "build it again: make"
                ) from error
            self._running.add(process)
            return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        with self._lock:
            self._running.discard(process)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()


def _converse(process: subprocess.Popen[bytes], job: Mapping[str, object] | None) -> bytes:
    """Sends the job and reads the answer. Standard input stays open: closing it would stop the laboratory."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("started with pipes")
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(job or {}).encode() + b"\n")
        process.stdin.flush()
    output = process.stdout.read()
    process.wait()
    return output


def answer_of(command: str, returncode: int, output: bytes, stderr: str = "") -> Any:  # noqa: ANN401 (as ask)
    """Reads the answer of a laboratory that has ended.

    Args:
        command: Its command.
        returncode: Its exit status; where the answer has an `exit_code`, that of the program it ran.
        output: Its standard output.
        stderr: Its standard error.

    Raises:
        LabError: The laboratory could not be built, died, or gave no answer.
    """
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    match answer:
        case {"error": {"message": str(message), "hint": str(hint)}}:
            raise LabError(message, hint)
        case dict() if returncode == 0 or "exit_code" in answer:
            return answer
    ended = f"was killed by signal {-returncode}" if returncode < 0 else f"ended with code {returncode}"
    said = f" and printed: {stderr}" if stderr else ""
    raise LabError(f"the laboratory ({command}) {ended} and gave no answer{said}", "try: firstflight doctor")


def _tail(stderr: IO[bytes]) -> str:
    size = stderr.seek(0, 2)
    stderr.seek(max(0, size - _STDERR_TAIL))
    return " ".join(stderr.read().decode(errors="replace").split())
