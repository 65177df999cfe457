"""An audit finds what published runs hide, and says in which line."""

import json
from pathlib import Path

import pytest

from firstflight.cli import main
from firstflight.course.audit import Audit, audit, audit_table
from firstflight.course.findings import Finding
from firstflight.course.observations import HEADER, NULL_HEADER
from firstflight.errors import UsageError

TABLE = "page,rtt_ms,plt_tcp,plt_tfo,unit,improvement_printed_pct\n"


def findings(found: Audit, kind: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind == kind]


def printed(*rows: str) -> Audit:
    return audit_table(Path("table.csv"), TABLE + "\n".join(rows))


def test_a_right_row_has_no_findings() -> None:
    assert printed("wikipedia,200,5.15,3.03,s,41").findings == []


def test_a_gain_that_was_a_loss_lost_its_sign() -> None:
    (finding,) = printed("google,200,3577,3159,ms,11.7", "google,20,1630.531,1716.194,ms,5.25").findings
    assert (finding.kind, finding.line) == ("lost sign", 3)
    assert "\N{MINUS SIGN}5.3 %" in finding.message


def test_a_loss_printed_as_a_loss_is_right() -> None:
    assert printed("google,20,1630.531,1716.194,ms,-5.25").findings == []


def test_a_mistyped_time_is_found_with_the_digit_that_mends_it() -> None:
    (finding,) = printed("amazon,20,17.655,24.885,s,10").findings
    assert finding.kind == "arithmetic"
    assert "27.655 without" in finding.message


@pytest.mark.parametrize("percent", ["4", "3.9", "3.90"])
def test_rounding_of_times_and_percentages_is_no_finding(percent: str) -> None:
    assert printed(f"amazon,20,1.54,1.48,s,{percent}").findings == []


def test_a_column_of_speed_ups_is_named_once() -> None:
    (finding,) = printed("amazon,20,3.40,2.86,s,19", "nytimes,20,1.82,1.39,s,31").findings
    assert finding.kind == "another measure"


def test_milliseconds_under_seconds_are_found_in_the_originals_table() -> None:
    header = "Page\tRTT(ms)\tPLT: no TFO (s)\tPLT: TFO (s)\tImprov.\n"
    text = f"{header}httpwww.amazon.com\n\t200 \t5022.7 \t4066.5 \t19.04\n"
    found = audit_table(Path("observations.txt"), text)
    assert [(finding.kind, finding.line) for finding in found.findings] == [("unit", 3)]
    assert found.printed[0].page == "httpwww.amazon.com"


def test_our_own_table_of_noise_is_told_from_the_one_before() -> None:
    page = "httpx.example\n\t20 \t100.0 \t"
    text = f"{HEADER}{page}90.0 \t10.0\n\n{NULL_HEADER}{page}100.5 \t-0.5\n"
    found = audit_table(Path("observations.txt"), text)
    assert [cell.source for cell in found.printed] == ["", "TCP on TCP"]
    assert found.findings == []


@pytest.mark.parametrize(
    "text",
    [
        "Page RTT(ms) PLT: no TFO (ms) PLT: TFO (ms) Improv.\nwsj.com\n20 4200.0 4400.0 4.76\n",
        "page  RTT (ms)  no TFO (s)  TFO (s)  Improv.\n\nwsj.com  20  4.20  4.40  4.8 %\n",
    ],
)
def test_a_table_that_lost_its_tabs_when_it_was_pasted_is_read(text: str) -> None:
    found = audit_table(Path("report.txt"), text)
    assert [(cell.page, cell.rtt_ms) for cell in found.printed] == [("wsj.com", 20.0)]
    assert [(finding.kind, finding.line) for finding in found.findings] == [("lost sign", 3)]


def test_a_markdown_table_is_read() -> None:
    header = "| page | RTT | TCP (s) | TFO (s) | improvement |\n|---|---|---|---|---|\n"
    text = f"{header}| wsj | 20 | 4.20 | 4.40 | 4.8 % |\n"
    (finding,) = audit_table(Path("README.md"), text).findings
    assert (finding.kind, finding.line) == ("lost sign", 3)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "table.csv: no table"),
        ("hello\nworld\n", "table.csv: no table"),
        (TABLE + "amazon,20,fast,1.48,s,4\n", "table.csv:2: tcp is not a number"),
        (TABLE + "amazon,20,0,1.48,s,4\n", "table.csv:2: tcp is not a time"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(UsageError) as error:
        audit_table(Path("table.csv"), text)
    assert error.value.message.startswith(place)
    assert error.value.hint


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no logs of page loads"):
        audit(tmp_path)


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
    assert all("its times are whole" in finding.message for finding in crashes if finding is not lost)


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


def test_a_cold_start_of_the_browser_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "client" / "10-0-tfo-0"
    folder.mkdir(parents=True)
    (folder / "page").write_text(
        "<transactions>\nstrt (ms) | end (ms)  | len (ms)  | url\n"
        " 4887.000 |  5287.000 |   400.000 | http://a.example/\n</transactions>\n"
    )
    assert "4,887 ms" in findings(audit(tmp_path), "start-up")[0].message


def test_the_command_prints_a_document(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(shared_data / "course" / "run-2018"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["cells"]) == 9
    assert {"kind", "subject", "message", "file", "line"} == set(document["findings"][0])


def test_the_command_prints_every_finding(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(shared_data / "course" / "run-2018")]) == 0
    shown = capsys.readouterr().out
    assert "+87.8 %" in shown and "observations.txt:18" in shown
