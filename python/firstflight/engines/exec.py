"""Runs a program of the user's inside a laboratory, on the user's own streams and terminal."""

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
    """Whether all witnesses of Fast Open agree."""

    ok: bool
    disagreements: list[str]


class ExecRecord(TypedDict):
    """What the laboratory says of a program that ran inside it; docs/exec.md names the rest."""

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
    """What is around the program.

    Attributes:
        path: What its packets cross.
        mode: `tcp` or `tfo`.
        cookies: The cookie state.
        keep_alive: Whether the pages' servers keep connections open.
        seed: Decides which packets are lost.
        scheme: `recorded`, or `http` for pages in the clear.
        pages: What the servers serve.
        capture: File for a capture of all packets, if one is wanted.
        transport: What every connection has.
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
    """Runs a program to its end.

    The laboratory lives as long as a pipe of this process: when this process dies, however it dies, so do the
    laboratory and everything in it. The keyboard's signals are the program's.

    Args:
        surroundings: What is around it.
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
        # A laboratory that ends before it has read everything has said why.
        with suppress(BrokenPipeError):
            while job:
                job = job[tether.write(job) :]
        output = reader.read()
        process.wait()
    record: ExecRecord = answer_of("exec", process.returncode, output)
    return record


def _start(job: int, answer: int) -> subprocess.Popen[bytes]:
    """Starts the laboratory, which takes both descriptors with it."""
    try:
        return subprocess.Popen([lab_binary(), "exec", str(job), str(answer)], pass_fds=(job, answer))
    except OSError as error:
        raise LabError(f"cannot start the laboratory: {error.strerror}", "build it again: make") from error
    finally:
        os.close(job)
        os.close(answer)


@contextmanager
def _keyboard_is_theirs() -> Iterator[None]:
    """Leaves the keyboard's signals to the program.

    A handler that does nothing, unlike an ignored signal, is not passed on to it.
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
    """Our library in front of those that the user has."""
    return " ".join(filter(None, [preload_library(), os.environ.get("LD_PRELOAD")]))
