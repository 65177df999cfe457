"""The report of a run whose journal keeps loads only, without requests and connections."""

import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import vl_convert
from engine_double import EngineDouble

from firstflight.analysis.records import Sweep
from firstflight.analysis.statistics import improvement
from firstflight.cli import main
from firstflight.report.figures.sweep import improvement_of_sweep
from firstflight.report.sweep import write_sweep
from firstflight.results.schema import TREATMENT

SWEEP = ["amazon", "wikipedia", "--rtt", "20,100", "--repeats", "3", "--keep", "loads", "--out", "sweep"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results folder of a sweep, and what the sweep printed."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.chdir(folder)
        patch.setattr("firstflight.experiment.setup.client_versions", lambda *_: {})
        patch.setattr("firstflight.experiment.setup.Emulator", lambda **clients: EngineDouble())
        assert main(["run", *SWEEP, "--quiet"]) == 0
    return folder / "sweep", printed.getvalue()


@pytest.fixture(autouse=True)
def swept(made: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Copies the sweep to the folder `sweep`, which a test may change; returns what the sweep printed."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made[0], tmp_path / "sweep")
    return made[1]


def test_a_sweep_ends_with_the_distribution_of_the_improvement_by_path(swept: str) -> None:
    caption, *rows = [line.split() for line in swept.splitlines() if "4/0.256" in line]
    assert caption == ["Access", "link", "4/0.256", "Mbit/s"]
    assert [row[0] for row in rows] == ["20", "100"]
    assert "24 loads" in swept
    assert "cells.parquet" in swept


def test_the_journal_of_a_sweep_has_no_requests_and_its_tables_have_their_counts() -> None:
    lines = [json.loads(line) for line in Path("sweep/journal.jsonl").read_text().splitlines()]
    assert len(lines) == 24
    assert all(line["requests"] == line["connections"] == [] for line in lines)
    assert all(pl.read_parquet("sweep/loads.parquet")["requests"])
    assert not Path("sweep/report.html").exists()


def test_a_cell_has_the_medians_of_its_blocks_and_their_improvement() -> None:
    cells, loads = pl.read_parquet("sweep/cells.parquet"), pl.read_parquet("sweep/loads.parquet")
    assert cells.height == 4
    assert cells["n"].to_list() == [3] * 4
    cell = cells.row(by_predicate=(pl.col("page") == "amazon") & (pl.col("rtt_ms") == 100), named=True)
    plt_ms = {
        mode: loads.filter(page="amazon", rtt_ms=100.0, mode=mode)["plt_ms"].median()
        for mode in ("tcp", "tfo")
    }
    assert (cell["baseline_ms"], cell["treatment_ms"]) == (plt_ms["tcp"], plt_ms["tfo"])
    columns = (
        loads.filter(page="amazon", rtt_ms=100.0, mode=mode).sort("block")["plt_ms"] for mode in plt_ms
    )
    assert cell["improvement"] == pytest.approx(
        improvement(*(column.to_list() for column in columns))["point"]
    )


def test_a_failed_load_leaves_its_block_out_and_is_counted() -> None:
    journal = Path("sweep/journal.jsonl")
    first, *rest = journal.read_text().splitlines(keepends=True)
    record = json.loads(first)
    record["load"] |= {"status": "failed", "error": "no answer", "plt_ms": None}
    journal.write_text(json.dumps(record) + "\n" + "".join(rest))
    sweep = write_sweep(Path("sweep"))
    assert (sweep["loads"], sweep["failed_loads"], sweep["all"]["n"]) == (24, 1, 4)
    assert sorted(pl.read_parquet("sweep/cells.parquet")["n"]) == [2, 3, 3, 3]


def with_loads(change: Callable[[dict[str, Any]], None]) -> Sweep:
    """Applies `change` to every record of the sweep's journal; returns the sweep's new report."""
    journal = Path("sweep/journal.jsonl")
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    for record in records:
        change(record)
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    return write_sweep(Path("sweep"))


def test_three_repeats_are_too_few_for_a_verdict_in_a_sweep_as_anywhere() -> None:
    sweep = write_sweep(Path("sweep"))
    assert set(pl.read_parquet("sweep/cells.parquet")["verdict"]) == {"too few repeats"}
    assert (sweep["all"]["faster"], sweep["all"]["slower"], sweep["all"]["too_few_repeats"]) == (0, 0, 1)
    (warning,) = sweep["warnings"]
    assert (warning["kind"], "takes 8" in warning["message"]) == ("too few repeats", True)


def test_a_pair_without_proof_is_left_out_of_a_sweep_and_said() -> None:
    def change(record: dict[str, Any]) -> None:
        if (record["load"]["page"], record["load"]["mode"]) == ("amazon", "tfo"):
            record["proof"]["ok"] = False

    sweep = with_loads(change)
    assert sweep["all"]["n"] == 2
    assert set(pl.read_parquet("sweep/cells.parquet").filter(page="amazon")["verdict"]) == {"not proved"}
    assert sweep["warnings"][0]["kind"] == "no proof"


def test_one_connection_that_did_not_use_tfo_leaves_its_cell_out_of_a_sweep() -> None:
    def change(record: dict[str, Any]) -> None:
        if (
            record["load"]["page"] == "amazon"
            and record["load"]["tfo_accepted"]
            and record["load"]["repeat"] == 1
        ):
            record["load"]["tfo_accepted"] -= 1
            record["load"]["retransmits"] = 0

    assert with_loads(change)["all"]["n"] == 2


@pytest.mark.parametrize(
    ("part", "values", "kind"),
    [
        ("relay", {"late": True, "late_max_ms": 9.0}, "late relay"),
        ("load", {"unmatched_requests": 2}, "unmatched requests"),
        ("load", {"failed_requests": 2}, "failed requests"),
    ],
)
def test_what_makes_loads_doubtful_is_said_of_a_sweep(part: str, values: dict[str, Any], kind: str) -> None:
    sweep = with_loads(lambda record: record[part].update(values))
    assert kind in [warning["kind"] for warning in sweep["warnings"]]


def test_report_says_the_same_again(swept: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sweep", "--quiet"]) == 0
    assert capsys.readouterr().out == swept
    assert main(["report", "sweep", "--quiet", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "firstflight-sweep/3"
    assert [path["rtt_ms"] for path in document["paths"]] == [20.0, 100.0]
    assert 0 < document["all"]["improvement"]["p50"] < 1


def test_the_figure_has_a_panel_per_rate_and_the_pages_by_their_origins() -> None:
    def distribution(middle: float) -> dict[str, object]:
        return {"n": 9, "improvement": {f"p{n:02d}": middle + n / 1000 for n in (5, 25, 50, 75, 95)}}

    rates = ((1.5, 0.25), (None, None))
    asked = {"loss": 0.0, "topology": "access", "client": "loader", "engine": "simulate", "cookies": "warm"}
    sides = {"baseline": "tcp", "treatment": "tfo"}
    path = {**dict.fromkeys(column.name for column in TREATMENT), **asked, **sides}
    paths = [
        {**path, "rtt_ms": rtt, "down_mbps": down, "up_mbps": up, **distribution(rtt / 1000)}
        for rtt in (20.0, 100.0)
        for down, up in rates
    ]
    origins = [
        {"from": low, "to": low + 9, "rtt_ms": rtt, **distribution(0)}
        for low in (1, 11)
        for rtt in (20.0, 100.0)
    ]
    sweep: Any = {"engines": ["simulate"], "paths": paths, "origins": origins}
    drawn = vl_convert.vegalite_to_svg(improvement_of_sweep(sweep))
    for said in (
        "9 pages on 4 paths, simulated",
        "1.5/0.25 Mbit/s",
        "unlimited/unlimited",
        "11\N{EN DASH}20",
    ):
        assert said in drawn
    assert "origins" not in vl_convert.vegalite_to_svg(improvement_of_sweep(sweep | {"origins": []}))


def test_a_folder_of_loads_alone_says_why_it_explains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sweep", "--quiet", "--explain"]) == 0
    said = capsys.readouterr().err
    assert "cannot explain" in said
    assert "--keep all" in said
