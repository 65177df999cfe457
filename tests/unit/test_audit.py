"""`audit` finds errors in published runs and tables, such as a lost sign, and names the line."""

from pathlib import Path

import pytest

from firstflight.course.audit import Audit, audit, audit_table
from firstflight.course.log_checks import Finding
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


def test_a_cold_start_of_the_browser_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "client" / "10-0-tfo-0"
    folder.mkdir(parents=True)
    (folder / "page").write_text(
        "<transactions>\nstrt (ms) | end (ms)  | len (ms)  | url\n"
        " 4887.000 |  5287.000 |   400.000 | http://a.example/\n</transactions>\n"
    )
    assert "4,887 ms" in findings(audit(tmp_path), "start-up")[0].message
