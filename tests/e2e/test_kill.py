"""Whatever dies, nothing is left behind; and what was interrupted can be completed, as if nothing had been.

The large number of moments: `FIRSTFLIGHT_TEST_KILLS=100 pytest -s tests/e2e/test_kill.py`; a run in Chromium
gets a fifth as many, at least two. `-s` shows the counts.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from statistics import median

import host
import pytest
from experiment import RTT_MS, Experiment
from program import Process, Program, namespaces_alive, own_namespaces, until
from synth_site import program as installed

KILLS = int(os.environ.get("FIRSTFLIGHT_TEST_KILLS", "6"))
WITHIN_S = 5.0
TRIPS = 0.5
"""How far the page load times of a killed run may be from those of others, in round trips.

A cookie that is lost, or a queue that a killed process leaves behind, costs a whole one or more. A test of
ranks would find a tenth of a millisecond, by which any machine differs from one minute to the next.
"""
AMONG_LOADS = 0.8
"""In this share of the runs nothing is killed before a load was made: else calibrations take all kills."""


@pytest.mark.ordinary_user
def test_killing_any_process_at_any_moment_leaves_nothing_behind_and_the_run_can_be_completed(
    program: Program,
) -> None:
    repeats = max(3, 15 * KILLS // 100)
    before, experiment, after = (
        Experiment(program, repeats, jobs=1, out=out) for out in ("before", "killed", "after")
    )
    before.start().communicate()
    experiment.begin_like(before)
    killed = kill_at_moments(program, experiment, KILLS, ["program", "outside", "inside"], 0.7)
    after.begin_like(before)
    after.start().communicate()

    assert experiment.resume().code == 0
    assert experiment.made() == experiment.planned()
    assert all(record["load"]["status"] == "ok" for record in experiment.records())
    assert all(record["proof"]["ok"] for record in experiment.records())
    # A machine drifts: what was undisturbed lies on both sides of what was killed.
    undisturbed = {cell: [*plts_ms, *after.plts_ms()[cell]] for cell, plts_ms in before.plts_ms().items()}
    differences = {
        cell: abs(median(plts_ms) - median(undisturbed[cell])) / RTT_MS
        for cell, plts_ms in experiment.plts_ms().items()
    }
    failures = len(experiment.instrument_failures())
    show(f"loader: killed {dict(killed)}, {len(experiment.made())} loads, {failures} instrument failures")
    show(f"loader: from undisturbed loads these differ by {max(differences.values()):.3f} round trips")
    assert differences.keys() == undisturbed.keys()
    assert max(differences.values()) < TRIPS, differences
    assert killed.total() > KILLS // 2
    assert failures > 0 or KILLS < 100, "laboratories were killed during loads, and each is counted"


def test_killing_any_process_of_a_run_in_chromium_leaves_nothing_behind_and_it_can_be_completed(
    program: Program,
) -> None:
    installed("chromium")
    experiment = Experiment(program, max(1, KILLS // 20), jobs=1, client="chromium")
    roles = ["client", "program", "inside", "outside"]
    killed = kill_at_moments(program, experiment, max(2, KILLS // 5), roles, 4.0)

    # Without the time limit of a call: twenty loads in Chromium take minutes.
    experiment.start().communicate()
    assert experiment.made() == experiment.planned()
    lost = [record for record in experiment.records() if record["load"]["status"] != "ok"]
    failures = len(experiment.instrument_failures())
    show(f"chromium: killed {dict(killed)}, {len(experiment.made())} loads, {failures} instrument failures")
    show(f"chromium: loads whose client was killed in both attempts: {len(lost)}")
    assert 2 * len(lost) <= killed["client"], "a client that is killed is started once more"
    assert all(record["proof"]["ok"] for record in experiment.records() if record not in lost)


def kill_at_moments(
    program: Program, experiment: Experiment, moments: int, roles: Sequence[str], pause_s: float
) -> Counter[str]:
    """Runs an experiment, goes on with it until it is complete, and kills a process at so many moments.

    Args:
        program: What runs.
        experiment: What it runs.
        moments: How many processes are killed, or fewer if all loads are made before.
        roles: Which ones, in turn.
        pause_s: The longest pause before one is killed.

    Returns:
        How often each was killed.
    """
    draw, turns = random.Random(20), cycle(roles)
    before = host.state()
    killed: Counter[str] = Counter()
    while killed.total() < moments and experiment.results() < experiment.loads:
        journalled = experiment.journal_bytes()
        run = experiment.start()
        if draw.random() < AMONG_LOADS:
            wait_for_a_load(experiment, run, journalled)
        try:
            while run.poll() is None and killed.total() < moments:
                time.sleep(draw.uniform(0, pause_s))
                if role := kill_one(program, run, next(turns)):
                    killed[role] += 1
        finally:
            run.kill()
            run.communicate()
        assert until(lambda: not program.processes() and not program.clients(), WITHIN_S)
        assert host.state() == before
        assert program.files_elsewhere() == []
    return killed


def wait_for_a_load(experiment: Experiment, run: subprocess.Popen[str], journalled: int) -> None:
    """Waits until the journal is longer than `journalled` bytes, or the run has ended."""
    until(lambda: experiment.journal_bytes() > journalled or run.poll() is not None)


def show(text: str) -> None:
    """For people who started the tests with `-s`."""
    sys.stdout.write(f"{text}\n")


def kill_one(program: Program, run: subprocess.Popen[str], role: str) -> str:
    """Kills the program, a process of a laboratory or of a foreign client, and sees all that hangs on it go.

    Servers, relay and loader are threads of a laboratory's process inside its namespaces.

    Returns:
        The role of what was killed: the program where nothing else was running.
    """
    if role == "client":
        return "client" if kill_client(program, run) else ""
    if role != "program":
        until(lambda: laboratory(program.laboratories(), role) or run.poll() is not None)
    laboratories = program.laboratories()
    victim = laboratory(laboratories, role)
    if role == "program":
        victim, dying = Process(run.pid, os.getpid(), ""), program.processes()
    elif victim:
        dying = around(laboratories, victim)
    else:
        return ""
    namespaces = {name for process in dying for name in process.namespaces()} - own_namespaces()
    with suppress(ProcessLookupError):
        os.kill(victim.pid, signal.SIGKILL)
    pids = {process.pid for process in dying}
    assert until(lambda: not pids & {process.pid for process in program.processes()}, WITHIN_S), role
    assert until(lambda: not namespaces & namespaces_alive(), WITHIN_S), role
    if role == "program":
        run.wait()
    return role


def kill_client(program: Program, run: subprocess.Popen[str]) -> bool:
    """Kills a process of a foreign client; says whether there was one before the run ended."""
    until(lambda: program.clients() or run.poll() is not None)
    clients = program.clients()
    if not clients:
        return False
    victim = random.Random(len(clients)).choice(clients)
    with suppress(ProcessLookupError):
        os.kill(victim.pid, signal.SIGKILL)
    assert until(lambda: victim.pid not in {process.pid for process in program.clients()}, WITHIN_S)
    return True


def laboratory(laboratories: list[Process], role: str) -> Process | None:
    """A laboratory's process outside its namespaces or inside them, if one is running."""
    pids = {process.pid for process in laboratories}
    sides = {"outside": False, "inside": True}
    return next((process for process in laboratories if (process.parent in pids) == sides.get(role)), None)


def around(laboratories: list[Process], one: Process) -> list[Process]:
    """The processes of the laboratory that `one` is a part of."""
    outside = one.parent if any(process.pid == one.parent for process in laboratories) else one.pid
    return [process for process in laboratories if outside in (process.pid, process.parent)]
