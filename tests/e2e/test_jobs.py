"""Parallel loads give the same results as loads one at a time; tables and summary hold every planned load."""

import json
from operator import itemgetter
from pathlib import Path

import polars as pl
import pytest
from experiment import PAGES, Experiment
from program import Program

from firstflight.engines.emulate import Emulator
from firstflight.experiment.recorder import Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.setup import threads
from firstflight.model.plan import Plan
from firstflight.results import Journal, LoadRow

REPEATS = 3


def run(emulator: Emulator, folder: Path, jobs: int) -> list[LoadRow]:
    """The loads of a small experiment, in the order of their names."""
    plan = Plan(rtt=(20,), down=(2_000_000,), up=(2_000_000,), repeats=REPEATS, jobs=jobs)
    outcome = run_experiment(plan, PAGES, threads(plan, emulator), folder)
    assert outcome == Outcome(planned=12, made=12, unproved=0, empty_cells=0)
    records = Journal(folder / "journal.jsonl").records()
    return sorted((record["load"] for record in records), key=lambda load: load["load_id"])


def test_parallel_laboratories_make_the_same_loads_as_one_at_a_time(
    emulator: Emulator, tmp_path: Path
) -> None:
    one, four = (run(emulator, tmp_path / str(jobs), jobs) for jobs in (1, 4))
    same = (
        "load_id",
        "block",
        "order",
        "repeat",
        "seed",
        "mode",
        "requests",
        "connections",
        "tfo_accepted",
        "status",
    )
    assert [itemgetter(*same)(load) for load in one] == [itemgetter(*same)(load) for load in four]


def test_journal_tables_and_summary_hold_exactly_the_planned_loads(program: Program) -> None:
    experiment = Experiment(program, repeats=REPEATS)
    run = experiment.start("--json", "--quiet")
    out, err = run.communicate()
    assert run.returncode == 0, err
    assert all(line.startswith(("warning: ", "hint: ")) for line in err.splitlines()), err
    planned = experiment.planned()
    assert len(planned) == len(set(planned)) == 2 * 2 * REPEATS
    assert experiment.made() == planned

    loads, requests, connections = (
        pl.read_parquet(experiment.folder / f"{table}.parquet")
        for table in ("loads", "requests", "connections")
    )
    assert sorted(loads["load_id"]) == planned
    assert set(loads["status"]) == {"ok"}
    assert requests.height == loads["requests"].sum()
    assert connections.height == loads["connections"].sum()
    assert set(requests["load_id"]) == set(connections["load_id"]) == set(planned)

    summary = json.loads(out)
    assert summary["folder"] == "out"
    assert [(cell["page"], cell["n"]) for cell in summary["cells"]] == [
        ("chain3", REPEATS),
        ("fan2", REPEATS),
    ]
    assert all(cell["proof"]["ok"] for cell in summary["cells"])
    stored = json.loads((experiment.folder / "summary.json").read_text())
    assert stored["cells"] == summary["cells"]
    environment = json.loads((experiment.folder / "environment.json").read_text())
    [calibration] = environment["calibration"]
    taken_out_ms = calibration["relay"]["taken_out_ms"]
    rtt_ms = calibration["path"]["rtt_ms"]
    assert taken_out_ms == pytest.approx(min(max(calibration["bias_ms"], 0), 1, 0.1 * rtt_ms))
    journal = (experiment.folder / "journal.jsonl").read_text().splitlines()
    relays = [record["relay"] for record in map(json.loads, journal) if "relay" in record]
    assert {relay["taken_out_ms"] for relay in relays} == {taken_out_ms}
    assert calibration["rtt_ms"]["p50"] == pytest.approx(calibration["rtt_ms"]["expected"], abs=1)
