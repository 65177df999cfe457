import json
import os
import signal
from pathlib import Path
from typing import cast

import pytest
from engine_double import EngineDouble, pages

from firstflight.engines.engine import Calibration, Record
from firstflight.errors import LabError, UsageError
from firstflight.experiment.folder import results_folder, stored_plan
from firstflight.experiment.recorder import MAX_ATTEMPTS, Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import threads
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as EmulatedPath
from firstflight.model.plan import Plan
from firstflight.results import Journal

PLAN = Plan(rtt=(20.0, 100.0), repeats=3, jobs=2)
NAMES = ["amazon", "wikipedia"]
PLANNED = {load.load_id for block in Schedule(PLAN, NAMES) for load in block.loads}
BROKEN = {"status": "failed", "error": "the browser died", "plt_ms": None}


def run(folder: Path, engine: EngineDouble, plan: Plan = PLAN, *, resume: bool = False) -> Outcome:
    return run_experiment(plan, pages(*NAMES), threads(plan, engine), folder, resume=resume)


def journalled(folder: Path) -> dict[str, int]:
    """The number of attempts at each load in the journal."""
    return {
        r["load"]["load_id"]: cast(Record, r)["attempt"] for r in Journal(folder / "journal.jsonl").records()
    }


def interrupt_at(number: int, by: signal.Signals = signal.SIGINT) -> EngineDouble:
    """An engine that signals this process at load `number`, and waits until the run has stopped it."""
    engine = EngineDouble(before=lambda planned, made: made == number and _interrupt(engine, by))
    return engine


def _interrupt(engine: EngineDouble, by: signal.Signals) -> bool:
    os.kill(os.getpid(), by)
    assert engine.stopped.wait(timeout=30)
    return True


def test_a_run_makes_each_planned_load_once(tmp_path: Path) -> None:
    engine = EngineDouble()
    outcome = run(tmp_path / "new", engine)
    assert outcome == Outcome(planned=len(PLANNED), made=len(PLANNED), unproved=0, empty_cells=0)
    assert journalled(tmp_path / "new") == dict.fromkeys(PLANNED, 1)
    assert len(engine.made) == len(PLANNED)


def test_with_one_job_loads_are_made_in_their_order(tmp_path: Path) -> None:
    engine = EngineDouble()
    run(tmp_path, engine, PLAN.model_copy(update={"jobs": 1}))
    assert [load.order for load in engine.made] == list(range(len(PLANNED)))


def test_the_folder_holds_the_resolved_plan_and_the_environment(tmp_path: Path) -> None:
    engine = EngineDouble()
    run(tmp_path, engine)
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert stored_plan(tmp_path) == PLAN
    assert engine.calibrated == PLAN.paths()
    assert [entry["path"]["rtt_ms"] for entry in environment["calibration"]] == [20.0, 100.0]
    assert set(environment) >= {"kernel", "cpu", "cores", "python", "firstflight", "clients", "started_at"}


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_resumes_and_repeats_nothing(tmp_path: Path, by: signal.Signals) -> None:
    outcome = run(tmp_path, interrupt_at(5, by))
    assert outcome.signal == by
    assert 3 <= outcome.made <= 5
    kept = journalled(tmp_path)
    rest = EngineDouble()
    outcome = run(tmp_path, rest, resume=True)
    assert (outcome.made, outcome.signal) == (len(PLANNED), None)
    assert {load.load_id for load in rest.made} == PLANNED - kept.keys()
    assert journalled(tmp_path).keys() == PLANNED


def test_signals_do_what_they_did_before_once_the_run_is_over(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    run(tmp_path, interrupt_at(2))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_torn_journal_is_completed_with_exactly_the_planned_loads(tmp_path: Path) -> None:
    run(tmp_path, EngineDouble())
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:7]) + lines[7][:100])
    rest = EngineDouble()
    run(tmp_path, rest, resume=True)
    assert len(rest.made) == len(PLANNED) - 7
    assert journalled(tmp_path) == dict.fromkeys(PLANNED, 1)
    assert len(journal.read_bytes().splitlines()) == len(PLANNED)


def test_resuming_a_complete_experiment_makes_no_load(tmp_path: Path) -> None:
    run(tmp_path, EngineDouble())
    again = EngineDouble()
    assert run(tmp_path, again, resume=True).made == len(PLANNED)
    assert (again.made, again.calibrated) == ([], [])


def test_how_many_loads_are_made_at_a_time_may_change_on_resume(tmp_path: Path) -> None:
    run(tmp_path, interrupt_at(3))
    plan = PLAN.model_copy(update={"jobs": 1})
    assert run(tmp_path, EngineDouble(), plan, resume=True).made == len(PLANNED)


def test_a_resumed_run_keeps_the_environment_of_the_first(tmp_path: Path) -> None:
    run(tmp_path, interrupt_at(3))
    first = json.loads((tmp_path / "environment.json").read_text())
    run(tmp_path, EngineDouble(), resume=True)
    second = json.loads((tmp_path / "environment.json").read_text())
    first.pop("earlier")
    assert second["earlier"] == [first]


def test_a_load_with_a_late_relay_is_made_again_and_the_last_one_counts(tmp_path: Path) -> None:
    late_once = EngineDouble(relay=lambda planned, number: {"late": number == 1})
    run(tmp_path, late_once)
    again = late_once.made[0].load_id
    assert journalled(tmp_path) == {**dict.fromkeys(PLANNED, 1), again: 2}
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_bytes().splitlines()]
    marked = [line for line in lines if line["relay"]["late"]]
    assert [(line["load"]["load_id"], line["attempt"]) for line in marked] == [(again, 1)]


def test_a_relay_that_is_always_late_is_given_three_attempts(tmp_path: Path) -> None:
    engine = EngineDouble(relay=lambda planned, number: {"late": True})
    outcome = run(tmp_path, engine)
    assert journalled(tmp_path) == dict.fromkeys(PLANNED, MAX_ATTEMPTS)
    assert len(engine.made) == MAX_ATTEMPTS * len(PLANNED)
    assert outcome.made == len(PLANNED)


def test_a_load_whose_client_broke_is_made_once_more_and_reported(tmp_path: Path) -> None:
    broken = EngineDouble(load=lambda planned, number: BROKEN, broken=True)
    outcome = run(tmp_path, broken)
    assert journalled(tmp_path) == dict.fromkeys(PLANNED, 2)
    assert (outcome.made, outcome.empty_cells) == (len(PLANNED), len({name[:-4] for name in PLANNED}))


def test_attempts_of_a_stopped_run_count_when_it_goes_on(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"jobs": 1})
    engine = EngineDouble(
        before=lambda planned, made: made == 3 and _interrupt(engine, signal.SIGINT),
        relay=lambda planned, number: {"late": True},
    )
    run(tmp_path, engine, plan)
    first = engine.made[0].load_id
    assert journalled(tmp_path) == {first: 2}
    rest = EngineDouble()
    run(tmp_path, rest, plan, resume=True)
    assert journalled(tmp_path) == {**dict.fromkeys(PLANNED, 1), first: 3}


def test_a_failed_load_is_recorded_and_not_made_again(tmp_path: Path) -> None:
    failing = EngineDouble(
        load=lambda planned, number: (
            {"status": "failed", "error": "no answer", "plt_ms": None} if number == 1 else {}
        )
    )
    outcome = run(tmp_path, failing)
    assert (outcome.made, outcome.empty_cells) == (len(PLANNED), 0)
    assert len(failing.made) == len(PLANNED)


def test_a_cell_in_which_every_load_failed_is_counted(tmp_path: Path) -> None:
    def fail(planned: PlannedLoad, number: int) -> dict[str, object]:
        bad = planned.page == "amazon" and planned.mode == "tfo"
        return {"status": "failed", "error": "no answer", "plt_ms": None} if bad else {}

    assert run(tmp_path, EngineDouble(load=fail)).empty_cells == len(PLAN.paths())


def test_a_laboratory_that_cannot_be_built_ends_the_run_before_any_load(tmp_path: Path) -> None:
    class Broken(EngineDouble):
        def calibrate(self, path: EmulatedPath, bias_ms: float | None = None) -> Calibration:
            raise LabError("no user namespaces", "allow them")

    engine = Broken()
    with pytest.raises(LabError, match="no user namespaces"):
        run(tmp_path, engine)
    assert engine.made == []


def test_a_folder_with_this_plan_asks_for_resume(tmp_path: Path) -> None:
    run(tmp_path, EngineDouble())
    engine = EngineDouble()
    with pytest.raises(UsageError, match="holds this experiment already") as refused:
        run(tmp_path, engine)
    assert "--resume" in refused.value.hint
    assert engine.calibrated == []


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_with_another_plan_is_refused(tmp_path: Path, resume: bool) -> None:
    run(tmp_path, EngineDouble())
    before = (tmp_path / "plan.toml").read_bytes()
    with pytest.raises(UsageError, match=r"another plan \(differs in: rtt, repeats\)") as refused:
        run(tmp_path, EngineDouble(), Plan(rtt=(50.0,), jobs=2), resume=resume)
    assert refused.value.hint
    assert (tmp_path / "plan.toml").read_bytes() == before


def test_a_page_that_changed_since_is_refused_on_resume(tmp_path: Path) -> None:
    run(tmp_path, interrupt_at(3))
    file = tmp_path / "environment.json"
    environment = json.loads(file.read_text())
    environment["pages"]["amazon"] = "another"
    file.write_text(json.dumps(environment))
    with pytest.raises(UsageError, match="page amazon has changed"):
        run(tmp_path, EngineDouble(), resume=True)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="not empty and not a results folder"):
        run(tmp_path, EngineDouble())


def test_there_is_nothing_to_resume_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no experiment"):
        run(tmp_path, EngineDouble(), resume=True)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a folder"):
        run(tmp_path / "file", EngineDouble())


def test_a_folder_that_cannot_be_written_is_refused_before_anything_starts() -> None:
    engine = EngineDouble()
    with pytest.raises(UsageError, match="cannot write to /proc/firstflight") as refused:
        run(Path("/proc/firstflight"), engine)
    assert refused.value.hint
    assert engine.calibrated == []


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    with (
        results_folder(tmp_path, PLAN, resume=False),
        pytest.raises(UsageError, match="another run is at work"),
        results_folder(tmp_path, PLAN, resume=True),
    ):
        pass


def test_two_pages_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two pages are called amazon"):
        run_experiment(PLAN, pages("amazon", "amazon"), threads(PLAN, EngineDouble()), tmp_path)
