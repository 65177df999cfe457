"""Talks to the laboratory, the program `firstflight-lab`: one process per job, JSON in, JSON out."""

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

CA_FILE = "/dev/shm/firstflight-ca.pem"
"""Where clients inside a laboratory find whom to trust: a file system of the laboratory's own."""


def preload_library() -> str:
    """Its path, as `LD_PRELOAD` takes it. Raises `LabError` when it is not there or cannot be named."""
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
"""A load is marked when its relay sent packets later than this after they were due."""

_STDERR_TAIL = 2000

_BEYOND_LISTENERS = 1_024
"""Descriptors that a laboratory takes beyond its listeners, as in `crates/lab/src/descriptors.rs`."""


def lab_binary() -> Path:
    """Where the package keeps the laboratory. Raises `LabError` when it was not built."""
    binary = Path(__file__).parent.parent / "_bin" / "firstflight-lab"
    if not binary.is_file():
        raise LabError("the laboratory program firstflight-lab is missing", "build it: make")
    return binary


def may_keep_awake() -> bool:
    """Whether laboratories may keep processors from halting; the user may forbid it."""
    return os.environ.get("FIRSTFLIGHT_KEEP_AWAKE") != "0"


def check_descriptors(origins: int, servers: int) -> None:
    """Refuses what a laboratory of this process has too few file descriptors for.

    Args:
        origins: Of the page.
        servers: Behind each address; each listens with a descriptor of its own.

    Raises:
        UsageError: The hard limit is too low.
    """
    needed = origins * servers + _BEYOND_LISTENERS
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != limit < needed:
        raise UsageError(
            f"{origins * servers} listeners need {needed} file descriptors, and the hard limit is {limit}",
            f"as root: ulimit -Hn {needed}; a service: LimitNOFILE={needed}; a container: --ulimit "
            f"nofile={needed}; or simulate it (--engine simulate), which needs none",
        )


class Lab:
    """Runs laboratory jobs, several at once when called from several threads.

    A laboratory watches its standard input: when this process dies, however it dies, the pipe closes and
    the laboratory goes too. It has a session of its own, and so no terminal: a Ctrl-C reaches this process
    only.

    Args:
        binary: The laboratory program; by default the one inside the package.
    """

    def __init__(self, binary: Path | None = None) -> None:
        self._binary = binary or lab_binary()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def ask(self, command: str, job: Mapping[str, object] | None = None, *, timeout_s: float) -> Any:  # noqa: ANN401 (the command says what)
        """Runs one job to its end; gives the JSON object that it answers.

        Args:
            command: `load`, `calibrate` or `doctor`.
            job: What goes to its standard input.
            timeout_s: After this it is killed; the last resort, a job has time limits of its own.

        Raises:
            LabError: The laboratory could not be built, died, or gave no answer.
            EngineStoppedError: `stop` was called.
        """
        with tempfile.TemporaryFile() as stderr:
            process = self._start(command, stderr)
            last_resort = threading.Timer(timeout_s, process.kill)
            try:
                # Started in here: a signal may come while the thread starts, and the interpreter's end would
                # wait for a timer that was not cancelled.
                last_resort.start()
                output = _converse(process, job)
            finally:
                last_resort.cancel()
                self._end(process)
            if self._stopped:
                raise EngineStoppedError
            return answer_of(command, process.returncode, output, _tail(stderr))

    def stop(self) -> None:
        """Kills every job under way and starts no other."""
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
    """Hands the job over and reads to the end. Standard input stays open: its end stops the laboratory."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError("started with pipes")
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(job or {}).encode() + b"\n")
        process.stdin.flush()
    output = process.stdout.read()
    process.wait()
    return output


def answer_of(command: str, returncode: int, output: bytes, stderr: str = "") -> Any:  # noqa: ANN401 (as ask)
    """What a laboratory answered that has ended.

    Args:
        command: What it was to do.
        returncode: How its process ended; the program's code where it gives an `exit_code`.
        output: What it wrote.
        stderr: What it wrote to standard error.

    Raises:
        LabError: It could not be built, died, or gave no answer.
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
