"""`--until` repeats whole blocks until each cell's interval is narrow enough, or until a limit."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from engine_double import EngineDouble, pages
from hypothesis import given
from hypothesis import strategies as st

from firstflight.analysis import summarize
from firstflight.analysis.records import known
from firstflight.cli import main
from firstflight.errors import UsageError
from firstflight.experiment.folder import stored_plan
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.recorder import Outcome
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import threads
from firstflight.model.load import PlannedLoad
from firstflight.model.plan import FIRST_LOOK, Plan
from firstflight.observer import Observer
from firstflight.results import Journal

NAMES = ["amazon", "wikipedia"]
PLAN = resolve({"rtt": "100", "until": "2%", "most_repeats": "30", "jobs": "2"})


class Heard(Observer):
    def __init__(self) -> None:
        self.rounds: list[int] = []
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        self.rounds += [total] if what == "loads" and total is not None else []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(message)


def noisy(spread: dict[str, float]) -> EngineDouble:
    """An engine whose loads take 1,000 ms, with TFO 900 ms, plus reproducible noise for each page."""

    def load(planned: PlannedLoad, number: int) -> dict[str, object]:
        noise = random.Random(planned.load_id).gauss(0, spread[planned.page])
        return {"plt_ms": (1000 - 100 * (planned.mode == "tfo")) * (1 + noise)}

    return EngineDouble(load=load)


def run(
    folder: Path, engine: EngineDouble, plan: Plan = PLAN, *, resume: bool = False
) -> tuple[Outcome, Heard]:
    heard = Heard()
    return run_experiment(
        plan, pages(*NAMES), threads(plan, engine), folder, resume=resume, observer=heard
    ), heard


def repeats(folder: Path) -> dict[tuple[str, str], list[int]]:
    """The numbers of the repeats of each page and mode."""
    found: dict[tuple[str, str], list[int]] = {}
    for record in Journal(folder / "journal.jsonl").records():
        load = record["load"]
        found.setdefault((load["page"], load["mode"]), []).append(load["repeat"])
    return {cell: sorted(numbers) for cell, numbers in found.items()}


def width(folder: Path, page: str) -> float:
    found = next(cell["improvement"] for cell in summarize(folder)["cells"] if cell["page"] == page)
    return known(found["high"]) - known(found["low"])


def test_only_cells_that_are_too_wide_go_on_and_only_as_long_as_they_are(tmp_path: Path) -> None:
    outcome, heard = run(tmp_path, noisy({"amazon": 0.001, "wikipedia": 0.012}))
    made = repeats(tmp_path)
    assert made["amazon", "tcp"] == made["amazon", "tfo"] == list(range(1, FIRST_LOOK + 1))
    assert made["wikipedia", "tcp"] == made["wikipedia", "tfo"]
    assert FIRST_LOOK < len(made["wikipedia", "tcp"]) < 30
    assert width(tmp_path, "wikipedia") <= 0.02
    wide = [note.startswith("1 cell still too wide: ") for note in heard.notes]
    assert wide == [False] + [True] * (len(heard.rounds) - 1)
    assert outcome.planned == outcome.made == sum(map(len, made.values())) == heard.rounds[-1]
    assert heard.warnings == []


def test_at_the_cap_a_cell_stops_and_it_is_said_how_wide_it_is(tmp_path: Path) -> None:
    outcome, heard = run(tmp_path, noisy({"amazon": 0.001, "wikipedia": 0.3}))
    assert len(repeats(tmp_path)["wikipedia", "tcp"]) == 30
    assert outcome.made == 2 * (FIRST_LOOK + 30)
    (warning,) = heard.warnings
    assert "after 30 repeats intervals are wider than 2%: wikipedia 100 ms (" in warning


def test_failed_loads_leave_no_interval_and_the_cap_ends_the_run(tmp_path: Path) -> None:
    plan = PLAN.model_copy(update={"most_repeats": 12})
    failed = {"status": "failed", "error": "no answer", "plt_ms": None}
    outcome, heard = run(tmp_path, EngineDouble(load=lambda planned, number: failed), plan)
    assert (outcome.made, outcome.empty_cells) == (2 * 2 * 12, 4)
    assert "amazon 100 ms (no interval)" in heard.warnings[-1]


def test_a_run_that_was_stopped_goes_on_as_it_would_have(tmp_path: Path) -> None:
    spread = {"amazon": 0.01, "wikipedia": 0.02}
    run(tmp_path / "whole", noisy(spread))
    whole = repeats(tmp_path / "whole")
    engine = noisy(spread)
    folder = tmp_path / "stopped"
    folder.mkdir()
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "plan.toml").write_bytes((tmp_path / "whole" / "plan.toml").read_bytes())
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:-7]))
    run(folder, engine, resume=True)
    assert len(engine.made) == 7
    assert repeats(folder) == whole
    again = noisy(spread)
    run(folder, again, resume=True)
    assert (again.made, again.calibrated) == ([], [])


def test_a_finished_run_can_go_on_to_a_larger_cap(tmp_path: Path) -> None:
    spread = {"amazon": 0.001, "wikipedia": 0.3}
    run(tmp_path, noisy(spread), PLAN.model_copy(update={"most_repeats": 12}))
    engine = noisy(spread)
    run(tmp_path, engine, PLAN.model_copy(update={"most_repeats": 14}), resume=True)
    assert sorted(load.repeat for load in engine.made) == [13, 13, 14, 14]
    assert stored_plan(tmp_path) == PLAN.model_copy(update={"most_repeats": 14})


def test_every_round_is_balanced_and_follows_the_one_before() -> None:
    planned = Schedule(PLAN, NAMES)
    assert [number for blocks in planned.rounds for number in blocks] == list(range(len(planned)))
    for blocks in planned.rounds:
        places = Counter(
            (load.page, load.mode, place) for n in blocks for place, load in enumerate(planned[n].loads)
        )
        assert len(set(places.values())) == 1


def test_the_rounds_of_a_smaller_cap_are_the_first_of_a_larger_one() -> None:
    few, many = (Schedule(PLAN.model_copy(update={"most_repeats": most}), NAMES) for most in (12, 30))
    assert [[load.load_id for load in block.loads] for block in few] == [
        [load.load_id for load in block.loads] for block in many[: len(few)]
    ]


@pytest.mark.parametrize(("cap", "larger"), [(11, 13), (13, 30), (15, 29)])
def test_a_run_that_goes_on_to_a_larger_cap_makes_each_load_once_and_where_it_is_planned(
    cap: int, larger: int, tmp_path: Path
) -> None:
    spread = {"amazon": 0.3, "wikipedia": 0.3}
    run(tmp_path / "on", noisy(spread), PLAN.model_copy(update={"most_repeats": cap}))
    engine = noisy(spread)
    final = PLAN.model_copy(update={"most_repeats": larger})
    run(tmp_path / "on", engine, final, resume=True)
    run(tmp_path / "whole", noisy(spread), final)
    lines = list(Journal(tmp_path / "on" / "journal.jsonl"))
    assert len({record["load"]["load_id"] for record in lines}) == len(lines)
    planned = {load.load_id: load for block in Schedule(final, NAMES) for load in block.loads}
    assert {
        (record["load"]["load_id"], record["load"]["order"], record["load"]["block"]) for record in lines
    } == {(load.load_id, load.order, load.block) for load in planned.values()}
    assert repeats(tmp_path / "on") == repeats(tmp_path / "whole")


def test_a_load_that_stands_elsewhere_in_the_plan_is_refused(tmp_path: Path) -> None:
    run(tmp_path, noisy({"amazon": 0.001, "wikipedia": 0.001}))
    journal = tmp_path / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    first, other = (
        next(
            line["load"] for line in lines if (line["load"]["page"], line["load"]["mode"]) == ("amazon", mode)
        )
        for mode in ("tcp", "tfo")
    )
    first["load_id"], other["load_id"] = other["load_id"], first["load_id"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError, match=f"{first['load_id']} at place {first['order']}") as refused:
        run(tmp_path, noisy({"amazon": 0.001, "wikipedia": 0.001}), resume=True)
    assert refused.value.hint


@given(st.integers(FIRST_LOOK, 120), st.integers(0, 120), st.integers(1, 3))
def test_block_numbers_do_not_depend_on_the_cap(cap: int, more: int, rtts: int) -> None:
    plan = resolve({"rtt": ",".join(str(50 * n) for n in range(1, rtts + 1)), "until": "2%"})
    few, many = (
        Schedule(plan.model_copy(update={"most_repeats": most}), NAMES[:1]) for most in (cap, cap + more)
    )
    assert len(few) <= cap * rtts
    assert list(few) == many[: len(few)]
    assert few.rounds == many.rounds[: len(few.rounds)]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--until", "0"], 'until: "0" is out of range'),
        (["--until", "x"], 'until: "x" is not a width in percent, nor off'),
        (["--until", "-2%"], 'until: "-2%" is out of range'),
        (["--until", "2%", "--mode", "tcp"], "until: needs two treatments to compare"),
        (
            ["--until", "2%", "--most-repeats", "3"],
            "most_repeats: 3 is less than the 10 before the first look",
        ),
        (["--most-repeats", "many"], 'most_repeats: "many" is not a number of repeats'),
    ],
)
def test_bad_values_are_refused_before_anything_starts(
    flags: list[str], error: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["run", *flags, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert error in said and "hint: " in said
    assert not (tmp_path / "out").exists()


def test_the_width_is_written_as_it_was_read() -> None:
    assert PLAN.until == 0.02
    assert resolve({"until": "2.5 %"}).model_dump(mode="json")["until"] == "2.5%"
    assert resolve({}).model_dump(mode="json")["until"] == "off"
