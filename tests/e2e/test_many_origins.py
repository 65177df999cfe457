"""Pages of thousands of origins, and laboratories that have too few file descriptors for them."""

import json
import resource
import sys
from pathlib import Path

import pytest
from program import Ended, Program
from small_pages import fan

from firstflight.pages import LoadedPage

ORIGINS = 2_000
DEFAULT_SOFT_LIMIT = 1_024
"""The soft limit of file descriptors on most systems."""


def small_fan(origins: int) -> LoadedPage:
    """A page of a document and small images, each on its own origin: `origins` in all."""
    return fan(origins - 1, request_bytes=60, header_bytes=80, body_bytes=10)


def limited(soft: int, hard: int) -> tuple[str, ...]:
    """A command prefix that sets the soft and hard limits of file descriptors."""
    return ("prlimit", f"--nofile={soft}:{hard}")


def profile(folder: Path, origins: int) -> Path:
    file = folder / "many.json"
    file.write_text(small_fan(origins).page.to_json())
    return file


@pytest.mark.parametrize("engine", ["emulate", "simulate"])
def test_a_page_of_2000_origins_is_loaded_under_the_usual_limit_of_descriptors(
    program: Program, engine: str
) -> None:
    file = profile(program.folder, ORIGINS)
    path = ("--rtt", "20", "--down", "100mbit", "--up", "100mbit")
    run = ("run", file, "--engine", engine, *path, "--repeats", "1", "--out", "out")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ended = program(*run, wrap=limited(DEFAULT_SOFT_LIMIT, hard))
    assert ended.code == 0, ended.err
    for line in (program.folder / "out" / "journal.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["load"]["status"] == "ok"
        assert len({row["origin"] for row in record["connections"]}) == ORIGINS


def test_a_page_of_more_origins_than_the_hard_limit_has_room_for_is_refused_before_the_run(
    program: Program,
) -> None:
    file = profile(program.folder, 200)
    run: tuple[str | Path, ...] = ("run", file, "--rtt", "20", "--repeats", "1", "--out", "out")
    refused = program(*run, wrap=limited(1_000, 1_223))
    assert refused.code == 2
    assert "200 listeners need 1224 file descriptors, and the hard limit is 1223" in refused.err
    assert "ulimit -Hn 1224" in refused.err
    assert not (program.folder / "out").exists()

    enough = program(*run, wrap=limited(1_000, 1_224))
    assert enough.code == 0, enough.err


def test_the_laboratory_itself_refuses_what_its_limit_has_no_room_for(program: Program) -> None:
    file = profile(program.folder, 200)
    ended = program("exec", "--pages", file, "--", "true", wrap=limited(1_000, 1_223))
    assert ended.code == 1
    assert "200 listeners need 1224 file descriptors, and the limit is 1223" in ended.err


HOLDING_S = 6


def held(program: Program, connections: int) -> tuple[Ended, float]:
    """Runs a program that opens `connections` connections and holds them for `HOLDING_S` seconds.

    Returns:
        How the call ended, and the processor time of all its processes, s.
    """
    client = (
        "import socket, time\n"
        f"held = [socket.create_connection(('o1.test', 80)) for _ in range({connections})]\n"
        f"time.sleep({HOLDING_S})\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = program(
        *("exec", "--mode", "tcp", "--rtt", "1", "--pages", profile(program.folder, 200)),
        *("--", sys.executable, "-c", client),
        wrap=limited(1_224, 1_224),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended, sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))


def test_servers_without_descriptors_wait_instead_of_spinning_and_the_run_says_so(program: Program) -> None:
    """With 200 listeners, the limit leaves descriptors for 900 connections but not for 1,210."""
    enough, usual_s = held(program, 900)
    assert enough.code == 0, enough.err
    too_many, cpu_s = held(program, 1_210)
    assert too_many.code == 1
    assert "the servers could not accept a connection: Too many open files" in too_many.err
    assert "ulimit -Hn" in too_many.err
    assert cpu_s - usual_s < HOLDING_S / 2, "a thread that spins takes all of it"
