"""Runs a program of the user inside a laboratory, with the user's own standard streams and terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, TypedDict

from firstflight.engines.engine import Lateness, page_job
from firstflight.engines.lab import (
    CA_FILE,
    LATE_BOUND_MS,
    answer_of,
    lab_binary,
    may_keep_awake,
    preload_library,
)
from firstflight.errors import LabError
from firstflight.model.load import Transport
from firstflight.model.path import Path

if TYPE_CHECKING:
    from firstflight.pages import LoadedPage


class Proof(TypedDict):
    """Whether all observations of Fast Open agree."""

    ok: bool
    disagreements: list[str]


class ExecRecord(TypedDict):
    """The laboratory's report of a program that ran inside it; docs/exec.md lists the other keys."""

    exit_code: int
    error: str | None
    elapsed_ms: float
    requests: int
    approximate_requests: int
    unmatched_requests: int
    unmatched: list[str]
    connections: list[object]
    tfo_offered: int
    tfo_accepted: int
    bytes_down: int
    bytes_up: int
    retransmits: int
    proof: Proof
    relay: Lateness


@dataclass(frozen=True)
class Surroundings:
    """The laboratory's settings for the program.

    Attributes:
        path: The path that its packets cross.
        mode: A mode of transport, a name in `model.treatment.MODES`.
        cookies: The cookie state.
        keep_alive: Whether the pages' servers keep connections open.
        seed: Seed of the random packet loss.
        scheme: `recorded`, or `http`: pages are served without TLS.
        pages: The pages that the servers serve.
        capture: File for a capture of all packets; `None`: none is written.
        transport: Settings of every connection.
        ip: Version of IP.
    """

    path: Path
    mode: str
    cookies: str
    keep_alive: bool
    seed: int
    scheme: str = "recorded"
    pages: Sequence[LoadedPage] = ()
    capture: FilePath | None = None
    transport: Transport = field(default_factory=Transport)
    ip: str = "4"


def run_inside(surroundings: Surroundings, argv: Sequence[str]) -> ExecRecord:
    """Runs a program and waits for its end.

    The laboratory watches a pipe of this process. When this process dies, however it dies, the laboratory and
    everything in it end too. Signals from the keyboard go to the program.

    Args:
        surroundings: The laboratory's settings.
        argv: The program and its arguments.

    Returns:
        The laboratory's record: `exit_code`, `connections`, `proof` and so on, see docs/exec.md.

    Raises:
        LabError: The laboratory could not be built, or died.
    """
    job = json.dumps(_job(surroundings, argv)).encode() + b"\n"
    theirs, ours = os.pipe()
    answers, answer = os.pipe()
    with (
        os.fdopen(ours, "wb", buffering=0) as tether,
        os.fdopen(answers, "rb") as reader,
        _keyboard_is_theirs(),
    ):
        process = _start(theirs, answer)
        # A laboratory that ends before it has read everything has reported an error.
        with suppress(BrokenPipeError):
            while job:
                job = job[tether.write(job) :]
        output = reader.read()
        process.wait()
    record: ExecRecord = answer_of("exec", process.returncode, output)
    return record


def _start(job: int, answer: int) -> subprocess.Popen[bytes]:
    """Starts the laboratory, which inherits both file descriptors."""
    try:
        return subprocess.Popen([lab_binary(), "exec", str(job), str(answer)], pass_fds=(job, answer))
    except OSError as error:
        raise LabError(f"cannot start the laboratory: {error.strerror}", "build it again: make") from error
    finally:
        os.close(job)
        os.close(answer)


@contextmanager
def _keyboard_is_theirs() -> Iterator[None]:
    """Lets the program handle signals from the keyboard.

    This process installs empty handlers: unlike an ignored signal, a handler is not inherited by the program.
    """
    before = {
        number: signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGQUIT)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _job(surroundings: Surroundings, argv: Sequence[str]) -> dict[str, object]:
    capture = surroundings.capture
    return {
        "pages": [page_job(page) for page in surroundings.pages],
        "ip": surroundings.ip,
        "path": surroundings.path.to_json(surroundings.seed),
        "mode": surroundings.mode,
        "cookies": surroundings.cookies,
        "keep_alive": surroundings.keep_alive,
        "transport": surroundings.transport.to_json(),
        "scheme": surroundings.scheme,
        "ca_file": CA_FILE,
        "late_bound_ms": LATE_BOUND_MS,
        "timing": {"keep_awake": may_keep_awake()},
        "capture": str(capture.absolute()) if capture else None,
        "program": {"argv": list(argv), "env": {"FIRSTFLIGHT_CA": CA_FILE, "LD_PRELOAD": _preloads()}},
    }


def _preloads() -> str:
    """`LD_PRELOAD` of the program: firstflight's library, then the user's."""
    return " ".join(filter(None, [preload_library(), os.environ.get("LD_PRELOAD")]))
