"""Several processes make the loads of a run: each planned load once, even if a process dies."""

import os
from pathlib import Path

import polars as pl
import pytest
from engine_double import pages
from worker_engine import TracedEngine

from firstflight.errors import ExperimentError
from firstflight.experiment.catalogue import read_catalogue
from firstflight.experiment.recorder import Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.workers.processes import Processes
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.results import Journal
from firstflight.results.tables import write_tables

NAMES = ["amazon", "wikipedia"]
PLAN = Plan(pages=("amazon", "wikipedia"), rtt=(20.0, 100.0), repeats=40, keep="loads")
PLANNED = sorted(load.load_id for block in Schedule(PLAN, NAMES) for load in block.loads)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts this folder on PYTHONPATH, so that worker processes can import the engine."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def made(folder: Path) -> list[str]:
    return sorted(record["load"]["load_id"] for record in Journal(folder / "journal.jsonl").attempts())


def run(folder: Path, engine: TracedEngine, jobs: int = 2, *, resume: bool = False) -> Outcome:
    return run_experiment(PLAN, pages(*NAMES), Processes(engine, jobs), folder, resume=resume)


def test_several_processes_make_each_planned_load_once(tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace")
    outcome = run(tmp_path / "out", engine)
    assert outcome == Outcome(planned=len(PLANNED), made=len(PLANNED), unproved=0, empty_cells=0)
    assert made(tmp_path / "out") == PLANNED == sorted(engine.lines())
    assert len(engine.processes()) == 2
    assert os.getpid() not in engine.processes()


def test_a_process_that_is_killed_is_replaced_and_no_load_is_journalled_twice(tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace", fatal=PLANNED[70])
    run(tmp_path / "out", engine)
    assert made(tmp_path / "out") == PLANNED
    assert engine.lines().count(PLANNED[70]) == 2
    assert len(engine.processes()) == 3


def test_a_page_that_kills_every_process_ends_the_run_and_keeps_what_was_made(tmp_path: Path) -> None:
    last = Schedule(PLAN, NAMES)[-1].loads[-1].load_id
    engine = TracedEngine(tmp_path / "trace", fatal=last, deaths=99)
    with pytest.raises(ExperimentError, match="died twice over the page") as failed:
        run(tmp_path / "out", engine)
    assert "--resume" in failed.value.hint
    kept = made(tmp_path / "out")
    assert set(kept) < set(PLANNED)
    again = TracedEngine(tmp_path / "again")
    run(tmp_path / "out", again, resume=True)
    assert made(tmp_path / "out") == PLANNED
    assert sorted([*kept, *again.lines()]) == PLANNED


def test_tables_are_the_same_bytes_on_one_process_and_on_three(tmp_path: Path) -> None:
    for jobs in (1, 3):
        run(tmp_path / str(jobs), TracedEngine(tmp_path / f"trace-{jobs}"), jobs)
        write_tables(tmp_path / str(jobs))
    for name in ("loads", "requests", "connections"):
        one, three = (tmp_path / jobs / f"{name}.parquet" for jobs in ("1", "3"))
        assert one.read_bytes() == three.read_bytes()


def test_with_keep_loads_only_their_rows_are_kept(tmp_path: Path) -> None:
    run(tmp_path, TracedEngine(tmp_path.with_suffix(".trace")))
    write_tables(tmp_path)
    assert pl.read_parquet(tmp_path / "loads.parquet").height == len(PLANNED)
    assert pl.read_parquet(tmp_path / "requests.parquet").height == 0
    assert all(pl.read_parquet(tmp_path / "loads.parquet")["requests"])


def test_workers_open_pages_where_they_are(tmp_path: Path) -> None:
    [wikipedia] = pages("wikipedia")
    file = tmp_path / "one.json"
    file.write_text(wikipedia.page.to_json())
    plan = PLAN.model_copy(update={"pages": (str(tmp_path / "*.json"),)})
    catalogue = read_catalogue(plan, Observer())
    engine = TracedEngine(tmp_path / "trace")
    assert run_experiment(plan, catalogue, Processes(engine, 1), tmp_path / "out").made == len(PLANNED) // 2
