"""Simulated runs in processes: the same bytes on any number of workers, each load once, no laboratory."""

import json
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest
from dying_simulator import DyingSimulator
from program import Program, unavailable, until

from dask_cluster import cluster
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import EngineSetup
from firstflight.experiment.workers import Workers
from firstflight.experiment.workers.dask import Cluster
from firstflight.experiment.workers.processes import Processes
from firstflight.model.plan import Plan
from firstflight.pages import open_pages
from firstflight.results import Journal
from firstflight.results.tables import write_tables

PLAN = ("amazon", "wikipedia", "--engine", "simulate", "--rtt", "20,100", "--loss", "0.01")
WITHOUT_NAMESPACES = (
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    *('echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh"),
)
"""Runs a program in a user namespace that may contain no other. The host's own limit does not change."""


def journal_lines(folder: Path) -> int:
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.fixture
def workspace(tmp_path: Path) -> Program:
    """The program in an empty folder. Unlike the fixture `program`, it does not need a laboratory."""
    return Program(tmp_path)


def test_the_tables_are_the_same_bytes_on_one_core_on_two_and_on_a_cluster_that_loses_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    plan = Plan(pages=("amazon", "wikipedia"), rtt=(20.0, 100.0), loss=0.01, engine="simulate", repeats=20)
    planned = [load.load_id for block in Schedule(plan, plan.pages) for load in block.loads]
    engine = EngineSetup.of(plan, tmp_path)
    dying = DyingSimulator(planned[len(planned) // 2], tmp_path / "died")
    found = [tables(plan, Processes(engine, jobs), tmp_path / str(jobs)) for jobs in (1, 2)]
    with cluster(tmp_path) as workers:
        workers.add(3)
        connected = Cluster(workers.address, dying, labs=False, warn=print)
        found.append(tables(plan, connected, tmp_path / "cluster"))
        connected.close()
        assert dying.mark.exists()
        assert sum(worker.poll() is not None for worker in workers.processes) == 1
    assert found[0] == found[1] == found[2]
    made = [
        record["load"]["load_id"] for record in Journal(tmp_path / "cluster" / "journal.jsonl").attempts()
    ]
    assert sorted(made) == sorted(planned)


def tables(plan: Plan, workers: Workers, folder: Path) -> list[bytes]:
    """Makes a run and returns the contents of its table files."""
    run_experiment(plan, open_pages(plan.pages), workers, folder)
    files = write_tables(folder)
    assert all(pl.read_parquet(file).height for file in files)
    return [file.read_bytes() for file in files]


def test_a_sweep_that_is_killed_is_completed_with_each_load_once(workspace: Program) -> None:
    plan = ("run", *PLAN, "--repeats", "300", "--keep", "loads", "--out", "out")
    folder = workspace.folder / "out"
    run = workspace.start(*plan)
    assert until(lambda: journal_lines(folder) > 0 or run.poll() is not None)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert until(lambda: not workspace.processes())
    before = journal_lines(folder)
    assert 0 < before < 2400
    assert workspace("run", "--resume", "--out", "out", "--quiet").code == 0
    made = [record["load"]["load_id"] for record in Journal(folder / "journal.jsonl").attempts()]
    assert len(made) == len(set(made)) == 2400


def test_where_no_laboratory_can_be_built_a_run_says_so_and_a_simulated_one_works(workspace: Program) -> None:
    if subprocess.run([*WITHOUT_NAMESPACES, "true"], check=False).returncode != 0:
        unavailable("no user namespace can be had to forbid others in")
    refused = workspace("run", "wikipedia", "--rtt", "20", "--out", "lab", wrap=WITHOUT_NAMESPACES)
    assert refused.code == 1
    assert "refuses new namespaces" in refused.err
    assert "--engine simulate" in refused.err
    plan = ("run", "wikipedia", "--rtt", "20", "--repeats", "2", "--engine", "simulate")
    simulated = workspace(*plan, "--out", "out", wrap=WITHOUT_NAMESPACES)
    assert simulated.code == 0
    assert "simulated, not measured" in " ".join(simulated.out.split())
    assert "simulated, not measured" in (workspace.folder / "out" / "report.html").read_text()
    summary = json.loads((workspace.folder / "out" / "summary.json").read_text())
    assert "simulated" in {warning["kind"] for warning in summary["warnings"]}
