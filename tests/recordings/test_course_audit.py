"""The audit of one published run of the course and of the paper's tables finds the known defects."""

import json
from pathlib import Path

import pytest

from firstflight.cli import main
from firstflight.course.audit import Audit, audit
from firstflight.course.log_checks import Finding


def findings(found: Audit, kind: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == kind]


def test_the_published_tables_have_three_wrong_cells(shared_data: Path) -> None:
    found = audit(shared_data / "published")
    assert len(found.printed) == 108
    assert sorted((f.kind, f.line) for f in found.findings if f.kind != "another measure") == [
        ("arithmetic", 74),
        ("lost sign", 19),
        ("lost sign", 25),
    ]
    assert [f.subject for f in findings(found, "another measure")] == ["stanford-2015"]


@pytest.fixture(name="run", scope="module")
def _run(shared_data: Path) -> Audit:
    return audit(shared_data / "course" / "run-2018")


def test_all_four_cells_of_a_run_stand_side_by_side(run: Audit) -> None:
    cell = next(cell for cell in run.cells if cell.subject == "httpwww.gitlab.com 200 ms")
    assert [round(load.plt_ms or 0) for load in cell.loads()] == [31823, 3892, 7085, 5567]
    assert [round(value or 0, 1) for value in (cell.printed, cell.matched, cell.null)] == [82.5, 64.6, 87.8]


def test_the_run_pairs_the_first_load_without_with_the_second_with(run: Audit) -> None:
    assert len(findings(run, "unmatched runs")) == 9
    assert {finding.file.name for finding in findings(run, "unmatched runs")} == {"observations.txt"}


def test_the_run_lost_four_signs(run: Audit) -> None:
    assert [finding.line for finding in findings(run, "lost sign")] == [4, 5, 18, 22]


def test_a_crash_that_left_nothing_is_told_from_one_after_the_log(run: Audit) -> None:
    crashes = findings(run, "crashed load")
    (lost,) = [finding for finding in crashes if "nothing is left" in finding.message]
    assert lost.file.parts[-2:] == ("10-0-tfo-1", "httpwww.gitlab.com")
    assert all("the times are complete" in finding.message for finding in crashes if finding is not lost)


def test_https_stalls_are_found_where_they_decide(run: Audit) -> None:
    stalls = findings(run, "https stall")
    worst = next(f for f in stalls if f.subject == "httpwww.gitlab.com 200 ms, run 0 without TFO")
    text = worst.file.read_text().splitlines()[(worst.line or 0) - 1]
    assert "https://connect.facebook.net" in text and "18863.459" in text


def test_the_null_effect_of_every_cell_is_the_one_known(run: Audit) -> None:
    known = {
        "httpen.cppreference.comwcppcontainervector 20 ms": 6.9,
        "httpen.cppreference.comwcppcontainervector 100 ms": 5.3,
        "httpen.cppreference.comwcppcontainervector 200 ms": 4.9,
        "httpwww.gitlab.com 200 ms": 87.8,
        "httpwww.reddit.com 200 ms": 62.7,
        "httpwww.gitlab.com 100 ms": 17.9,
    }
    assert {cell.subject: round(cell.null or 0, 1) for cell in run.cells if cell.subject in known} == known
    assert known.keys() <= {finding.subject for finding in findings(run, "null effect")}


def test_loads_that_fetched_something_else_are_not_compared_in_silence(run: Audit) -> None:
    other = findings(run, "other requests")
    assert [finding.subject for finding in other] == [
        "httpwww.gitlab.com 200 ms",
        "httpwww.gitlab.com 100 ms",
    ]
    assert "51 requests without TFO are compared with 44 with it" in other[0].message


def test_requests_that_had_not_ended_are_missed(run: Audit) -> None:
    reddit = next(f for f in findings(run, "truncated load") if "reddit" in f.subject)
    assert "in 2 of 12 loads" in reddit.message
    assert "2 of 53 at 20 ms, run 1 with TFO" in reddit.message
    assert "HttpNetworkTransaction.Count" in reddit.file.read_text().splitlines()[(reddit.line or 0) - 1]


def test_the_browsers_own_switch_is_no_proof(run: Audit) -> None:
    (finding,) = findings(run, "no proof")
    assert "tfo.supported in 17 logs" in finding.message
    assert finding.line


def test_the_rest_of_the_known_defects_are_found(run: Audit) -> None:
    assert "200 is 202 ms" in findings(run, "path")[0].message
    assert "all without TFO before all with it" in findings(run, "design")[0].message
    assert "1513 connections for 1323 requests" in findings(run, "design")[1].message
    assert len(findings(run, "types")) == 3
    assert any("gitlab" in finding.subject for finding in findings(run, "missing files"))
    assert [finding.line for finding in findings(run, "missing logs")] == [3]
    assert findings(run, "unit")


def test_the_command_prints_a_document(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(shared_data / "course" / "run-2018"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["cells"]) == 9
    assert {"kind", "subject", "message", "file", "line"} == set(document["findings"][0])


def test_the_command_prints_every_finding(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(shared_data / "course" / "run-2018")]) == 0
    shown = capsys.readouterr().out
    assert "+87.8 %" in shown and "observations.txt:18" in shown
