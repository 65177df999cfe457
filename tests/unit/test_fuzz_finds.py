"""The failures that the fuzz targets (`fuzz/`) found, each with the smallest input that shows it."""

from pathlib import Path

import pytest
from synthetic_results import load_record

from firstflight.course.audit import audit
from firstflight.errors import FirstflightError, UsageError
from firstflight.pages import load_page
from firstflight.pages.scan import scan_css, scan_html
from firstflight.pages.urls import normal_url
from firstflight.results import Journal
from firstflight.results.check import check_record

MAX_BODY_BYTES = 1 << 32
"""The longest body that a page may have."""


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [("a\nb", "a\\nb"), ("\x1b[31m", "\\x1b[31m"), ("\ud800", "\\ud800"), ("\u202eé", "\\u202eé")],
)
def test_an_error_is_one_line_whatever_it_quotes(quoted: str, shown: str) -> None:
    error = FirstflightError(f"bad: {quoted}", f"mend {quoted}")
    assert (error.message, error.hint, str(error)) == (f"bad: {shown}", f"mend {shown}", f"bad: {shown}")


def test_a_journal_line_of_any_depth_is_refused_in_words(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"[" * 100_000 + b"\n")
    with pytest.raises(UsageError, match="not a journal line"):
        Journal(journal).records()
    journal.write_bytes(b"[" * 100_000)
    assert Journal(journal).records() == [], "a torn line"


@pytest.mark.parametrize("started_at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_load_before_or_after_all_time_is_refused(started_at: str) -> None:
    record = load_record(started_at=started_at)
    assert "started_at" in check_record(record)


def test_a_text_too_long_to_be_scanned_is_served_and_not_read(tmp_path: Path) -> None:
    host = tmp_path / "mirror" / "a.example"
    host.mkdir(parents=True)
    (host / "index.html").write_text("<script src=j.js></script><img src=i.png>")
    (host / "i.png").write_text("")
    with (host / "j.js").open("wb") as file:
        file.truncate(MAX_BODY_BYTES)
    (loaded,) = load_page(f"{host.parent}#http://a.example/")
    assert [r.body_bytes for r in loaded.page.resources if r.kind == "script"] == [MAX_BODY_BYTES]


def test_a_url_is_normalised_once_as_browsers_do_it() -> None:
    for written in ("HTTP://A.example/x #y", "http://a.example/x%20", " http://a.example:80/x%20\n"):
        assert normal_url(written) == "http://a.example/x%20"
    assert normal_url("http://a.example/\ud800") == "http://a.example/%EF%BF%BD"


def test_a_comment_without_an_end_is_all_that_follows() -> None:
    assert scan_html(b"<img src=a><!--x><img src=b>").references == scan_html(b"<img src=a>").references
    assert scan_html(b"<img src=a><script src=b").references == scan_html(b"<img src=a>").references


def test_a_style_sheet_of_megabytes_is_not_taken_apart() -> None:
    sheet = "@import 'a.css';"
    assert len(scan_css(sheet)) == 1
    assert scan_css(sheet + " " * (1 << 22)) == []


def test_a_device_without_end_is_no_table() -> None:
    with pytest.raises(UsageError, match="larger than 10 MB"):
        audit(Path("/dev/zero"))
