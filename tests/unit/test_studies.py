"""Studies: their documents quote the numbers of their tables, and their own arithmetic is correct."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest
from documents import ROOT, documents
from synthetic_results import failed_record, load_record, write_journal

import firstflight as ff
from firstflight.experiment.plan_file import read_plan_file, resolve
from firstflight.experiment.schedule import Schedule
from studies.loss import study as loss
from studies.paper.study import distance
from studies.short_rtt import study as short_rtt
from studies.structure.pages import BASE, Structure, made, structures
from studies.tables import Study, shown
from studies.what_if.study import CONDITIONS, effect, means

RTT_MS = 200.0
STUDIES = [page.parent for page in sorted((ROOT / "studies").glob("*/README.md"))]
PLANS = sorted((ROOT / "studies").glob("*/*.toml"))
CONDITIONS_STATED = {"plan", "n", "engine", "kernel and machine", "clients", "commit", "data", "command"}
QUOTED = re.compile(r"([+−]?\d[\d.,]*(?: %)?)<!-- (\S+\.csv) ((?:\w+=\S+ )*)(\{.+?\}) -->")  # noqa: RUF001
"""A number and its source: `+9.9 %<!-- loads.csv page=wikipedia rtt_ms=100 {improvement:+.1%} -->`.

In a value, `_` stands for a space. If the format has no `+`, the sign of the number is not compared.
"""


def studies() -> list[Study]:
    names = sorted(file.parent.name for file in (ROOT / "studies").glob("*/study.py"))
    return [import_module(f"studies.{name}.study").STUDY for name in names]


def quotations() -> Iterator[tuple[Path, str, Path, dict[str, str], str]]:
    for page in documents():
        for number, file, keys, value in QUOTED.findall(page.read_text(encoding="utf-8")):
            where = dict(key.split("=", 1) for key in keys.split())
            yield page, number, (page.parent / file).resolve(), where, value


def fits(row: dict[str, object], where: dict[str, str]) -> bool:
    values = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in row.items()}
    return all(values[name].replace(" ", "_") == value for name, value in where.items())


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.relative_to(ROOT / "studies")))
def test_a_studys_plan_is_valid_and_its_baseline_has_no_fast_open(plan: Path) -> None:
    # A plan without modes uses Fast Open if its treatments differ in something that needs it, such as
    # cookies.
    resolved = resolve({}, read_plan_file(plan))
    loads = (load for block in Schedule(resolved, ["page"]) for load in block.loads)
    assert {load.mode for load in loads if load.treatment == resolved.baseline} == {"tcp"}


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.folder.name)
def test_a_document_shows_the_tables_of_its_study(study: Study) -> None:
    text = (study.folder / "README.md").read_text(encoding="utf-8")
    assert [f"<!-- {name} -->\n\n|" for name in study.columns if f"<!-- {name} -->\n\n|" not in text] == []
    assert study.document() == text, f"run: python -m studies.{study.folder.name}.study"


@pytest.mark.parametrize("folder", STUDIES, ids=lambda folder: folder.name)
def test_a_study_asks_answers_and_states_its_conditions_in_this_order(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    places = [text.index(part) for part in ("# ", "**Question.** ", "**Answer.** ", "\n| plan | ")]
    assert places == sorted(places)
    rows = re.findall(r"^\| ([a-z ]+) \| .", text, re.MULTILINE)
    assert CONDITIONS_STATED - set(rows) == set()


def test_numbers_that_pages_quote_are_those_of_the_tables() -> None:
    found = list(quotations())
    assert len(found) > 20
    for page, number, file, where, value in found:
        [row] = [row for row in pl.read_csv(file).iter_rows(named=True) if fits(row, where)]
        held = shown(value, row) if "+" in value else shown(value, row).lstrip("\N{MINUS SIGN}")
        assert number.removesuffix(" %") == held.removesuffix(" %"), (page.relative_to(ROOT), where)


def saved_rtts(structure: Structure, **keys: object) -> float:
    plan = ROOT / "studies/structure/plan.toml"
    pages = [made("page", structure)]
    [pair] = ff.simulate(plan, pages=pages, rtt=RTT_MS, repeats=1, **keys).pairs
    [tcp_ms], [tfo_ms] = pair.plt_ms("baseline"), pair.plt_ms("treatment")
    return (tcp_ms - tfo_ms) / RTT_MS


@pytest.mark.parametrize("structure", structures().values(), ids=structures())
def test_a_made_up_page_is_as_it_is_called(structure: Structure) -> None:
    page = made("page", structure)
    depths = [0]
    for resource in page.resources[1:]:
        assert resource.initiator
        depths.append(depths[resource.initiator.resource] + 1)
    assert (len(page.resources), max(depths)) == (structure.objects + 1, structure.depth)
    assert len(page.origins) == min(structure.hosts, structure.objects + 1)
    assert [r.body_bytes for r in page.resources] == [structure.padding] + [
        structure.size
    ] * structure.objects


def test_fast_open_saves_the_handshakes_in_a_row_and_none_for_a_request_that_does_not_fit() -> None:
    one = replace(BASE, objects=1)
    assert saved_rtts(one) == pytest.approx(2, abs=0.1)
    assert saved_rtts(replace(one, hosts=1)) == pytest.approx(1, abs=0.1)
    assert saved_rtts(replace(one, hosts=1), keep_alive=False) == pytest.approx(2, abs=0.1)
    assert saved_rtts(replace(BASE, objects=24, depth=24)) == pytest.approx(4, abs=0.1)
    assert saved_rtts(replace(one, request=1_500)) == pytest.approx(0, abs=0.1)


def test_every_variant_of_the_study_of_variants_can_be_simulated() -> None:
    gains = {}
    for condition in CONDITIONS:
        cells = means(condition, pages=["wikipedia"])
        for number, name in enumerate(condition.variants):
            gains[condition.name, name] = effect(condition, cells, number)["median_100"]
    assert [key for key, gain in gains.items() if not math.isfinite(gain)] == []
    assert gains["in the clear, warm cookies", "one-time-cookies=6"] == pytest.approx(0, abs=0.001)
    assert gains["in the clear, cold cookies", "unproven=14600"] > 0.05
    assert gains["TLS with the post-quantum share", "syn-payload=2, early-data"] > 0.05


def test_a_study_counts_no_attempt_that_a_later_one_made_void(tmp_path: Path) -> None:
    late = [load_record(mode=mode, plt_ms=9999.0) for mode in ("tcp", "tfo")]
    last = [failed_record(mode=mode) for mode in ("tcp", "tfo")]
    good = [load_record(mode=mode, block=1) for mode in ("tcp", "tfo")]
    results = ff.open_results(write_journal(tmp_path, [*late, *last, *good]))
    assert short_rtt.table(results.pairs)["pairs"].to_list() == [1]
    assert 9999.0 not in loss.last_attempts(results.loads)["plt_ms"].to_list()


def papers_cells(**ours: pl.Expr) -> pl.DataFrame:
    """Three cells of the paper, and ours. Ours are equal to the paper's, except for the columns in `ours`."""
    cells = pl.DataFrame({"tcp_s": [1.54, 2.6, 4.1], "paper": [0.04, 0.1, 0.41]})
    return cells.with_columns(**{"ours_s": pl.col("tcp_s"), "gain": pl.col("paper"), **ours})


def test_the_paper_is_at_no_distance_from_itself() -> None:
    found = distance(papers_cells())
    assert (found["cells"], found["same_sign"], found["size"], found["mean"]) == (3, 3, 0.0, 0.0)
    assert (found["rank"], found["plt_ratio"]) == (pytest.approx(1), pytest.approx(1))


def test_a_table_that_is_larger_in_every_cell_has_its_order_and_its_distance() -> None:
    found = distance(papers_cells(ours_s=2 * pl.col("tcp_s"), gain=pl.col("paper") + 0.1))
    assert (found["size"], found["mean"]) == (pytest.approx(0.1), pytest.approx(0.1))
    assert (found["rank"], found["plt_ratio"]) == (pytest.approx(1), pytest.approx(2))


def test_a_table_of_the_other_sign_and_order_says_so() -> None:
    found = distance(papers_cells(gain=-pl.col("paper")))
    assert (found["same_sign"], found["rank"]) == (0, pytest.approx(-1))
