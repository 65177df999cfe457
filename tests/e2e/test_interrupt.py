"""SIGINT and SIGTERM: a run ends cleanly, keeps what it measured, and prints the command to resume it."""

import os
import signal

from experiment import Experiment
from program import DEADLINE_S, Program, until

LONG = 10
"""Repeats of each cell.

That is 40 loads, four at a time: after the fifth load the run still needs about 4 s, more than the delay that
a busy machine adds.
"""


def test_ctrl_c_ends_a_run_cleanly_and_resume_completes_it(program: Program) -> None:
    experiment = Experiment(program, repeats=LONG)
    run = experiment.start()
    assert until(lambda: experiment.results() >= 5 or run.poll() is not None)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=DEADLINE_S)

    assert run.returncode == 128 + signal.SIGINT
    kept = experiment.made()
    planned = experiment.planned()
    assert 5 <= len(kept) < len(planned)
    assert f"error: stopped by SIGINT with {len(kept)} of {len(planned)} loads made" in err
    assert "hint: continue with: firstflight run --resume --out out" in err
    assert "SYN data" in out, "the table of what was measured"
    assert (experiment.folder / "report.html").exists()
    assert program.processes() == []

    before = (experiment.folder / "journal.jsonl").read_bytes()
    assert experiment.resume().code == 0
    assert experiment.made() == planned
    assert (experiment.folder / "journal.jsonl").read_bytes().startswith(before), "nothing was made again"
    assert all(record["load"]["status"] == "ok" for record in experiment.records())


def test_a_second_signal_while_a_run_ends_does_not_lose_what_was_measured(program: Program) -> None:
    experiment = Experiment(program, repeats=LONG)
    run = experiment.start()
    assert until(lambda: experiment.results() >= 5 or run.poll() is not None)
    for _ in range(2):
        os.killpg(run.pid, signal.SIGTERM)
    run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 128 + signal.SIGTERM
    assert len(experiment.made()) >= 5
    assert until(lambda: program.processes() == [])


def test_a_signal_before_the_first_load_ends_a_run_cleanly(program: Program) -> None:
    experiment = Experiment(program, repeats=2)
    run = experiment.start()
    assert until(lambda: program.laboratories() or run.poll() is not None)
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 128 + signal.SIGINT
    assert "hint: continue with: firstflight run --resume --out out" in err
    assert experiment.results() == 0
    assert "Traceback" not in err
    assert until(lambda: program.processes() == [])
