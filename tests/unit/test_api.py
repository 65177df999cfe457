"""The Python API as a notebook uses it, with an engine double in place of the laboratory."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from engine_double import EngineDouble

import firstflight as ff
from firstflight.analysis.records import known
from firstflight.engines.engine import Calibration, Lateness

PUBLIC = {
    "CellPair",
    "ExperimentError",
    "FirstflightError",
    "Load",
    "LoadedPage",
    "Page",
    "Path",
    "Plan",
    "Results",
    "UsageError",
    "emulate",
    "load_page",
    "open_results",
    "path",
    "run",
    "simulate",
    "waterfall",
}


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EngineDouble:
    double = EngineDouble()
    monkeypatch.setattr("firstflight.experiment.setup.Emulator", lambda **clients: double)
    monkeypatch.setattr("firstflight.experiment.setup.client_versions", lambda *_: {})
    monkeypatch.chdir(tmp_path)
    return double


def loads() -> tuple[ff.Load, ff.Load]:
    page, path = ff.load_page("wikipedia"), ff.path(rtt_ms=100)
    return ff.emulate(page, path, mode="tcp"), ff.emulate(page, path, mode="tfo")


def test_the_public_names_are_these_and_each_is_there() -> None:
    assert set(ff.__all__) == PUBLIC == set(dir(ff))
    assert all(getattr(ff, name) is not None for name in PUBLIC)
    with pytest.raises(AttributeError, match="has no attribute 'emulated'"):
        _ = ff.emulated


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, firstflight; sys.exit(bool({'polars', 'altair', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_load_is_planned_as_it_was_asked_for(engine: EngineDouble) -> None:
    path = ff.path(rtt_ms=50, down="8mbit", loss=0.01)
    ff.emulate(ff.load_page("amazon"), path, mode="tcp", seed=7, cookies="cold", keep_alive=False)
    [planned] = engine.made
    assert (planned.page, planned.path, planned.mode) == ("amazon", path, "tcp")
    assert (planned.seed, planned.cookies, planned.keep_alive, planned.engine) == (
        7,
        "cold",
        False,
        "emulate",
    )
    assert planned.load_id == "amazon-r50-d8-u0.256-access-tcp-001"


def test_a_load_gives_its_time_and_frames_with_the_columns_of_the_tables() -> None:
    tcp, tfo = loads()
    assert 0 < tfo.plt_ms < tcp.plt_ms
    assert tfo.requests.height == tfo.row["requests"]
    assert tfo.connections["syn_data_acked"].all()
    assert not tcp.connections["syn_data_acked"].any()


def test_a_failed_load_says_why_when_its_time_is_asked_for(engine: EngineDouble) -> None:
    failed = {"status": "failed", "error": "no answer", "plt_ms": None}
    engine._load = lambda planned, number: failed
    load = ff.emulate(ff.load_page("wikipedia"), ff.path())
    assert load.row["error"] == "no answer"
    with pytest.raises(ff.ExperimentError, match="failed: no answer"):
        _ = load.plt_ms


def test_a_waterfall_is_a_chart_that_can_be_saved(tmp_path: Path) -> None:
    chart = ff.waterfall(*loads())
    chart.save(tmp_path / "waterfall.svg")
    assert "en.wikipedia.org" in (tmp_path / "waterfall.svg").read_text()


def test_a_waterfall_of_two_loads_of_one_mode_is_refused() -> None:
    tcp, _ = loads()
    with pytest.raises(ff.UsageError, match="cannot be compared"):
        ff.waterfall(tcp, tcp)


def test_a_star_is_symmetric_and_a_bad_value_is_named() -> None:
    assert ff.path(down="8mbit", topology="star").up_bps == 8_000_000
    with pytest.raises(ff.UsageError, match="rtt: "):
        ff.path(rtt_ms=-1)


def test_a_run_gives_frames_and_figures(tmp_path: Path) -> None:
    results = ff.run(pages=["wikipedia"], rtt=[20, 100], repeats=3, out=tmp_path / "out")
    assert results.loads.height == 12
    assert results.requests.height == results.loads["requests"].sum()
    assert results.cells["rtt_ms"].to_list() == [20.0, 100.0]
    assert (results.cells["improvement"] > 0).all()
    assert isinstance(results.improvement_by_rtt(), alt.TopLevelMixin)
    assert isinstance(results.plt_by_rtt(), alt.TopLevelMixin)
    again = ff.open_results(tmp_path / "out")
    assert again.loads.equals(results.loads)
    assert again.connections.equals(results.connections)


def test_a_run_takes_a_plan_a_file_or_keys_and_keys_stand_over_the_others(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('pages = ["wikipedia"]\nrtt = [20]\nrepeats = 2\n')
    plan = ff.Plan(pages=("wikipedia",), rtt=(20.0,), repeats=2)
    plans: tuple[ff.Plan | Path | str, ...] = (plan, file, str(file))
    for number, given in enumerate(plans):
        results = ff.run(given, repeats=1, out=tmp_path / str(number))
        assert results.loads.height == 2


def test_a_plan_is_simulated_in_memory_as_a_run_simulates_it(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"pages": ["wikipedia"], "rtt": [20, 100], "compare": "initial_window=3,10"}
    simulated = ff.simulate(**keys)
    run = ff.run(**keys, engine="simulate", out=tmp_path / "out")
    assert simulated.loads.equals(run.loads)
    assert simulated.requests.equals(run.requests)
    assert simulated.cells.equals(run.cells)
    with pytest.raises(ff.UsageError, match="in memory"):
        _ = simulated.folder


def test_pairs_hold_the_loads_of_baseline_and_treatment_block_by_block() -> None:
    results = ff.simulate(
        pages=["wikipedia"], rtt=[20, 100], loss=0.01, repeats=3, keep="loads", mode="tcp,tfo"
    )
    assert [(pair.page, pair.rtt_ms, pair.treatment) for pair in results.pairs] == [
        ("wikipedia", 20.0, "tfo"),
        ("wikipedia", 100.0, "tfo"),
    ]
    pair = results.pairs[0]
    assert len(pair.paired) == 3
    for baseline, treatment in pair.paired:
        assert (baseline["load"]["mode"], treatment["load"]["mode"]) == ("tcp", "tfo")
        assert baseline["load"]["block"] == treatment["load"]["block"]
    accepted = [known(treatment["load"]["tfo_accepted"]) for _, treatment in pair.paired]
    assert pair.mean("treatment", "tfo_accepted") == pytest.approx(sum(accepted) / 3)
    assert pair.mean("baseline", "tfo_accepted") == 0
    assert pair.mean("baseline", "plt_ms") == pytest.approx(sum(pair.plt_ms("baseline")) / 3)
    assert pair.improvement["point"] == results.cells["improvement"][0]


def test_pages_made_in_python_are_simulated() -> None:
    page = ff.load_page("wikipedia").page
    [by_page] = ff.simulate(pages=[page], rtt=[100]).pairs
    [by_name] = ff.simulate(pages=["wikipedia"], rtt=[100]).pairs
    assert by_page.plt_ms("treatment") == by_name.plt_ms("treatment")


def test_pages_and_names_of_pages_may_be_in_one_list() -> None:
    results = ff.simulate(pages=["amazon", ff.load_page("wikipedia")], rtt=[100])
    assert [pair.page for pair in results.pairs] == ["amazon", "wikipedia"]


def test_a_simulated_plan_makes_every_repeat() -> None:
    with pytest.raises(ff.UsageError, match="until: "):
        ff.simulate(pages=["wikipedia"], until="2%")


def test_a_page_without_a_path_is_refused() -> None:
    with pytest.raises(ff.UsageError, match="without a path"):
        ff.simulate(ff.load_page("wikipedia"))  # type: ignore[call-overload]


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ff.UsageError, match="not a results folder"):
        ff.open_results(tmp_path)


def test_several_pages_are_not_one(tmp_path: Path) -> None:
    for host in ("a.example", "b.example"):
        (tmp_path / "Two" / host).mkdir(parents=True)
        (tmp_path / "Two" / host / "index.html").write_text("<p>")
    (tmp_path / "Two.pages").write_text("http://a.example\nhttp://b.example\n")
    with pytest.raises(ff.UsageError, match="holds 2 pages"):
        ff.load_page(tmp_path / "Two.pages")


def test_a_run_says_a_warning_with_the_hint_that_goes_with_it(
    engine: EngineDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_time = engine.calibrate

    def late(path: ff.Path, bias_ms: float | None = None) -> Calibration:
        found = on_time(path, bias_ms)
        relay: Lateness = {**found.measured["relay"], "late": True, "late_max_ms": 9.0}
        return replace(found, measured={**found.measured, "relay": relay})

    monkeypatch.setattr(engine, "calibrate", late)
    said: list[str] = []
    ff.run(pages=["wikipedia"], rtt=[20], repeats=1, say=said.append)
    place = next(number for number, text in enumerate(said) if text.startswith("warning: "))
    assert said[place + 1] == "hint: is the machine busy? stop other work, then run again"


def test_to_resume_a_run_takes_its_folder() -> None:
    with pytest.raises(ff.UsageError, match="resume=True requires out"):
        ff.run(pages=["wikipedia"], rtt=[20], repeats=1, resume=True)


def test_a_run_without_a_load_that_succeeded_raises_as_the_command_exits_with_1(
    engine: EngineDouble, tmp_path: Path
) -> None:
    engine._load = lambda planned, number: {"status": "failed", "error": "no answer", "plt_ms": None}
    with pytest.raises(ff.ExperimentError, match="without a load that succeeded: 2 cells"):
        ff.run(pages=["wikipedia"], rtt=[20], repeats=2, out=tmp_path / "out")
    assert ff.open_results(tmp_path / "out").loads.height == 4


def test_a_run_with_loads_that_are_not_proved_raises_as_the_command_exits_with_1(
    engine: EngineDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine.load
    proof = {"ok": False, "disagreements": ["ledger 1, sockets 0"]}
    monkeypatch.setattr(engine, "load", lambda planned, page: {**made(planned, page), "proof": proof})
    with pytest.raises(ff.ExperimentError, match="without proof of their mode: 4 loads"):
        ff.run(pages=["wikipedia"], rtt=[20], repeats=2, out=tmp_path / "out")
    assert set(ff.open_results(tmp_path / "out").cells["verdict"]) == {"not proved"}
