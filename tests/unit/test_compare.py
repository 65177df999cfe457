"""`compare` compares two results cell by cell, and first lists the settings in which they differ."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_results import write_results

from firstflight.analysis.compare import Pair, Side, SideCell, compare, open_side
from firstflight.api import open_results
from firstflight.cli import main
from firstflight.errors import UsageError
from firstflight.published import published_names, published_table


def cell(
    page: str, rtt_ms: float, improvement: float, spread: float | None = None, **key: object
) -> SideCell:
    path = {"rtt_ms": rtt_ms, "down_mbps": 4.0, "up_mbps": 0.256, "topology": "access", "loss": 0.0}
    low, high = (None, None) if spread is None else (improvement - spread, improvement + spread)
    full = {"page": page, **path, "client": "loader", "engine": "emulate", **key}
    return SideCell(full, 1000.0, 1000.0 * (1 - improvement), improvement, low, high)


def side(name: str, *cells: SideCell) -> Side:
    return Side(name, {"client": name, "year": "2026"}, cells)


def test_the_paper_agrees_with_itself() -> None:
    paper = open_side("paper")
    found = compare(paper, paper)
    assert (len(found.pairs), found.setup, found.same_sign) == (12, (), 12)
    assert found.rank_correlation == pytest.approx(1.0)
    assert found.median_difference == 0.0


def test_every_published_table_opens_and_names_its_source() -> None:
    for name in published_names():
        table = published_table(name)
        assert table.facts["source"] and table.cells
        assert compare(open_side(name), open_side(name)).only_a == 0


def test_the_papers_improvements_are_those_it_prints() -> None:
    printed = [4, 10, 11, 4, 6, 18, 5, 7, 11, 7, 16, 41]
    ours = [100 * cell.improvement for cell in published_table("paper").cells]
    assert ours == pytest.approx(printed, abs=0.6)


def test_what_differs_in_the_set_up_is_listed_and_what_agrees_is_not() -> None:
    found = compare(side("a", cell("p", 20.0, 0.1)), side("b", cell("p", 20.0, 0.1)))
    assert found.setup == (("client", "a", "b"),)


def test_a_dimension_that_only_differs_between_the_sides_does_not_keep_cells_apart() -> None:
    emulated = side("a", cell("p", 20.0, 0.1), cell("q", 20.0, 0.2))
    simulated = side("b", *(replace(c, key={**c.key, "engine": "simulate"}) for c in emulated.cells))
    assert [pair.difference for pair in compare(emulated, simulated).pairs] == [0.0, 0.0]


def test_a_dimension_that_both_vary_keeps_cells_apart() -> None:
    a = side("a", cell("p", 20.0, 0.1, down_mbps=4.0), cell("p", 20.0, 0.3, down_mbps=10.0))
    assert [pair.difference for pair in compare(a, a).pairs] == [0.0, 0.0]


def test_several_cells_for_one_of_the_other_are_refused_with_what_varies() -> None:
    many = side("many", cell("p", 20.0, 0.1, down_mbps=4.0), cell("p", 20.0, 0.3, down_mbps=10.0))
    with pytest.raises(UsageError, match="several cells of p at 20 ms") as error:
        compare(many, side("one", cell("p", 20.0, 0.1)))
    assert "down_mbps" in error.value.hint


def test_cells_of_one_side_alone_are_counted() -> None:
    found = compare(side("a", cell("p", 20.0, 0.1), cell("q", 20.0, 0.1)), side("b", cell("p", 20.0, 0.1)))
    assert (len(found.pairs), found.only_a, found.only_b) == (1, 1, 0)


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(UsageError, match="no page and RTT in common"):
        compare(side("a", cell("p", 20.0, 0.1)), side("b", cell("p", 30.0, 0.1)))


@pytest.mark.parametrize(
    ("spread_a", "spread_b", "verdict"),
    [
        (0.01, 0.01, "differs"),
        (0.08, 0.08, "no difference shown"),
        (0.05, None, "differs"),
        (None, None, "no interval"),
    ],
)
def test_the_verdict_follows_the_intervals(
    spread_a: float | None, spread_b: float | None, verdict: str
) -> None:
    found = compare(side("a", cell("p", 20.0, 0.3, spread_a)), side("b", cell("p", 20.0, 0.2, spread_b)))
    assert found.pairs[0].verdict == verdict


def test_the_interval_of_a_difference_is_the_root_of_the_squares() -> None:
    pair = compare(side("a", cell("p", 20.0, 0.3, 0.03)), side("b", cell("p", 20.0, 0.2, 0.04))).pairs[0]
    assert pair.interval == pytest.approx((0.05, 0.15))


def test_a_results_folder_is_compared_with_the_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_results(tmp_path / "results")
    assert main(["compare", str(folder), "paper", "--json", "--figure", str(tmp_path / "figure.svg")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cells"] and {row["name"] for row in document["setup"]} >= {"client", "path"}
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "paper"], "nothing: no such results folder or table"),
        (["paper", "course-report-1"], "no page and RTT in common"),
        (["paper", "paper", "--figure", "f.txt"], "cannot draw .txt"),
    ],
)
def test_a_wrong_call_says_what_there_is(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown and "hint:" in shown


def test_the_table_shows_both_and_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "purdue-1", "purdue-2"]) == 0
    shown = capsys.readouterr().out
    assert "What differs in the set-up" in shown and "same sign: 12 of 12" in shown


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes and the modification time of every file."""
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize("stored", [None, b'{"format": "firstflight-summary/1", "cells": []}'])
def test_comparing_writes_nothing_and_works_on_folders_that_are_read_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stored: bytes | None
) -> None:
    """For an ordinary user the mode of the folder forbids writing.

    For root, who may write, the files are compared.
    """
    folders = [write_results(tmp_path / name, blocks=10) for name in ("a", "b")]
    for folder in folders:
        if stored:
            (folder / "summary.json").write_bytes(stored)
        folder.chmod(0o555)
    before = [(state(folder), folder.stat().st_mtime_ns) for folder in folders]
    try:
        assert main(["compare", *map(str, folders), "--json"]) == 0
        results = open_results(folders[0])
        assert len(results.summary["cells"]) == len(json.loads(capsys.readouterr().out)["cells"]) == 12
        assert results.loads.height == 240
        assert [(state(folder), folder.stat().st_mtime_ns) for folder in folders] == before
    finally:
        for folder in folders:
            folder.chmod(0o755)


def pair_of(first: SideCell, second: SideCell, others: int = 0) -> Pair:
    """The first pair of a comparison with `others` more pairs, in which nothing differs."""
    same = [cell(f"q{number}", 20.0, 0.1, 0.02) for number in range(others)]
    return compare(side("a", first, *same), side("b", second, *same)).pairs[0]


def test_a_difference_takes_proof_enough_blocks_and_a_small_adjusted_p() -> None:
    first, second = (replace(cell("p", 20.0, gain, 0.02), blocks=10) for gain in (0.1, 0.06))
    assert pair_of(first, second).verdict == "differs"
    assert pair_of(first, second).p_adjusted == pytest.approx(0.012, abs=0.01)
    assert pair_of(first, second, others=11).verdict == "no difference shown"
    assert pair_of(replace(first, is_proved=False), second).verdict == "not proved"
    few = replace(second, blocks=5, low=None, high=None)
    assert pair_of(first, few).verdict == "too few repeats"
    exact = replace(second, blocks=None, low=None, high=None)
    assert pair_of(first, exact).verdict == "differs"
