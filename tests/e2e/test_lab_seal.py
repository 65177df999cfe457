"""A laboratory has its own names and routes, and leaves those of the host as they are."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import host
import pytest
from experiment import Experiment
from program import Process, Program, namespaces_alive, own_namespaces, until
from small_pages import assert_ok, document, load, page

from firstflight.engines.emulate import Emulator

SLOW = page("slow", document(server_ms=5_000))
"""A page whose load lasts long enough for a test to look into the laboratory."""
WITHIN_S = 5.0


@contextmanager
def running(program: Program) -> Iterator[Process]:
    """A laboratory in the middle of a load; yields the laboratory's process inside its namespaces."""
    profile = program.folder / "slow.json"
    profile.write_text(SLOW.page.to_json())
    process = program.start(
        "run", profile, "--rtt", "20", "--loss", "0.001", "--repeats", "1", "--jobs", "1", "--out", "out"
    )
    try:
        lab = until(lambda: inside(program))
        assert lab, "no laboratory came up"
        yield lab
    finally:
        process.kill()
        process.communicate()


def inside(program: Program) -> Process | None:
    """The process inside a laboratory whose client has an established connection; `None` without one.

    This excludes the laboratories of the calibration before the loads, which do not have a page's names.
    """
    laboratories = program.laboratories()
    outside = {process.pid for process in laboratories}
    for process in laboratories:
        loads = "o0.test" in read(process, "root/etc/hosts")
        if loads and process.parent in outside and ":0050 01 " in read(process, "net/tcp"):
            return process
    return None


def read(process: Process, file: str) -> str:
    try:
        return (process.folder / file).read_text()
    except OSError:
        return ""


@pytest.mark.ordinary_user
def test_a_lab_has_names_interfaces_routes_and_namespaces_of_its_own(program: Program) -> None:
    before = host.state()
    with running(program) as lab:
        assert "198.19.0.1 o0.test" in read(lab, "root/etc/hosts").splitlines()
        devices = [line.split(":")[0].strip() for line in read(lab, "net/dev").splitlines()[2:]]
        assert {"lo", "firstflight0"} <= set(devices)
        destinations = [line.split()[1] for line in read(lab, "net/route").splitlines()[1:]]
        assert destinations
        assert "00000000" not in destinations, "a way out of the laboratory"
        assert not any("o0.test" in line for line in Path("/etc/hosts").read_text().splitlines())
        assert lab.namespaces() & own_namespaces() == set()
        # The client's network and the servers'.
        assert sum(name.startswith("net:") for name in lab.namespaces()) == 2
        assert host.state() == before, "the host, while a laboratory runs"
    assert until(lambda: not program.processes(), WITHIN_S)
    assert host.state() == before


def test_a_run_that_ends_leaves_the_host_as_it_was(program: Program) -> None:
    experiment = Experiment(program, repeats=3)
    before = host.state()
    seen: set[str] = set()
    run = experiment.start("--quiet")
    while run.poll() is None:
        for process in program.laboratories():
            seen |= process.namespaces()
        time.sleep(0.02)
    _, err = run.communicate()
    assert run.returncode == 0, err
    namespaces = seen - own_namespaces()
    assert len(namespaces) >= 8, "the namespaces of several laboratories were seen"
    assert until(lambda: not program.processes(), WITHIN_S)
    assert until(lambda: not namespaces & namespaces_alive(), WITHIN_S)
    assert program.files_elsewhere() == []
    assert sorted(file.name for file in program.folder.iterdir()) == ["chain3.json", "fan2.json", "out"]
    assert host.state() == before


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_foreign_program_and_a_certificate_leave_the_host_as_it_was(mode: str, program: Program) -> None:
    before = host.state()
    ended = program("exec", "--mode", mode, "--rtt", "20", "--", "sh", "-c", 'test -s "$FIRSTFLIGHT_CA"')
    assert ended.code == 0, ended.err
    assert until(lambda: not program.processes(), WITHIN_S)
    assert program.files_elsewhere() == []
    assert host.state() == before


def test_an_https_load_leaves_the_host_as_it_was(emulator: Emulator) -> None:
    before = host.state()
    assert_ok(load(emulator, page("secure", document(url="https://o0.test/")), "tfo", scheme="recorded"))
    assert host.state() == before
