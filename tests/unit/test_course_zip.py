"""The archive that a student hands in: its files, figure names and texts, and what firstflight refuses."""

import zipfile
from pathlib import Path

import pytest
from synthetic_results import PAGES, load_record, write_journal, write_results

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.cli import main
from firstflight.course.answers import PageAnswers, render_answers
from firstflight.course.handin import draw_course_figures, timing
from firstflight.pages.profile import read_pages_list
from firstflight.results import LoadRecord

NAME = "en.wikipedia.orgwikiTransmission_Control_Protocol"


def blocks(**changes: object) -> list[LoadRecord]:
    return [
        load_record(mode=mode, block=block, **changes)  # type: ignore[arg-type]
        for block in range(2)
        for mode in ("tcp", "tfo")
    ]


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_results(tmp_path_factory.mktemp("run") / "results", ("wikipedia",), (20.0,), blocks=2)
    assert main(["report", str(folder), "--quiet", "--course-zip", "gburdell3"]) == 0
    return folder


def test_the_archive_holds_table_answers_pages_and_figures(folder: Path) -> None:
    with zipfile.ZipFile(folder / "gburdell3_p3.zip") as archive:
        names = archive.namelist()
        content = {name: archive.read(name) for name in names}
    figure = f"output-figures/timing-{NAME}-20.png"
    assert names == ["observations.txt", "analysis.md", "gburdell3.pages", figure]
    assert content["gburdell3.pages"].decode() == PAGES["wikipedia"][0] + "\n"
    assert content["observations.txt"] == (folder / "observations.txt").read_bytes()
    assert content["analysis.md"].startswith(b"# ") and b"## wikipedia" in content["analysis.md"]
    assert content[figure].startswith(b"\x89PNG")


def test_what_the_course_calls_pages_can_be_read_back(folder: Path) -> None:
    assert read_pages_list(folder / "gburdell3.pages") == [PAGES["wikipedia"][0]]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("a/b", "cannot be part of a file's name"),
        ("../up", "cannot be part of a file's name"),
        ("", "cannot be part of a file's name"),
        ("-x", "cannot be part of a file's name"),
        ("gburdell3", "is there already"),
    ],
)
def test_a_bad_name_is_refused_before_anything_is_made(
    folder: Path, name: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "report.html").stat().st_mtime_ns
    assert main(["report", str(folder), f"--course-zip={name}"]) == 2
    said = capsys.readouterr().err
    assert error in said and "hint: " in said
    assert (folder / "report.html").stat().st_mtime_ns == before


def test_a_run_without_proof_has_nothing_to_hand_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_journal(tmp_path, blocks(tfo_offered=0, tfo_accepted=0))
    assert main(["report", str(tmp_path), "--course-zip", "x"]) == 2
    assert "no page has a pair of loads with proof" in capsys.readouterr().err
    assert not (tmp_path / "x_p3.zip").exists()


def test_a_figure_has_the_originals_words_colours_and_order() -> None:
    (pair,) = cell_pairs(blocks())
    spec = timing(pair, NAME).to_dict()
    assert spec["title"]["text"] == f"TFO Timing Breakdown: {NAME} at 100 ms RTT"
    encoding = spec["encoding"]
    assert (encoding["x"]["title"], encoding["y"]["title"]) == ("Time (ms)", "Request Index")
    assert encoding["color"]["scale"] == {
        "domain": ["TFO Enabled", "TFO Disabled"],
        "range": ["red", "green"],
    }
    for mode in encoding["color"]["scale"]["domain"]:
        bars = [bar for bar in spec["datasets"][spec["data"]["name"]] if bar["mode"] == mode]
        assert len(bars) == PAGES["wikipedia"][1]
        assert [bar["end"] for bar in bars] == sorted(bar["end"] for bar in bars)
        assert [int(bar["low"]) for bar in bars] == list(range(len(bars)))


def test_figures_of_pages_whose_names_become_the_same_are_all_kept(tmp_path: Path) -> None:
    records = [record for page in ("a", "b") for record in blocks(page=page)]
    for record in records:
        separator = "/" if record["load"]["page"] == "a" else ""
        record["requests"][0]["url"] = f"http://x.example/1{separator}2"
        record["load"]["load_id"] = record["load"]["page"] + record["load"]["load_id"]
    pairs = cell_pairs(records)
    paths = draw_course_figures(tmp_path, pairs, summarize_pairs(pairs)["cells"])
    assert [path.name for path in paths] == ["timing-x.example12-100.png", "timing-x.example12-100-2.png"]


def test_nothing_of_a_strangers_text_becomes_markup_in_the_answers() -> None:
    hostile = "<script>[x](http://evil)\n# \u202eX`"
    shown = render_answers(
        [PageAnswers(hostile, [("Heading", [f"At {hostile}; `--rtt 20,100` would tell."])])]
    )
    assert "\n# " not in shown[2:]
    assert "<script" not in shown.replace("\\<", "") and "\u202e" not in shown
    assert "`--rtt 20,100`" in shown
