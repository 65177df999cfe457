"""Whatever dies, nothing is left behind; and what was interrupted can be completed."""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress

import host
import pytest
from experiment import Experiment
from program import Process, Program, namespaces_alive, own_namespaces, until

KILLS = 5 if "FIRSTFLIGHT_TEST_AGAIN" in os.environ else 20
WITHIN_S = 5.0


@pytest.mark.core
def test_killing_any_process_at_any_moment_leaves_nothing_behind_and_the_run_can_be_completed(
    program: Program,
) -> None:
    experiment = Experiment(program, repeats=2 * KILLS)
    dice = random.Random(20)
    before = host.state()
    killed: list[str] = []
    while len(killed) < KILLS:
        run = experiment.start()
        try:
            while run.poll() is None and len(killed) < KILLS:
                time.sleep(dice.uniform(0, 1.5))
                killed.append(kill_one(program, run, dice.choice(["program", "outside", "inside"])))
            assert run.poll() is not None or len(killed) == KILLS
        finally:
            run.kill()
            run.communicate()
        assert until(lambda: not program.processes(), WITHIN_S)
        assert host.state() == before
        assert program.files_elsewhere() == []

    assert experiment.resume().code == 0
    assert experiment.made() == experiment.planned()
    assert len(set(killed)) == 3 or KILLS < 20
    lost = [record["load"]["error"] for record in experiment.records() if record["load"]["status"] != "ok"]
    assert len(lost) <= killed.count("outside") + killed.count("inside"), lost
    assert all(record["proof"]["ok"] for record in experiment.records() if record["load"]["status"] == "ok")


def kill_one(program: Program, run: subprocess.Popen[str], role: str) -> str:
    """Kills the program, or a laboratory's process on one side of the wall, and sees all that hangs on it go.

    Returns:
        The role of what was killed: the program where no laboratory was running.
    """
    if role != "program":
        until(lambda: laboratory(program.laboratories(), role) or run.poll() is not None)
    laboratories = program.laboratories()
    victim = laboratory(laboratories, role)
    if victim is None:
        role, victim, dying = "program", Process(run.pid, os.getpid(), ""), program.processes()
    else:
        dying = around(laboratories, victim)
    namespaces = {name for process in dying for name in process.namespaces()} - own_namespaces()
    with suppress(ProcessLookupError):
        os.kill(victim.pid, signal.SIGKILL)
    pids = {process.pid for process in dying}
    assert until(lambda: not pids & {process.pid for process in program.processes()}, WITHIN_S), role
    assert until(lambda: not namespaces & namespaces_alive(), WITHIN_S), role
    if role == "program":
        run.wait()
    return role


def laboratory(laboratories: list[Process], role: str) -> Process | None:
    """A laboratory's process outside its namespaces or inside them, if one is running."""
    pids = {process.pid for process in laboratories}
    sides = {"outside": False, "inside": True}
    return next((process for process in laboratories if (process.parent in pids) == sides.get(role)), None)


def around(laboratories: list[Process], one: Process) -> list[Process]:
    """The processes of the laboratory that `one` is a part of."""
    outside = one.parent if any(process.pid == one.parent for process in laboratories) else one.pid
    return [process for process in laboratories if outside in (process.pid, process.parent)]
