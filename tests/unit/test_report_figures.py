import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
import vl_convert
from synthetic_results import PAGES, RTTS_MS, load_record

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.analysis.critical_path.explanation import median_load
from firstflight.analysis.summary import Evidence
from firstflight.published import published_table
from firstflight.report.figures import overviews
from firstflight.report.figures.draw import draw_figures, waterfall_name
from firstflight.report.figures.overviews import (
    improvement_by_rate,
    improvement_by_rtt,
    plt_by_rtt,
    plt_distribution,
)
from firstflight.report.figures.waterfall import LABELLED_ROWS, waterfall
from firstflight.report.waterfalls import axis, panel, phases, row_order, rows
from firstflight.results import LoadRecord


def loads(
    *pages: str, rtts_ms: tuple[float, ...] = (200.0,), blocks: int = 2, **changes: object
) -> list[LoadRecord]:
    return [
        load_record(page, rtt_ms, mode, block, **changes)
        for page in pages
        for rtt_ms in rtts_ms
        for block in range(blocks)
        for mode in ("tcp", "tfo")
    ]


def _numbered(records: list[LoadRecord]) -> list[LoadRecord]:
    """The records with names that differ."""
    for number, record in enumerate(records):
        record["load"]["load_id"] = str(number)
    return records


def draw(records: list[LoadRecord]) -> dict[str, Any]:
    pairs = cell_pairs(records)
    return waterfall(pairs[0], summarize_pairs(pairs)["cells"][0])


def texts(spec: dict[str, Any]) -> list[str]:
    tree = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec))
    return [element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text")]


def request(**times: float | None) -> Any:  # noqa: ANN401
    names = ("queued_ms", "connect_start_ms", "connect_end_ms", "sent_ms", "first_byte_ms", "end_ms")
    return {
        "index": 0,
        "url": "http://a/",
        **dict.fromkeys(names),
        **{f"{k}_ms": v for k, v in times.items()},
    }


def test_phases_follow_one_another_without_a_gap() -> None:
    found = phases(request(queued=1, connect_start=2, connect_end=102, sent=103, first_byte=300, end=400))
    assert found == {"queued": (1, 2), "connect": (2, 103), "wait": (103, 300), "receive": (300, 400)}


def test_with_tfo_connecting_ends_when_the_request_is_written_not_with_the_handshake() -> None:
    found = phases(request(queued=0, connect_start=0, connect_end=100, sent=0.2, first_byte=101, end=110))
    assert found["connect"] == (0, 0.2)
    assert found["wait"] == (0.2, 101)


def test_a_request_on_an_open_connection_has_no_handshake() -> None:
    found = phases(request(queued=5, sent=50, first_byte=60, end=61))
    assert found["queued"] == (5, 50)
    assert found["connect"] == (50, 50)


def test_a_request_that_broke_off_has_no_later_phase() -> None:
    assert set(phases(request(queued=5, connect_start=6, connect_end=7, sent=7))) == {"queued", "connect"}
    assert phases(request()) == {}


def test_one_row_is_one_url_in_both_modes_even_when_asked_for_twice() -> None:
    first: list[Any] = [{"index": n, "url": url} for n, url in enumerate(["/", "/a", "/a", "/b"])]
    second: list[Any] = [{"index": n, "url": url} for n, url in enumerate(["/", "/b", "/a", "/a"])]
    assert set(rows(first)) == set(rows(second))
    assert rows(second)["/a", 1]["index"] == 3


def test_rows_are_ordered_by_start_without_tfo_then_what_only_the_other_asked_for() -> None:
    late: Any = request(queued=9) | {"url": "/late"}
    early: Any = request(queued=1) | {"url": "/early", "index": 1}
    other: Any = request(queued=0) | {"url": "/other"}
    assert row_order([late, early], [other, early]) == [("/early", 0), ("/late", 0), ("/other", 0)]


def test_the_median_load_is_the_one_nearest_the_median() -> None:
    records = [load_record(block=n, plt_ms=p) for n, p in enumerate([100.0, 900.0, 210.0, 205.0])]
    assert median_load(records)["load"]["block"] == 2
    assert median_load(records[:1])["load"]["block"] == 0


def test_a_waterfall_shows_both_modes_on_common_rows() -> None:
    spec = draw(loads("wikipedia"))
    assert [panel["title"]["text"] for panel in spec["hconcat"]] == ["without TFO", "with TFO"]
    data = spec["datasets"]
    assert {r["row"] for r in data["baseline phases"]} == {r["row"] for r in data["treatment phases"]}
    assert sum(r["phase"] == "connect" and r["end"] - r["start"] > 0.1 for r in data["baseline phases"]) == 22
    assert not any(r["phase"] == "connect" and r["end"] - r["start"] > 0.1 for r in data["treatment phases"])


def test_the_title_says_page_rtt_both_times_and_the_effect() -> None:
    pattern = (
        r"en\.wikipedia\.org/wiki/.* at 200 ms RTT: 3\.13 s without TFO, "
        r"2\.53 s with TFO \(\+19\.\d %, too few repeats\)"
    )
    assert re.fullmatch(pattern, draw(loads("wikipedia"))["title"]["text"])


@pytest.mark.parametrize("page", ["wikipedia", "wsj"])
def test_rows_carry_urls_while_there_is_room_and_numbers_beyond(page: str) -> None:
    found = texts(draw(loads(page)))
    assert any("item-2" in text for text in found) == (PAGES[page][1] <= LABELLED_ROWS)
    assert ("130" in found) == (PAGES[page][1] > LABELLED_ROWS)


def test_a_failed_request_is_marked() -> None:
    records = loads("wikipedia")
    for record in records:
        record["requests"][3] |= {"end_ms": None, "first_byte_ms": None, "status": None}
    (broken,) = draw(records)["datasets"]["baseline broken"]
    assert broken["start"] > 0


def test_a_hostile_url_stays_text() -> None:
    records = loads("wikipedia")
    for record in records:
        record["requests"][0]["url"] = "http://x/</text><script>alert(1)</script>"
    spec = draw(records)
    assert "<script" not in vl_convert.vegalite_to_svg(spec)
    assert any("script" in text for text in texts(spec))


def test_improvement_stands_beside_the_paper_s() -> None:
    cells = summarize_pairs(cell_pairs(loads("amazon", "wsj", rtts_ms=RTTS_MS)))["cells"]
    rows = improvement_by_rtt(cells)["datasets"]["rows"]
    paper = {(r["panel"], r["at"]): r["point"] for r in rows if "paper" in r["source"]}
    assert len(paper) == 6
    assert paper["amazon", 200.0] == pytest.approx(10.7, abs=0.1)
    assert sum(r["source"] == "measured" for r in rows) == 6
    assert {"amazon", "wsj", "measured", "the paper, Table 1"} <= set(texts(improvement_by_rtt(cells)))


def test_a_page_the_paper_does_not_have_stands_alone() -> None:
    cells = summarize_pairs(cell_pairs(loads("mine")))["cells"]
    assert [r["source"] for r in improvement_by_rtt(cells)["datasets"]["rows"]] == ["measured"]


def test_variants_of_a_cell_get_a_panel_each() -> None:
    records = [*loads("wsj"), *loads("wsj", topology="star", load_id="x")]
    cells = summarize_pairs(cell_pairs(_numbered(records)))["cells"]
    assert {r["panel"] for r in plt_by_rtt(cells)["datasets"]["rows"]} == {"wsj (access)", "wsj (star)"}


def test_improvement_by_rate_has_a_panel_per_page_and_rtt() -> None:
    records = [
        record for rate in (4.0, 10.0) for record in loads("wsj", rtts_ms=(20.0, 100.0), down_mbps=rate)
    ]
    cells = summarize_pairs(cell_pairs(_numbered(records)))["cells"]
    rows = improvement_by_rate(cells)["datasets"]["rows"]
    assert {(r["panel"], r["at"]) for r in rows} == {
        (f"wsj ({rtt} ms)", rate) for rtt in (20, 100) for rate in (4.0, 10.0)
    }
    assert {r["source"] for r in rows} == {"measured"}


def test_every_load_is_a_dot_beside_the_median_without_tfo_while_they_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = cell_pairs(loads("wikipedia", blocks=5))
    rows = plt_distribution(pairs, summarize_pairs(pairs)["cells"])["datasets"]["rows"]
    dots = {
        side: [r["low"] for r in rows if "plt" in r and r["side"] == side]
        for side in ("without TFO", "with TFO")
    }
    assert sorted(dots["without TFO"])[2] == pytest.approx(0)
    assert len(dots["with TFO"]) == 5
    assert max(dots["with TFO"]) < -10
    monkeypatch.setattr(overviews, "MOST_DOTS", 9)
    rows = plt_distribution(pairs, summarize_pairs(pairs)["cells"])["datasets"]["rows"]
    assert [r["side"] for r in rows] == ["without TFO", "with TFO"]


def test_every_figure_is_valid_vega_lite() -> None:
    pairs = cell_pairs(loads("wikipedia"))
    cells = summarize_pairs(pairs)["cells"]
    drawn = (waterfall(pairs[0], cells[0]), improvement_by_rtt(cells), improvement_by_rate(cells))
    for spec in (*drawn, plt_by_rtt(cells), plt_distribution(pairs, cells), panel(), axis()):
        alt.Chart.from_json(json.dumps(spec))


def test_figures_are_drawn_as_svg_and_png(tmp_path: Path) -> None:
    pairs = cell_pairs(loads("wikipedia"))
    told: list[str] = []
    paths = draw_figures(tmp_path, Evidence(pairs, summarize_pairs(pairs)), progress=told.append)
    names = ("improvement-by-rtt", "plt-by-rtt", "plt-distribution", "waterfall-wikipedia-200ms")
    assert [path.name for path in paths] == [f"{name}.{end}" for name in names for end in ("svg", "png")]
    assert told == [f"figure {name}" for name in names]
    assert all(path.read_bytes().startswith((b"<svg", b"\x89PNG")) for path in paths)


def test_without_proof_no_effect_is_drawn_or_said(tmp_path: Path) -> None:
    pairs = cell_pairs(loads("wikipedia", tfo_offered=0, tfo_accepted=0))
    summary = summarize_pairs(pairs)
    assert waterfall(pairs[0], summary["cells"][0])["title"]["text"].endswith("(not proved)")
    assert "improvement-by-rtt.svg" not in [
        path.name for path in draw_figures(tmp_path, Evidence(pairs, summary))
    ]


def test_without_a_pair_only_the_load_times_are_drawn(tmp_path: Path) -> None:
    pairs = cell_pairs([load_record(mode="tcp", block=n) for n in range(2)])
    paths = draw_figures(tmp_path, Evidence(pairs, summarize_pairs(pairs)))
    assert [path.name for path in paths] == ["plt-by-rtt.svg", "plt-by-rtt.png"]


@pytest.mark.parametrize(
    ("page", "rtt_ms", "variant", "name"),
    [
        ("wikipedia", 200.0, "", "waterfall-wikipedia-200ms"),
        ("a-b", 62.5, "4.0mbit-down star", "waterfall-a_b-62.5ms-4.0mbit_down-star"),
        ("../../etc/x", 1.0, "", "waterfall-.._.._etc_x-1ms"),
    ],
)
def test_file_names_cannot_lead_out_of_the_folder(page: str, rtt_ms: float, variant: str, name: str) -> None:
    cell: Any = {"page": page, "rtt_ms": rtt_ms}
    assert waterfall_name(cell, variant) == name


def test_the_paper_s_percentages_are_those_of_its_times() -> None:
    printed = [4, 10, 11, 4, 6, 18, 5, 7, 11, 7, 16, 41]
    recomputed = [100 * cell.improvement for cell in published_table("paper").cells]
    assert recomputed == pytest.approx(printed, abs=0.6)
