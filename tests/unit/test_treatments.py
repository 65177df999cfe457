"""Treatments from flag and plan to summary: comparison, schedule, checks and report."""

import io
import json
import re
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from synthetic_results import load_record

import firstflight as ff
from firstflight.analysis import SIDES
from firstflight.analysis.records import plt_of
from firstflight.analysis.summary import read_measured
from firstflight.cli import main
from firstflight.engines.engine import Answer, record_of
from firstflight.errors import UsageError
from firstflight.experiment.plan_file import PlanFile, resolve
from firstflight.experiment.schedule import Schedule
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path as NetworkPath
from firstflight.model.path import Queue
from firstflight.model.plan import Plan
from firstflight.report.console import print_summary
from firstflight.report.sweep import write_sweep
from firstflight.report.write import write_figures, write_report

NAMED = [
    {"name": "today", "initial_window": 10},
    {"name": "large", "initial_window": 32},
    {"name": "large-tfo", "initial_window": 32, "mode": "tfo"},
]


@pytest.mark.parametrize(
    ("keys", "arms"),
    [
        ({}, {"tcp": {"mode": ("tcp",)}, "tfo": {"mode": ("tfo",)}}),
        (
            {"compare": "initial_window=10,32"},
            {
                "initial_window=10": {"mode": ("tcp",), "initial_window": 10},
                "initial_window=32": {"mode": ("tcp",), "initial_window": 32},
            },
        ),
        (
            {"compare": "keep-alive = yes, no", "mode": "tfo"},
            {
                "keep_alive=true": {"mode": ("tfo",), "keep_alive": True},
                "keep_alive=false": {"mode": ("tfo",), "keep_alive": False},
            },
        ),
        (
            {"compare": "cookies=warm,pool:3"},
            {
                "cookies=warm": {"mode": ("tfo",), "cookies": ("warm",)},
                "cookies=pool:3": {"mode": ("tfo",), "cookies": ("pool:3",)},
            },
        ),
        (
            {"treatment": NAMED},
            {
                "today": {"mode": ("tcp",), "initial_window": 10},
                "large": {"mode": ("tcp",), "initial_window": 32},
                "large-tfo": {"mode": ("tfo",), "initial_window": 32},
            },
        ),
    ],
)
def test_a_plan_is_what_each_treatment_makes_of_it(keys: dict[str, Any], arms: dict[str, Any]) -> None:
    plan = resolve(keys)
    found = {name: {key: getattr(arm, key) for key in arms[name]} for name, arm in plan.arms().items()}
    assert found == arms
    assert plan.baseline == next(iter(arms))
    assert resolve({}, PlanFile(values=tomllib.loads(plan.to_toml()))) == plan
    assert resolve({}, PlanFile(values=plan.to_keys())) == plan


@pytest.mark.parametrize(
    ("keys", "problem", "hint"),
    [
        ({"compare": "initial_window=10"}, "compare: .* has fewer than two values", "initial_window=10,32"),
        ({"compare": "10,32"}, "compare: .* is not KEY=A,B", "initial_window=10,32"),
        ({"compare": "initial_windo=1,2"}, "compare: initial_windo: ", "did you mean initial_window"),
        ({"compare": "initial_window=10,10"}, "compare: two treatments are called initial_window=10", "name"),
        (
            {"compare": "initial_window=10,x"},
            "compare: initial_window=x: initial_window: .*x",
            "whole number",
        ),
        ({"compare": "keep_alive=yes,perhaps"}, "compare: keep_alive=perhaps: keep_alive: ", "true or false"),
        ({"compare": "rtt=20,100"}, "compare: rtt: treatments cannot differ in it", "--rtt 20,100"),
        ({"compare": "engine=emulate,simulate"}, "compare: engine: ", "firstflight compare"),
        ({"compare": "mode=tcp,tfo"}, "compare: modes are compared by a flag", "--mode tcp,tfo"),
        (
            {"compare": "initial_window=10,32", "mode": "tcp,tfo"},
            "compare: several modes are compared already: tcp, tfo",
            r"one --mode.*\[\[treatment\]\]",
        ),
        ({"compare": "http=1.1,2", "scheme": "http"}, "compare: http=2: http: HTTP/2 is spoken", "--scheme"),
        ({"compare": "cookies=warm,stale", "mode": "tcp"}, "cookies: stale has no effect", "--mode tfo"),
        ({"compare": "cookies=cold,stale", "cookies": "warm,cold"}, "compare: .*several cookie", "--cookies"),
        ({"treatment": NAMED[:1]}, "treatment: there is only one treatment", "baseline"),
        ({"treatment": NAMED, "compare": "http=1.1,2"}, "compare: the plan has ", "leave one"),
        ({"treatment": [*NAMED, NAMED[0]]}, "treatment: two treatments are called today", "name"),
        ({"treatment": [{"initial_window": 3}]}, "treatment: a table has no name", "name it"),
        ({"treatment": [{"name": "../x"}]}, "treatment: .* is no name", "letters"),
        ({"treatment": [{"name": "tfo", "initial_window": 3}]}, "tfo: is the name of a mode", "tfo-other"),
        ({"treatment": ["x"]}, "treatment: .* is not a table", r"\[\[treatment\]\]"),
        (
            {"mode": "tcp,early-data", "scheme": "http"},
            "mode: early-data needs TLS",
            "--scheme https",
        ),
        ({"mode": "tcp,resumption", "client": "wget2"}, "mode: wget2 cannot load pages", "--client loader"),
        (
            {"mode": "tcp,early-data", "client": "curl", "cookies": "stale"},
            "cookies: curl's tickets cannot be brought into the state stale",
            "warm or cold",
        ),
        (
            {"mode": "tcp,quic", "congestion_control": "bbr"},
            "bbr is available only with QUIC",
            "quic,quic-0rtt",
        ),
        ({"mode": "tcp,tfo", "cookies": "too-early"}, "cookies: too-early has no effect", "tcp,early-data"),
        ({"mode": "tcp,quic", "middlebox": "drop-early-data"}, "middlebox: drop-early-data", "early-data"),
        ({"mode": "tcp,quic", "scheme": "http"}, "mode: quic needs TLS", "--scheme https"),
        ({"mode": "tcp,quic", "keep_alive": False}, "mode: quic keeps its connections", "--no-keep-alive"),
        (
            {"mode": "quic", "ecn": True, "queue": "codel", "client": "firefox"},
            "ecn: firstflight cannot tell whether firefox uses it over QUIC",
            "--client loader",
        ),
        ({"mode": "tcp,tls12", "client": "wget2"}, "mode: wget2 cannot load pages", "loader"),
        (
            {"mode": "tcp,quic-0rtt", "client": "chromium", "cookies": "stale"},
            "cookies: Chromium's tickets cannot be brought into the state stale",
            "warm or cold",
        ),
        (
            {"mode": "tcp,early-data", "client": "firefox", "keep_alive": False},
            "mode: a visit gives Firefox two tickets",
            "--no-keep-alive",
        ),
        ({"client": "firefox", "har": True}, "har: Firefox's driver writes no HAR", "--client chromium"),
        (
            {"mode": "tcp,quic", "client": "chromium", "post_quantum": False},
            "mode: Chromium speaks TLS 1.3",
            "--no-post-quantum",
        ),
        (
            {"mode": "tcp,tfo", "middlebox": "drop-udp"},
            "middlebox: drop-udp has no effect",
            "--mode tcp,quic",
        ),
        ({"until": "2%", "mode": "tcp"}, "until: needs two treatments", "--mode tcp,tfo"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_key_and_a_fix(
    keys: dict[str, Any], problem: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        resolve(keys)
    assert re.search(hint, refused.value.hint)


def test_a_page_in_the_clear_is_refused_where_a_mode_is_a_way_to_speak_tls(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["run", "wikipedia", "--engine", "simulate", "--mode", "tcp,early-data", "--out"]
    assert main([*asked, str(tmp_path / "a")]) == 2
    shown = capsys.readouterr().err
    assert "wikipedia: no origin speaks TLS" in shown
    assert "--scheme https" in shown
    assert main([*asked, str(tmp_path / "b"), "--scheme", "https", "--figures", "off"]) == 0
    assert "early-data against tcp" in capsys.readouterr().out


def test_a_page_none_of_whose_requests_may_be_repeated_is_refused_where_a_mode_sends_early_data(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = json.loads((Path(__file__).parents[2] / "examples/chain.json").read_text())
    for resource in page["resources"]:
        resource |= {"method": "POST", "url": resource["url"].replace("http:", "https:")}
    (tmp_path / "posts.json").write_text(json.dumps(page))
    asked = ["run", str(tmp_path / "posts.json"), "--engine", "simulate", "--out", str(tmp_path / "out")]
    assert main([*asked, "--mode", "tcp,quic-0rtt"]) == 2
    shown = capsys.readouterr().err
    assert "may ride in early data, which the mode quic-0rtt sends: all are POST" in shown
    assert main([*asked, "--mode", "tcp,quic", "--figures", "off"]) == 0


def test_a_load_that_falls_back_from_quic_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["run", "wikipedia", "--engine", "simulate", "--scheme", "https", "--mode", "tcp,quic"]
    asked += ["--rtt", "100", "--figures", "off", "--out"]
    assert main([*asked, str(tmp_path / "blocked"), "--middlebox", "drop-udp"]) == 0
    assert "with QUIC spoke TCP: wikipedia 100 ms quic" in capsys.readouterr().out
    assert main([*asked, str(tmp_path / "open")]) == 0
    assert "spoke TCP" not in capsys.readouterr().out


def test_of_several_modes_each_table_names_its_own_and_fast_opens_alone_has_the_papers_numbers(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "r"
    modes = ["tcp", "tfo", "early-data"]
    ff.run(out=folder, pages=["wikipedia"], rtt=100, engine="simulate", scheme="https", mode=modes)
    measured = read_measured(folder)
    write_report(measured)
    page = (folder / "report.html").read_text()
    assert "tfo against tcp" in page
    assert "early-data against tcp" in page
    assert page.count(">the paper\u2019s<") == 1
    cells = {cell["treatment"]: cell for cell in measured.summary["cells"]}
    proof = cells["early-data"]["proof"]
    assert proof["treatment"]["early"] == proof["treatment"]["early_accepted"] > 0
    assert "sent early data" in proof["text"]


def test_what_a_flag_compares_stands_over_what_the_plan_compares() -> None:
    plan = resolve({"compare": "http=1.1,2"}, PlanFile(values={"treatment": NAMED, "scheme": "https"}))
    assert [treatment.name for treatment in plan.treatments] == ["http=1.1", "http=2"]


def test_the_first_treatment_is_the_baseline_and_of_modes_the_one_without_fast_open() -> None:
    assert resolve({"compare": "initial_window=32,10"}).baseline == "initial_window=32"
    assert resolve({"mode": "tfo,tcp"}).baseline == resolve({"mode": "tfo"}).baseline == "tcp"


def test_a_block_has_a_load_of_each_treatment_with_the_same_seed_on_its_own_path() -> None:
    plan = resolve({"compare": "loss=0,0.01,0.02", "rtt": "20,100", "repeats": 6, "engine": "simulate"})
    schedule = Schedule(plan, ["amazon", "wsj"])
    assert (schedule.block_size, schedule.cells, schedule.loads) == (3, 12, 72)
    for block in schedule:
        assert {(load.treatment, load.path.loss) for load in block.loads} == {
            ("loss=0", 0.0),
            ("loss=0.01", 0.01),
            ("loss=0.02", 0.02),
        }
        assert len({(load.page, load.path.rtt_ms, load.repeat, load.seed) for load in block.loads}) == 1
    loads = [load for block in schedule for load in block.loads]
    assert len({load.load_id for load in loads}) == len(loads)
    assert [schedule.load_id(load.order) for load in loads] == [load.load_id for load in loads]
    first = Counter(block.loads[0].treatment for block in schedule)
    assert set(first.values()) == {8}, "each treatment goes first equally often"
    assert "amazon-r20-d4-u0.256-access-loss=0.01-001" in {load.load_id for load in loads}
    assert len({path.loss for path in plan.paths_of_all()}) == 3


def test_treatments_of_modes_have_the_ids_order_and_seeds_that_modes_always_had() -> None:
    named = [{"name": mode, "mode": mode} for mode in ("tcp", "tfo")]
    plans = [Plan(repeats=3), resolve({"treatment": named, "repeats": 3})]
    loads = [
        [
            (load.load_id, load.order, load.seed, load.columns())
            for block in Schedule(plan, ["wsj"])
            for load in block.loads
        ]
        for plan in plans
    ]
    assert loads[0] == loads[1]


@pytest.mark.parametrize(
    ("keys", "differs"),
    [
        ({"compare": "initial_window=3,10,32"}, {"initial_window": [3, 32]}),
        ({"compare": "http=1.1,2", "scheme": "https"}, {"http": ["1.1", "2"]}),
        ({"compare": "scheme=http,https"}, {"scheme": ["http", "https"]}),
        (
            {"compare": "congestion_control=cubic,reno", "loss": 0.01},
            {"congestion_control": ["cubic", "reno"]},
        ),
        ({"compare": "cookies=warm,stale"}, {"cookies": ["warm", "stale"]}),
        ({"treatment": NAMED}, {"initial_window": [10, 32], "mode": ["tcp", "tfo"]}),
    ],
)
def test_each_treatment_is_compared_with_the_baseline(
    tmp_path: Path, keys: dict[str, Any], differs: dict[str, Any]
) -> None:
    results = ff.run(
        out=tmp_path / "r", pages=["wikipedia"], rtt=[20, 100], repeats=2, engine="simulate", **keys
    )
    names = [treatment.name for treatment in resolve(keys).treatments]
    cells = results.summary["cells"]
    assert {(cell["baseline"], cell["treatment"]) for cell in cells} == {(names[0], one) for one in names[1:]}
    assert len(cells) == 2 * (len(names) - 1)
    assert all(cell["n"] and cell["proof"]["ok"] for cell in cells)
    assert next(cell["differs"] for cell in cells if cell["treatment"] == names[-1]) == differs
    for cell in cells:
        loads = results.loads.filter(rtt_ms=cell["rtt_ms"])
        for side in SIDES:
            median = loads.filter(treatment=cell[side])["plt_ms"].median()
            assert plt_of(cell, side)["median"] == pytest.approx(median)


def test_a_caption_says_nothing_that_only_one_side_has(tmp_path: Path) -> None:
    results = ff.run(
        out=tmp_path / "r", pages=["wikipedia"], rtt=[20], engine="simulate", compare="initial_window=10,32"
    )
    [cell] = results.summary["cells"]
    assert "initial window" not in cell["caption"]
    console = Console(file=io.StringIO(), width=100)
    print_summary(results.summary, console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "initial_window=32 against initial_window=10; Access link" in told
    assert "PLT baseline" in told and "PLT treatment" in told
    assert max(map(len, told.splitlines())) <= 100


def test_every_part_of_a_report_names_the_treatments(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    ff.run(
        out=folder, pages=["wikipedia"], rtt=[20, 100], engine="simulate", compare="initial_window=3,10,32"
    )
    measured = read_measured(folder)
    write_report(measured)
    names = {path.name for path in write_figures(measured, ["svg"])}
    assert {"improvement-by-rtt.svg", "waterfall-wikipedia-20ms-initial_window_32.svg"} <= names
    page = (folder / "report.html").read_text()
    assert "How much sooner does the page load under each treatment?" in page
    assert "the paper\u2019s" not in page, "the paper compared Fast Open"
    assert "with initial_window=32" in (folder / "figures" / "critical-path.svg").read_text()
    assert "with TFO" not in page
    answers = (folder / "analysis.md").read_text()
    assert "What the treatment does to the load time" in answers
    assert "with TFO" not in answers
    assert (folder / "observations.txt").read_text() == "", "the course's table is about Fast Open"


def test_the_command_takes_the_flag_and_prints_baseline_and_treatment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "wikipedia", "--rtt", "100", "--engine", "simulate", "--quiet", "--json"]
    assert main([*command, "--compare", "http=1.1,2", "--scheme", "https", "--out", str(tmp_path / "r")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "firstflight-summary/4"
    [cell] = document["cells"]
    assert (cell["baseline"], cell["treatment"]) == ("http=1.1", "http=2")
    assert cell["improvement"]["point"] > 0
    assert main(["run", "--resume", "--out", str(tmp_path / "r"), "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == document["cells"]
    assert main(["compare", str(tmp_path / "r"), str(tmp_path / "r"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["difference"]["point"] == 0


def test_a_sweep_has_a_row_per_page_path_and_treatment(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    ff.run(
        out=folder,
        pages=["wikipedia"],
        rtt=[20, 100],
        engine="simulate",
        keep="loads",
        loss=0.01,
        repeats=3,
        compare="initial_window=3,10,32",
    )
    sweep = write_sweep(folder)
    cells = pl.read_parquet(folder / "cells.parquet")
    assert cells.select("rtt_ms", "baseline", "treatment", "n").rows() == [
        (rtt_ms, "initial_window=3", f"initial_window={window}", 3)
        for rtt_ms in (20, 100)
        for window in (10, 32)
    ]
    assert {path["treatment"] for path in sweep["paths"]} == {"initial_window=10", "initial_window=32"}


def test_with_until_the_widest_of_the_intervals_counts(tmp_path: Path) -> None:
    results = ff.run(
        out=tmp_path / "r",
        pages=["wikipedia"],
        rtt=[20],
        engine="simulate",
        loss=0.02,
        until="4%",
        repeats=3,
        compare="initial_window=10,32,3",
        most_repeats=60,
    )
    widths = [row["high"] - row["low"] for row in results.cells.iter_rows(named=True)]
    assert results.cells["n"].n_unique() == 1
    assert max(widths) <= 0.04 or results.cells["n"][0] > 40


PLANNED = PlannedLoad(
    load_id="x",
    block=0,
    order=0,
    repeat=1,
    page="p",
    path=NetworkPath("access", 20.0, None, None, Queue(packets=1000), 0.0),
    mode="tcp",
    seed=1,
)


def answer(*carried: tuple[int, float, float], scheme: str = "https") -> Any:  # noqa: ANN401
    """A laboratory's answer.

    `carried` has, for each request, its connection and when it was sent and ended (ms).
    """
    load = load_record(mode="tcp")
    request, connection = load["requests"][0], load["connections"][0]
    origin = f"{scheme}://a.test"
    return {
        "status": "ok",
        "plt_ms": 10.0,
        "first_byte_ms": 5.0,
        "unmatched_requests": 0,
        "tfo_offered": 0,
        "tfo_accepted": 0,
        "bytes_down": 1,
        "bytes_up": 1,
        "retransmits": 0,
        "proof": {"ok": True, "disagreements": []},
        "relay": {"late": False},
        "requests": [
            {**request, "index": number, "origin": origin, "connection": at, "sent_ms": sent, "end_ms": end}
            for number, (at, sent, end) in enumerate(carried)
        ],
        "connections": [
            {**connection, "connection": number, "origin": origin} for number in {at for at, _, _ in carried}
        ],
    }


ONE_AFTER_ANOTHER = answer((0, 0.0, 5.0), (0, 5.0, 9.0), (1, 6.0, 9.0))
AT_ONCE = answer((0, 0.0, 9.0), (0, 3.0, 9.0))
EACH_ITS_OWN = answer((0, 0.0, 5.0), (1, 5.0, 9.0))
IN_THE_CLEAR = answer((0, 0.0, 5.0), scheme="http")


@pytest.mark.parametrize(
    ("keys", "kept", "broken", "told"),
    [
        ({"http": "1.1"}, ONE_AFTER_ANOTHER, AT_ONCE, "http=1.1: two requests at once on connection 0"),
        ({"http": "2"}, AT_ONCE, ONE_AFTER_ANOTHER, "http=2: 2 connections to https://a.test"),
        ({"keep_alive": False}, EACH_ITS_OWN, AT_ONCE, "keep_alive=false: 2 requests on connection 0"),
        ({"scheme": "https"}, AT_ONCE, IN_THE_CLEAR, "scheme=https: 1 of 1 connections to http://a.test"),
        ({"scheme": "http"}, IN_THE_CLEAR, AT_ONCE, "scheme=http: 1 of 1 connections to https://a.test"),
    ],
)
def test_a_load_that_breaks_what_its_treatment_promises_is_no_result(
    keys: dict[str, Any], kept: Answer, broken: Answer, told: str
) -> None:
    planned = replace(PLANNED, compared=tuple(keys), **keys)
    assert record_of(planned, None, kept, whose="laboratory")["load"]["status"] == "ok"
    record = record_of(planned, None, broken, whose="laboratory")
    assert record["load"]["status"] == "failed"
    assert told in str(record["load"]["error"])
    assert record["proof"]["ok"] is False
    assert told in (record["proof"]["disagreements"] or [""])[0]
    aside = replace(PLANNED, compared=("initial_window",), **keys)
    assert record_of(aside, None, broken, whose="laboratory")["load"]["status"] == "ok"


def test_two_loads_that_differ_in_any_key_have_a_waterfall(tmp_path: Path) -> None:
    page, path = ff.load_page("wikipedia"), ff.path(rtt_ms=100)
    loads = [ff.simulate(page, path, "tcp", initial_window=window) for window in (3, 10)]
    ff.waterfall(*loads).save(tmp_path / "w.svg")
    drawn = (tmp_path / "w.svg").read_text()
    assert "with initial_window=3" in drawn and "with initial_window=10" in drawn
