"""A laboratory that cannot start, or dies: this is no result of the load, but counted and made again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_double import EngineDouble, pages
from worker_engine import TracedEngine

import firstflight as ff
from firstflight.analysis import SIDES, summarize
from firstflight.analysis.records import loads_of
from firstflight.analysis.summary import read_measured
from firstflight.cli import main
from firstflight.engines.clients.command import Program
from firstflight.engines.engine import Answer, Calibration, Record
from firstflight.errors import LabError
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.recorder import Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import threads
from firstflight.experiment.workers import Workers
from firstflight.experiment.workers.processes import Processes
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as PathModel
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.report.write import write_report
from firstflight.results import Journal
from firstflight.results.tables import write_tables

NAMES = ["amazon", "wikipedia"]
PLAN = Plan(rtt=(20.0,), repeats=6, jobs=1)
PLANNED = [load.load_id for block in Schedule(PLAN, NAMES) for load in block.loads]
KILLED = LabError(
    "the laboratory (load) was killed by signal 9 and gave no answer", "try: firstflight doctor"
)


class Heard(Observer):
    def __init__(self) -> None:
        self.done = 0
        self.remarks: list[str] = []
        self.warnings: list[str] = []

    def advance(self) -> None:
        self.done += 1

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(message)


def failing(fails: Callable[[PlannedLoad, int], bool], **options: object) -> EngineDouble:
    """An engine whose laboratory fails for those loads and numbers of calls that `fails` selects."""

    def before(planned: PlannedLoad, number: int) -> None:
        if fails(planned, number):
            raise KILLED

    return EngineDouble(before=before, **options)  # type: ignore[arg-type]


def run(
    folder: Path,
    workers: EngineDouble | Workers,
    plan: Plan = PLAN,
    *,
    resume: bool = False,
    observer: Observer | None = None,
) -> Outcome:
    workers = threads(plan, workers) if isinstance(workers, EngineDouble) else workers
    return run_experiment(plan, pages(*NAMES), workers, folder, resume=resume, observer=observer)


def loads(folder: Path) -> list[str]:
    return [record["load"]["load_id"] for record in Journal(folder / "journal.jsonl")]


def test_a_load_whose_laboratory_died_is_made_again_at_once(tmp_path: Path) -> None:
    engine, heard = failing(lambda planned, number: number == 3), Heard()
    outcome = run(tmp_path, engine, observer=heard)
    assert (outcome.made, outcome.left, outcome.instrument_failures) == (len(PLANNED), 0, 1)
    assert [load.load_id for load in engine.made] == [*PLANNED[:3], *PLANNED[2:]]
    assert sorted(loads(tmp_path)) == sorted(PLANNED)
    assert (heard.done, heard.remarks) == (len(PLANNED), [])
    assert heard.warnings == [f"load {PLANNED[2]} has no result: {KILLED.message}"]
    [failure] = list(failures(tmp_path))
    assert failure["load"]["load_id"] == PLANNED[2]
    assert (failure["load"]["error"], failure["hint"]) == (KILLED.message, KILLED.hint)


def test_a_load_whose_laboratory_dies_again_is_left_for_resume(tmp_path: Path) -> None:
    outcome = run(tmp_path, failing(lambda planned, number: planned.load_id == PLANNED[2]))
    assert (outcome.made, outcome.left, outcome.instrument_failures) == (len(PLANNED) - 1, 1, 2)
    assert PLANNED[2] not in loads(tmp_path)
    rest = EngineDouble()
    outcome = run(tmp_path, rest, resume=True)
    assert [load.load_id for load in rest.made] == [PLANNED[2]]
    assert (outcome.made, outcome.left, outcome.instrument_failures) == (len(PLANNED), 0, 2)
    assert sorted(loads(tmp_path)) == sorted(PLANNED)


def test_a_failed_laboratory_takes_no_attempt_from_a_late_load(tmp_path: Path) -> None:
    def relay(planned: PlannedLoad, number: int) -> dict[str, object]:
        return {"late": planned.load_id == PLANNED[0]}

    engine = failing(lambda planned, number: number in {1, 3, 5}, relay=relay)
    run(tmp_path, engine)
    attempts = [
        record["attempt"]
        for record in Journal(tmp_path / "journal.jsonl").attempts()
        if record["load"]["load_id"] == PLANNED[0]
    ]
    assert attempts == [1, 2, 3]


@pytest.mark.parametrize("jobs", [1, 4])
def test_five_in_a_row_stop_the_run_with_the_cause(tmp_path: Path, jobs: int) -> None:
    engine = failing(lambda planned, number: number > 4)
    # Before the first of several threads stops the run, each of the others may report one more failure.
    count = f"[5-{4 + jobs}]"
    with pytest.raises(
        LabError, match=rf"{count} laboratories in a row gave no result.*killed by signal 9"
    ) as stopped:
        run(tmp_path, engine, PLAN.model_copy(update={"jobs": jobs}))
    assert "firstflight doctor" in stopped.value.hint and "--resume" in stopped.value.hint
    assert len(loads(tmp_path)) == 4
    assert jobs > 1 or len(engine.made) == 4 + 5
    assert run(tmp_path, EngineDouble(), resume=True).made == len(PLANNED)


def test_failures_with_loads_in_between_do_not_stop_the_run(tmp_path: Path) -> None:
    outcome = run(tmp_path, failing(lambda planned, number: number % 2 == 1))
    assert (outcome.left, outcome.signal) == (0, None)
    assert outcome.instrument_failures == len(PLANNED)


def test_a_worker_process_treats_a_failed_laboratory_the_same(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"engine": "simulate", "loss": 0.01})
    planned = [load.load_id for block in Schedule(plan, NAMES) for load in block.loads]
    engine = TracedEngine(tmp_path / "trace", failing=planned[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        outcome = run(tmp_path / "out", Processes(engine, 2), plan)
        assert (outcome.made, outcome.left, outcome.instrument_failures) == (len(planned) - 1, 1, 2)
        outcome = run(tmp_path / "out", Processes(TracedEngine(tmp_path / "rest"), 2), plan, resume=True)
    assert (outcome.made, outcome.left) == (len(planned), 0)
    assert TracedEngine(tmp_path / "rest").lines() == [planned[2]]


def test_the_next_round_waits_for_what_is_missing(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"until": 0.001, "repeats": 5, "most_repeats": 12})

    def slow(planned: PlannedLoad, number: int) -> dict[str, object]:
        return {"plt_ms": 1000.0 + 10 * planned.repeat * (planned.mode == "tfo")}

    first = run(tmp_path, failing(lambda planned, number: planned.order == 0, load=slow), plan)
    assert (first.planned, first.left) == (2 * 2 * 10, 1)
    rest = EngineDouble(load=slow)
    last = run(tmp_path, rest, plan, resume=True)
    assert rest.made[0].order == 0
    assert (last.made, last.left) == (2 * 2 * 12, 0)


@pytest.mark.parametrize("keep", ["all", "loads"])
def test_failures_are_in_no_table_and_no_cell_and_are_counted_apart(tmp_path: Path, keep: str) -> None:
    plan = PLAN.model_copy(update={"keep": keep})
    run(tmp_path, failing(lambda planned, number: planned.load_id == PLANNED[2]), plan)
    tables = write_tables(tmp_path)
    assert PLANNED[2] not in tables[0].read_bytes().decode(errors="replace")
    summary = summarize(tmp_path)
    assert summary["instrument_failures"] == {"attempts": 2, "loads_without_result": 1}
    assert sum(loads_of(cell, side)["failed"] for cell in summary["cells"] for side in SIDES) == 0
    [warning] = [found for found in summary["warnings"] if found["kind"] == "instrument failures"]
    assert "failed 2 times" in warning["message"] and "1 load of the plan has no result" in warning["message"]


def test_the_report_says_how_often_the_laboratory_failed(tmp_path: Path) -> None:
    run(tmp_path, failing(lambda planned, number: number == 3))
    write_report(read_measured(tmp_path))
    assert "the laboratory failed 1 time" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "summary.json").read_text())["instrument_failures"]["attempts"] == 1


def test_a_run_that_leaves_loads_ends_with_exit_code_1_and_says_how_to_make_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "firstflight.experiment.setup.Emulator",
        lambda clients: failing(lambda planned, number: planned.repeat == 1 and planned.mode == "tcp"),
    )
    out = tmp_path / "out"
    flags = ["--rtt", "20", "--repeats", "3", "--jobs", "1", "--out", str(out)]
    assert main(["run", "wikipedia", *flags]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "has no result: the laboratory (load) was killed by signal 9" in said
    assert "without a result, since the laboratory failed: 1 of 6 loads" in said
    assert "firstflight run --resume --out" in said


def test_a_run_of_a_notebook_that_leaves_loads_raises_as_the_command_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "firstflight.experiment.setup.Emulator",
        lambda clients: failing(lambda planned, number: planned.repeat == 1 and planned.mode == "tcp"),
    )
    out = tmp_path / "out"
    with pytest.raises(ff.ExperimentError, match="since the laboratory failed: 1 of 6 loads") as caught:
        ff.run(pages=["wikipedia"], rtt=[20], repeats=3, jobs=1, out=out)
    assert caught.value.hint == "continue with resume=True"
    assert ff.open_results(out).loads.height == 5


def failures(folder: Path) -> list[Record]:
    """The instrument failures in the journal."""
    journal = Journal(folder / "journal.jsonl")
    assert all(journal)
    return journal.instrument_failures  # type: ignore[return-value]


@pytest.mark.parametrize(("code", "is_broken"), [(137, True), (22, False)])
def test_a_client_that_a_signal_ended_has_broken(code: int, is_broken: bool) -> None:
    answer: Answer = {
        "status": "failed",
        "error": f"the client ended with code {code}",
        "client": {"exit_code": code, "said": ""},
    }
    complete = Program("curl", "curl", "").complete(answer, *pages("wikipedia"))
    assert complete.get("broken", False) is is_broken


@pytest.mark.parametrize(("failing", "measured"), [(1, 2), (2, 2)])
def test_a_path_is_measured_once_more_when_its_laboratory_fails(failing: int, measured: int) -> None:
    paths: list[PathModel] = []

    class Dying(EngineDouble):
        def calibrate(self, path: PathModel, bias_ms: float | None = None) -> Calibration:
            paths.append(path)
            if len(paths) <= failing:
                raise LabError("the laboratory (calibrate) was killed by signal 9", "dmesg says why")
            return super().calibrate(path, bias_ms)

    observer = Heard()
    path = Plan().paths()[0]
    if failing < 2:
        assert [found.path for found in calibrate(Dying(), [path], {}, observer)] == [path]
    else:
        with pytest.raises(LabError):
            calibrate(Dying(), [path], {}, observer)
    assert paths == measured * [path]
    assert "measured again: the laboratory (calibrate) was killed" in observer.warnings[0]
