"""What is said of a run that kept its loads only."""

import json
from pathlib import Path

import polars as pl
import pytest
import vl_convert
from engine_double import EngineDouble

from firstflight.analysis.sweep import summarize_sweep
from firstflight.cli import main
from firstflight.report.figures.sweep import improvement_of_sweep
from firstflight.results.schema import TREATMENT

SWEEP = ["amazon", "wikipedia", "--rtt", "20,100", "--repeats", "3", "--keep", "loads", "--out", "sweep"]


@pytest.fixture(autouse=True)
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """A sweep in the folder `sweep`; what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("firstflight.experiment.equipment.client_versions", dict)
    monkeypatch.setattr("firstflight.experiment.equipment.Emulator", lambda **clients: EngineDouble())
    assert main(["run", *SWEEP, "--quiet"]) == 0
    return capsys.readouterr().out


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
    assert pl.read_parquet("sweep/loads.parquet")["requests"].min() > 0
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
    assert (cell["tcp_ms"], cell["tfo_ms"]) == (plt_ms["tcp"], plt_ms["tfo"])
    assert cell["improvement"] == pytest.approx((plt_ms["tcp"] - plt_ms["tfo"]) / plt_ms["tcp"])


def test_a_failed_load_leaves_its_block_out_and_is_counted() -> None:
    journal = Path("sweep/journal.jsonl")
    first, *rest = journal.read_text().splitlines(keepends=True)
    record = json.loads(first)
    record["load"] |= {"status": "failed", "error": "no answer", "plt_ms": None}
    journal.write_text(json.dumps(record) + "\n" + "".join(rest))
    sweep = summarize_sweep(Path("sweep"))
    assert (sweep["loads"], sweep["failed_loads"], sweep["all"]["n"]) == (24, 1, 4)
    assert sorted(pl.read_parquet("sweep/cells.parquet")["n"]) == [2, 3, 3, 3]


def test_report_says_the_same_again(swept: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sweep", "--quiet"]) == 0
    assert capsys.readouterr().out == swept
    assert main(["report", "sweep", "--quiet", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "firstflight-sweep/2"
    assert [path["rtt_ms"] for path in document["paths"]] == [20.0, 100.0]
    assert 0 < document["all"]["improvement"]["p50"] < 1


def test_the_figure_has_a_panel_per_rate_and_the_pages_by_their_origins() -> None:
    def distribution(middle: float) -> dict[str, object]:
        return {"n": 9, "improvement": {f"p{n:02d}": middle + n / 1000 for n in (5, 25, 50, 75, 95)}}

    rates = ((1.5, 0.25), (None, None))
    asked = {"loss": 0.0, "topology": "access", "client": "loader", "engine": "simulate", "cookies": "warm"}
    path = {**dict.fromkeys(column.name for column in TREATMENT), **asked}
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
    sweep = {"engines": ["simulate"], "paths": paths, "origins": origins}
    drawn = vl_convert.vegalite_to_svg(improvement_of_sweep(sweep))
    for said in (
        "9 pages on 4 paths, simulated",
        "1.5/0.25 Mbit/s",
        "unlimited/unlimited",
        "11\N{EN DASH}20",
    ):
        assert said in drawn
    assert "origins" not in vl_convert.vegalite_to_svg(improvement_of_sweep({**sweep, "origins": []}))


def test_a_folder_of_loads_alone_says_why_it_explains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sweep", "--quiet", "--explain"]) == 0
    said = capsys.readouterr().err
    assert "nothing can be explained" in said
    assert "--keep all" in said
