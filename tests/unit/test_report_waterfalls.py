from functools import partial
from pathlib import Path
from typing import Any

import handmade_load

from firstflight.analysis import CellPair, cell_pairs, summarize_pairs
from firstflight.analysis.critical_path.explanation import explain
from firstflight.report.waterfalls import LONGEST_URL, Labels, Waterfall, waterfalls
from firstflight.results import Journal, LoadRecord, journal_path
from firstflight.results.files import read_profile
from firstflight.text import visible


def made(pairs: list[CellPair], folder: Path) -> tuple[Labels, Waterfall]:
    explanations = explain(pairs, partial(read_profile, folder))
    labels, (drawn,) = waterfalls(pairs, summarize_pairs(pairs)["cells"], explanations)
    return labels["hand"], drawn


def sides(drawn: Waterfall) -> Any:  # noqa: ANN401
    return drawn.data["sides"]


def pairs_of(folder: Path) -> list[CellPair]:
    return cell_pairs(Journal(journal_path(handmade_load.results(folder))).records())


def test_a_waterfall_has_every_request_of_both_modes_with_its_moments(tmp_path: Path) -> None:
    labels, drawn = made(pairs_of(tmp_path), tmp_path)
    assert labels.to_json() == {
        "origins": ["http://a.example"],
        "labels": [("http://a.example/0", 0, "image/png"), ("http://a.example/1", 0, "image/png")],
    }
    assert drawn.data["rows"] == [0, 1]
    tcp, tfo = (sides(drawn)[side] for side in ("baseline", "treatment"))
    assert (tcp["plt"], tfo["plt"]) == (420.0, 220.0)
    assert tcp["requests"] == [
        [0, 0.0, 0.0, 100.0, 220.0, 220.0, 0, 200, 700],
        [1, 220.0, 220.0, 320.0, 420.0, 420.0, 1, 200, 700],
    ]


def test_the_critical_path_goes_with_the_load_that_is_drawn(tmp_path: Path) -> None:
    _, drawn = made(pairs_of(tmp_path), tmp_path)
    path = sides(drawn)["baseline"]["path"]
    assert (path[0][2], path[-1][3]) == (0.0, 420.0)
    assert [step[0] for step in path if step[1] == "TCP handshake"] == [0, 1]
    assert not [step for step in sides(drawn)["treatment"]["path"] if step[1] == "TCP handshake"]


def test_without_a_profile_there_is_no_critical_path_but_a_waterfall(tmp_path: Path) -> None:
    pairs = pairs_of(tmp_path)
    _, (drawn,) = waterfalls(pairs, summarize_pairs(pairs)["cells"])
    assert sides(drawn)["baseline"]["path"] == []
    assert "block 0" in drawn.small_print


def test_a_url_is_labelled_once_however_many_waterfalls_show_it() -> None:
    records: list[LoadRecord] = [
        handmade_load.chain(mode, rtt_ms=rtt_ms, load_id=f"{mode}{rtt_ms}")
        for mode in ("tcp", "tfo")
        for rtt_ms in (20.0, 100.0)
    ]
    pairs = cell_pairs(records)
    labels, drawn = waterfalls(pairs, summarize_pairs(pairs)["cells"])
    assert len(drawn) == 2
    assert len(labels["hand"].labels) == 2


def test_hostile_urls_are_cut_and_all_that_is_in_them_is_seen() -> None:
    records = [handmade_load.chain(mode) for mode in ("tcp", "tfo")]
    for record in records:
        record["requests"][0]["url"] = "http://a.example/\u202egpj.exe\u2066\ud800\x00" + "x" * 8000
    pairs = cell_pairs(records)
    labels, _ = waterfalls(pairs, summarize_pairs(pairs)["cells"])
    url = labels["hand"].labels[0][0]
    assert len(url) == LONGEST_URL
    assert url.startswith("http://a.example/\ufffdgpj.exe\ufffd\ufffd\ufffdxx")


def test_what_cannot_be_seen_is_shown_as_one_character_and_what_can_stays() -> None:
    assert visible("a\u200fb\x1bc\u00add\u2028") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert (
        visible("\u05e9\u05dc\u05d5\u05dd caf\u00e9 \u65e5\u672c")
        == "\u05e9\u05dc\u05d5\u05dd caf\u00e9 \u65e5\u672c"
    )
