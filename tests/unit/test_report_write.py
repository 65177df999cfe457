import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic_results import failed_record, load_record, write_journal, write_results

from firstflight.analysis.summary import read_measured
from firstflight.errors import UsageError
from firstflight.report import html
from firstflight.report.html import bundle_vega, compared, digest
from firstflight.report.write import write_figures, write_report

MADE = (
    "loads.parquet requests.parquet connections.parquet summary.json observations.txt analysis.md report.html"
)


class Tags(HTMLParser):
    """Tags, their attributes, and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_results(tmp_path_factory.mktemp("run") / "my-run", ("wikipedia",), (200.0,), blocks=2)
    write_report(read_measured(folder))
    return folder


def page_of(folder: Path) -> Tags:
    return Tags((folder / "report.html").read_text())


def test_everything_of_the_design_is_made_from_the_folder_alone(tmp_path: Path) -> None:
    write_results(tmp_path, ("wikipedia",), (200.0,), blocks=2)
    paths = write_report(read_measured(tmp_path))
    assert [str(path.relative_to(tmp_path)) for path in paths] == MADE.split()
    assert all(path.stat().st_size for path in paths)
    assert pl.read_parquet(tmp_path / "loads.parquet").height == 4


def test_a_second_report_is_the_same_but_for_the_hour(folder: Path) -> None:
    def numbers() -> list[bytes]:
        return [(folder / name).read_bytes() for name in MADE.split()[:6]]

    before = numbers()
    write_report(read_measured(folder))
    assert numbers() == before
    write_report(read_measured(folder))


def test_the_page_needs_no_network_and_runs_no_script_but_its_own(folder: Path) -> None:
    page = page_of(folder)
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not [attrs for _, attrs in page.tags if {"src", "onload", "onclick"} & set(attrs)]
    assert all(str(attrs.get("href", "#")).startswith("#") for _, attrs in page.tags)
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert [attrs for attrs in scripts if attrs.get("type") != "application/json"] == [{}]
    policy = next(str(attrs["content"]) for _, attrs in page.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    code = (folder / "report.html").read_text().rpartition("<script>")[2].partition("</script>")[0]
    assert f"script-src '{digest(code)}'" in policy


def test_every_link_of_the_page_leads_to_a_part_of_it(folder: Path) -> None:
    tags = page_of(folder).tags
    names = {f"#{attrs['id']}" for _, attrs in tags if "id" in attrs}
    links = [attrs["href"] for tag, attrs in tags if tag == "a"]
    assert len(links) > 5
    assert set(links) <= names


def test_the_page_has_figures_result_calibration_environment_and_how_to_reproduce(folder: Path) -> None:
    page = page_of(folder)
    assert [tag for tag, _ in page.tags].count("figure") == 3
    assert [attrs.get("class") for tag, attrs in page.tags].count("waterfall") == 1
    for part in (
        "my-run",
        "3.13 s",
        "too few repeats (6 needed)",
        "44 of 44",
        "rtt_ms.asked",
        "What TFO does to the load time",
        "+41.2 %",
        "Example CPU <2 cores>",
    ):
        assert part in page.text
    assert 'topology = "access"' in page.text
    assert "firstflight run --plan plan.toml" in page.text


def test_a_page_says_what_was_compared(folder: Path) -> None:
    assert "firstflight: wikipedia at 200 ms RTT, without and with TFO" in page_of(folder).text


def test_many_pages_and_rtts_are_counted_in_the_title() -> None:
    none, some = {"ok": 0, "failed": 0}, {"ok": 1, "failed": 0}
    sides = {"baseline": "tcp", "treatment": "tfo"}
    cells: list[Any] = [
        {
            "page": f"p{page}",
            "rtt_ms": float(rtt_ms),
            **sides,
            "baseline_loads": none,
            "treatment_loads": some,
        }
        for page in range(6)
        for rtt_ms in (20, 50, 100, 150, 200, 400)
    ]
    assert compared(cells) == "6 pages at 20 to 400 ms RTT, with TFO"


def test_the_bundled_vega_is_that_of_vl_convert() -> None:
    assert (Path(html.__file__).parent / "templates/vega.js").read_text() == bundle_vega()


def test_every_report_that_contains_vega_contains_the_texts_of_its_licences(folder: Path) -> None:
    licences = (Path(html.__file__).parent / "templates/vega.LICENSES").read_text()
    assert "University of Washington Interactive Data Lab" in licences
    assert licences in (folder / "report.html").read_text()


def test_a_hostile_page_is_escaped_everywhere(tmp_path: Path) -> None:
    evil = "</svg></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    records = [load_record(mode=mode, block=n, page=evil) for n in range(2) for mode in ("tcp", "tfo")]
    for record in records:
        record["requests"][0]["url"] = f"http://x/{evil}\u202e"
    failed = failed_record(block=3)
    failed["load"] |= {"page": evil, "error": evil}
    write_journal(tmp_path, [*records, failed])
    (tmp_path / "plan.toml").write_text(evil)
    (tmp_path / "environment.json").write_text(json.dumps({evil: [evil], "calibration": [{evil: evil}]}))
    write_report(read_measured(tmp_path))
    page = page_of(tmp_path)
    assert "img" not in {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 7
    assert evil in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize("content", [None, "{not json", "[1, 2]"])
def test_a_missing_or_broken_environment_is_said_not_hidden(tmp_path: Path, content: str | None) -> None:
    write_journal(tmp_path, [load_record(mode=mode) for mode in ("tcp", "tfo")])
    if content is not None:
        (tmp_path / "environment.json").write_text(content)
    write_report(read_measured(tmp_path))
    text = page_of(tmp_path).text
    assert re.search(r"environment\.json\s*(missing|cannot be read|1, 2)", text)
    assert "No calibration was recorded" in text
    assert "# plan.toml: No such file" in text


def test_a_run_whose_loads_all_failed_has_a_report(tmp_path: Path) -> None:
    write_journal(tmp_path, [failed_record(mode=mode) for mode in ("tcp", "tfo")])
    paths = write_report(read_measured(tmp_path))
    assert [path.suffix for path in paths] == [*[".parquet"] * 3, ".json", ".txt", ".md", ".html"]
    assert (tmp_path / "observations.txt").read_text() == ""
    assert "2 loads failed" in page_of(tmp_path).text


def test_a_folder_without_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no journal\.jsonl"):
        write_report(read_measured(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_take_figures_is_refused_with_a_hint(tmp_path: Path) -> None:
    write_results(tmp_path, ("wikipedia",), (200.0,), blocks=2)
    (tmp_path / "figures").touch()
    with pytest.raises(UsageError, match="cannot be written") as caught:
        write_figures(read_measured(tmp_path), ["svg"])
    assert caught.value.hint
