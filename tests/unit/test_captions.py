"""Each table, figure, page and document states every setting on which its numbers depend."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from synthetic_results import load_record, write_journal, write_results

from firstflight.analysis import cell_pairs, words
from firstflight.analysis.cells import CellKey
from firstflight.analysis.summary import read_measured
from firstflight.cli import main
from firstflight.course.handin import timing
from firstflight.report.console import print_summary
from firstflight.report.sweep import draw_sweep, print_sweep, write_sweep
from firstflight.report.write import write_figures, write_report
from firstflight.results.schema import TREATMENT

SAID = (
    "Access link 4/0.256 Mbit/s",
    "loader",
    "emulate",
    "scheme http",
    "HTTP/1.1",
    "keep-alive",
    "warm cookies",
)
CELL: Any = cell_pairs([load_record()])[0].setting

OTHERWISE: dict[str, tuple[dict[str, Any], str]] = {
    "engine": ({"engine": "simulate"}, "simulate"),
    "client": ({"client": "wget2"}, "wget2"),
    "cookies": ({"cookies": "pool:3"}, "pool:3 cookies"),
    "topology": ({"topology": "star"}, "Star"),
    "rtt_ms": ({}, ""),
    "down_mbps": ({"down_mbps": 8.0}, "8/0.256 Mbit/s"),
    "up_mbps": ({"up_mbps": None}, "4/unlimited Mbit/s"),
    "loss": ({"loss": 0.01}, "loss 1 %"),
    "loss_burst": ({"loss": 0.01, "loss_burst": 4.0, "loss_in_burst": 1.0}, "in bursts of 4 that lose 100 %"),
    "loss_in_burst": (
        {"loss": 0.01, "loss_burst": 4.0, "loss_in_burst": 0.5},
        "in bursts of 4 that lose 50 %",
    ),
    "jitter_ms": ({"jitter_ms": 3.0}, "jitter 3 ms"),
    "reorder": ({"jitter_ms": 3.0, "reorder": True}, "jitter 3 ms that reorders"),
    "duplicate": ({"duplicate": 0.1}, "10 % twice"),
    "down_trace": ({"down_trace": "link.down 0123"}, "trace link.down 0123"),
    "up_trace": ({"up_trace": "link.up 0123"}, "trace link.up 0123"),
    "queue": ({"queue": "codel"}, "queue codel"),
    "ecn": ({"queue": "codel", "ecn": True}, "queue codel with ECN"),
    "middlebox": ({"middlebox": "drop-data:0.3"}, "middlebox drop-data:0.3"),
    "initial_window": ({"initial_window": 3}, "initial window 3"),
    "congestion_control": ({"congestion_control": "reno"}, "reno"),
    "ip": ({"ip": "6"}, "IPv6"),
    "scheme": ({"scheme": "https"}, "scheme https"),
    "http": ({"scheme": "https", "http": "2"}, "HTTP/2"),
    "priorities": ({"http": "2", "priorities": "rfc9218"}, "priorities of RFC 9218"),
    "post_quantum": ({"post_quantum": False}, "no post-quantum key share"),
    "certificate_bytes": ({"certificate_bytes": 4_000}, "certificates of 4000 bytes"),
    "keep_alive": ({"keep_alive": False}, "a connection per request"),
    "origin_rtt": ({"origin_rtt": "recorded"}, "origins as far as recorded"),
    "lookups": ({"lookups": True}, "with lookups"),
    "server_time": ({"server_time": False}, "servers at once"),
    "processing": ({"processing": 2.0}, "processing times 2"),
    "determinism": ({"determinism": False}, "not fixed"),
    "browser": ({"browser": "/opt/chrome/chrome"}, "chrome"),
    "what_if": ({"what_if": "syn-payload=4"}, "what if syn-payload=4"),
}
"""By column: another value of it, and how the caption must then state it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_results(tmp_path_factory.mktemp("results") / "x", ("wikipedia",), (20.0, 100.0), 3)
    measured = read_measured(folder)
    write_report(measured)
    write_figures(measured, ["svg"])
    return folder


def shown(print_it: Any, found: object) -> str:  # noqa: ANN401
    console = Console(width=160, force_terminal=False, record=True, quiet=False)
    with console.capture() as captured:
        print_it(found, console)
    return re.sub(r"\s+", " ", captured.get())


def says_all(text: str, *, but: tuple[str, ...] = ()) -> None:
    assert [part for part in SAID if part not in text and part not in but] == []


def test_a_caption_says_all_that_decides_a_number() -> None:
    says_all(words.caption(CELL))


def test_every_treatment_is_tried_below() -> None:
    assert OTHERWISE.keys() == {column.name for column in TREATMENT}


@pytest.mark.parametrize("column", [name for name in OTHERWISE if name != "rtt_ms"])
def test_a_treatment_that_is_not_as_usual_is_in_the_caption(column: str) -> None:
    changes, text = OTHERWISE[column]
    assert text in words.caption(CELL | changes)
    assert words.caption(CELL | changes) != words.caption(CELL)


def test_a_cell_is_known_by_every_treatment() -> None:
    load = load_record()["load"]
    key = CellKey.of(load).factors
    assert {*key, "cookies"} == {column.name for column in TREATMENT}
    assert key.items() <= load.items()


def test_a_recorded_scheme_says_what_it_was() -> None:
    cell = CELL | {"scheme": "recorded"}
    assert "scheme recorded (http)" in words.caption(cell)
    assert "scheme recorded (https)" in words.caption(cell | {"url": "https://a.test/"})
    assert "scheme recorded," in words.caption(cell | {"url": None})


def test_a_browser_negotiates_the_version_of_http() -> None:
    assert "HTTP version negotiated" in words.caption(CELL | {"client": "chromium", "scheme": "recorded"})
    assert "HTTP/1.1" in words.caption(CELL | {"client": "chromium"})


def test_an_old_journal_whose_plan_says_nothing_is_said_to_say_nothing() -> None:
    unknown = dict.fromkeys(("scheme", "http", "keep_alive", "queue"))
    assert "scheme not known, HTTP version not known, keep-alive not known" in words.caption(CELL | unknown)


def test_what_differs_among_cells_is_named() -> None:
    said = words.caption(CELL, CELL | {"cookies": "cold", "down_mbps": 8.0})
    assert (
        said
        == "loader, emulate, scheme http, HTTP/1.1, keep-alive; different by row or panel: link and cookies"
    )


def test_the_table_on_the_terminal(folder: Path) -> None:
    says_all(shown(print_summary, json.loads((folder / "summary.json").read_text())))


def test_every_figure(folder: Path) -> None:
    figures = sorted((folder / "figures").glob("*.svg"))
    assert len(figures) >= 4
    for figure in figures:
        says_all(figure.read_text())


def test_the_page_in_its_tables_and_waterfalls(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    [table] = re.findall(r"<caption>(.*?PLT: medians.*?)</caption>", page, re.DOTALL)
    says_all(table)
    waterfalls = re.findall(r'<details class="waterfall".*?</p>', page, re.DOTALL)
    assert len(waterfalls) == 2
    for waterfall in waterfalls:
        says_all(waterfall)


def test_the_page_lets_nothing_change_its_base_or_be_sent(folder: Path) -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', (folder / "report.html").read_text())
    assert {"default-src 'none'", "base-uri 'none'", "form-action 'none'"} <= set(policy.split("; "))


def test_json_has_every_treatment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads((folder / "summary.json").read_text())
    assert main(["report", str(folder), "--json"]) == 0
    for document in (written, json.loads(capsys.readouterr().out)):
        for cell in document["cells"]:
            assert {column.name for column in TREATMENT} <= cell.keys()
            assert (cell["scheme"], cell["http"], cell["keep_alive"]) == ("http", "1.1", True)
            says_all(cell["caption"])


def test_figures_for_the_course(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [pair, *_] = cell_pairs([load_record(mode=mode) for mode in ("tcp", "tfo")])
    says_all(timing(pair, "wikipedia").to_json())


def test_a_sweep_on_the_terminal_in_its_figure_and_as_json(tmp_path: Path) -> None:
    loads = [
        load_record(mode=mode, rtt_ms=rtt, block=block)
        for block, rtt in enumerate((20.0, 100.0))
        for mode in ("tcp", "tfo")
    ]
    several = [{**one, "requests": [], "connections": []} for one in loads]
    folder = write_journal(tmp_path, several)  # type: ignore[arg-type]
    sweep = write_sweep(folder)
    says_all(shown(print_sweep, sweep))
    [figure, *_] = draw_sweep(folder, sweep)
    says_all(figure.read_text())
    for path in json.loads((folder / "sweep.json").read_text())["paths"]:
        assert {column.name for column in TREATMENT} <= path.keys()
    says_all(json.loads((folder / "sweep.json").read_text())["caption"])


def test_a_comparison_of_two_results(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "agreement.svg"
    assert main(["compare", str(folder), "paper", "--figure", str(figure)]) == 0
    says_all(re.sub(r"\s+", " ", capsys.readouterr().out))
    text = re.sub(r"<[^>]*>", " ", figure.read_text())
    says_all(re.sub(r"\s+", " ", text))
    assert main(["compare", str(folder), str(folder), "--json"]) == 0
    captions = json.loads(capsys.readouterr().out)["captions"]
    says_all(captions["a"])
    says_all(captions["b"])
