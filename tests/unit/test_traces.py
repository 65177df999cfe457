"""Traces of links: how they are read from files, passed to engines, and stored with the results."""

import gzip
import json
from pathlib import Path

import pytest

from firstflight.engines.simulate import Simulator
from firstflight.errors import UsageError
from firstflight.experiment.folder import stored_plan
from firstflight.experiment.plan_file import PlanFile, read_plan_file, resolve
from firstflight.experiment.run import run_experiment
from firstflight.experiment.setup import threads
from firstflight.pages import open_pages
from firstflight.results import Journal

TRACE = "1\n1\n2\n10\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "link.down"
    file.write_text(TRACE)
    return file


def test_a_trace_is_read_zipped_or_not_whatever_its_name(trace: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "other.gz"
    zipped.write_bytes(gzip.compress(TRACE.encode()))
    plain, other = (resolve({"down_trace": str(file)}) for file in (trace, zipped))
    assert plain == other
    assert plain.down_trace is not None and other.down_trace is not None
    assert (plain.down_trace.name, other.down_trace.name) == ("link.down", "other")
    assert plain.down_trace.lasts_ms == 10


def test_the_rate_of_a_trace_is_its_mean(trace: Path) -> None:
    [path] = resolve({"down_trace": str(trace), "rtt": "20"}).paths()
    assert path.down_bps == 4 * 1500 * 8 * 100
    assert path.to_json(1)["down_bps"] is None
    assert path.to_json(1)["down_trace"] == TRACE


BAD = {
    "nothing": (b"", "it is empty"),
    "a word": (b"1\n2\nthree\n", 'line 3: "three" is not a time in whole ms'),
    "a fraction": (b"1.5\n", 'line 1: "1.5" is not a time in whole ms'),
    "an empty line": (b"1\n\n3\n", 'line 2: "" is not a time in whole ms'),
    "going back": (b"5\n4\n", "line 2: 4 ms comes before the 5 ms of the line above"),
    "standing still": (b"0\n0\n", "it lasts 0 ms: every line is 0"),
    "a cut gzip": (gzip.compress(TRACE.encode() * 99)[:-9], "not whole gzip"),
    "a damaged gzip": (gzip.compress(TRACE.encode())[:-8] + b"\0" * 8, "not whole gzip"),
    "no text": (b"\xff\xfe1", "byte 0 is not text"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_trace_is_refused_with_its_line_and_what_would_be_one(case: str, tmp_path: Path) -> None:
    content, problem = BAD[case]
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        resolve({"up_trace": str(tmp_path / "bad")})
    assert refused.value.message.startswith(f"up_trace: {tmp_path / 'bad'}: {problem}")
    assert refused.value.hint


def test_a_trace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        resolve({"up_trace": str(tmp_path / "none")})
    with pytest.raises(UsageError, match="Is a directory"):
        resolve({"up_trace": str(tmp_path)})


def test_a_trace_beside_a_rate_is_refused_and_a_flag_takes_the_place_of_either(trace: Path) -> None:
    with pytest.raises(UsageError, match="down_trace: replaces down"):
        resolve({"down_trace": str(trace), "down": "4mbit"})
    rates = PlanFile(values={"down": "1mbit", "up": "1mbit"})
    assert resolve({"down_trace": str(trace)}, rates).rates() == [(4_800_000, 1_000_000)]
    traced = PlanFile(values={"down_trace": str(trace)})
    assert resolve({"down": "1mbit"}, traced).rates() == [(1_000_000, 256_000)]
    assert resolve({"down_trace": "off"}, traced).rates() == [(4_000_000, 256_000)]


def test_a_star_has_the_same_trace_both_ways(trace: Path, tmp_path: Path) -> None:
    star = resolve({"topology": "star", "down_trace": str(trace), "up_trace": str(trace)})
    assert star.rates() == [(4_800_000, 4_800_000)]
    with pytest.raises(UsageError, match="up_trace: differs from down_trace in a star"):
        resolve({"topology": "star", "down_trace": str(trace)})


def test_a_plan_finds_its_trace_beside_itself(trace: Path) -> None:
    plan = trace.parent / "plan.toml"
    plan.write_text('down_trace = "link.down"\n')
    assert resolve({}, read_plan_file(plan)) == resolve({"down_trace": str(trace)})
    trace.unlink()
    with pytest.raises(UsageError, match=r"plan\.toml, line 1, down_trace: .*link\.down: No such file"):
        resolve({}, read_plan_file(plan))


def test_results_hold_their_traces_and_go_on_without_the_files_they_were_read_from(
    trace: Path, tmp_path: Path
) -> None:
    keys = {"pages": ["wikipedia"], "rtt": "20", "mode": "tfo", "repeats": "1", "engine": "simulate"}
    plan = resolve({**keys, "down_trace": str(trace)})
    run_experiment(plan, open_pages(["wikipedia"]), threads(plan, Simulator()), tmp_path / "out")
    trace.unlink()
    moved = (tmp_path / "out").rename(tmp_path / "elsewhere")
    stored = stored_plan(moved)
    assert stored == plan
    assert resolve({}, PlanFile(values=stored.to_keys())) == plan
    outcome = run_experiment(
        stored, open_pages(["wikipedia"]), threads(stored, Simulator()), moved, resume=True
    )
    assert (outcome.planned, outcome.made) == (1, 1)
    [record] = Journal(moved / "journal.jsonl")
    assert record["load"]["status"] == "ok"
    assert record["load"]["down_mbps"] == 4.8
    [calibration] = json.loads((moved / "environment.json").read_text())["calibration"]
    assert calibration["path"]["down_trace"]["mean_bps"] == 4_800_000
