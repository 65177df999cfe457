import json
import re
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from handmade_load import PAGE, by, chain, page, results
from rich.console import Console
from synthetic_results import write_journal

from firstflight.analysis import cell_pairs
from firstflight.analysis.critical_path.explanation import Explanation, explain, median_load
from firstflight.analysis.summary import read_measured
from firstflight.model.page import Page
from firstflight.report.console import explanation_lines, print_explanations
from firstflight.report.figures.overviews import critical_paths, overviews
from firstflight.report.write import write_figures, write_report
from firstflight.results import LoadRecord
from firstflight.results.files import read_profile, write_profiles


def explained(*records: LoadRecord, of: Page | None = PAGE) -> list[Explanation]:
    return explain(cell_pairs(records), lambda _: of)


def shown(found: list[Explanation]) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        print_explanations(found, console)
    return capture.get()


def test_the_bound_and_what_was_measured_stand_side_by_side() -> None:
    (found,) = explained(chain("tcp"), chain("tfo"))
    assert [found.could_save_ms, found.saved_ms] == pytest.approx([200, 200])
    assert found.loads["treatment"].path.could_save_ms == 0


def test_the_words_name_every_part_the_requests_and_the_savings() -> None:
    text = shown(explained(chain("tcp"), chain("tfo")))
    assert "without TFO 0.420 s = TCP handshake 200 ms (2 of them) + round trip 200 ms + server 20 ms" in text
    assert "with TFO    0.220 s = round trip 200 ms + server 20 ms" in text
    assert "0 a.example/0 (220 ms) > 1 a.example/1 (200 ms)" in text
    assert "TFO could save 200 ms at most: the path waited for 2 handshakes; measured: 200 ms." in text


def test_saving_more_than_the_bound_is_said_and_not_hidden() -> None:
    (found,) = explained(chain("tcp", extra_ms=50), chain("tfo"))
    assert "measured: 250 ms, more: " in list(explanation_lines(found))[-1]


def test_a_control_character_in_a_url_does_not_reach_the_terminal() -> None:
    hostile = Page(PAGE.name, (*PAGE.resources[:1], page({}, {"initiator": by(0)}).resources[1]))
    object.__setattr__(hostile.resources[1], "url", "http://a.example/\x1b[31m")
    assert "\x1b[31m" not in shown(explained(chain("tcp"), of=hostile))


def test_a_mode_without_loads_and_a_page_that_is_not_known_are_left_out() -> None:
    (found,) = explained(chain("tcp"))
    assert set(found.loads) == {"baseline"}
    assert found.saved_ms is None
    assert list(explanation_lines(found))[-1].endswith("2 handshakes.")
    assert explained(chain("tcp"), of=None) == []
    failed = chain("tcp")
    failed["load"] |= {"status": "failed", "plt_ms": None}
    assert explained(failed) == []


def test_the_load_nearest_the_median_stands_for_its_mode() -> None:
    records = [chain("tcp", block, extra_ms) for block, extra_ms in enumerate((90.0, 0.0, 30.0))]
    assert median_load(records)["load"]["block"] == 2
    (found,) = explained(*records)
    assert found.loads["baseline"].load_id == "hand-tcp-2"


def test_as_data_the_parts_of_each_request_add_up_to_the_plt() -> None:
    (found,) = explained(chain("tcp"), chain("tfo"))
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    for side in ("baseline", "treatment"):
        parts = [ms for of in data[side]["path"] for ms in of["spent_ms"].values()]
        assert (
            sum(parts)
            == pytest.approx(data[side]["plt_ms"])
            == pytest.approx(sum(data[side]["spent_ms"].values()))
        )
    assert [of["url"] for of in data["baseline"]["path"]] == ["http://a.example/0", "http://a.example/1"]


def bars(spec: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(row["side"], row["component"]): row["seconds"] for row in spec["datasets"]["rows"]}


def test_the_figure_has_a_bar_per_mode_whose_parts_are_the_path_s() -> None:
    spec = critical_paths(explained(chain("tcp"), chain("tfo")))
    found = bars(spec)
    assert found["without TFO", "TCP handshake"] == pytest.approx(0.2)
    assert ("with TFO", "TCP handshake") not in found
    assert sum(s for (mode, _), s in found.items() if mode == "with TFO") == pytest.approx(0.22)
    svg = vl_convert.vegalite_to_svg(spec)
    assert "0.420 s without TFO" in svg
    assert "0.220 s with TFO" in svg


def test_a_report_has_the_figure_and_a_sentence_per_cell(tmp_path: Path) -> None:
    measured = read_measured(results(tmp_path / "r"))
    assert "critical-path.svg" in [path.name for path in write_figures(measured, ["svg"])]
    write_report(measured)
    html = re.sub(r"\s+", " ", (tmp_path / "r" / "report.html").read_text())
    assert "Why: where the time went" in html
    assert "TFO could save 200 ms at most" in html


def test_a_folder_of_an_earlier_version_is_reported_without_explanation(tmp_path: Path) -> None:
    folder = write_journal(tmp_path / "old", [chain("tcp"), chain("tfo")])
    measured = read_measured(folder)
    assert measured.explanations == []
    assert "critical-path" not in dict(overviews(measured.evidence))


def test_profiles_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_profiles(tmp_path, [PAGE])
    assert read_profile(tmp_path, PAGE.name) == PAGE
    assert read_profile(tmp_path, "../" + PAGE.name) == PAGE, "a name leads nowhere but into the folder"
    assert read_profile(tmp_path, "other") is None
