"""Treatments in the real laboratory: the packets of each treatment's loads show what the plan sets."""

from pathlib import Path

import polars as pl
import pytest
from program import Program
from small_pages import chain, document, page

import firstflight as ff
from firstflight.analysis.records import known
from firstflight.analysis.summary import read_measured
from firstflight.pages import LoadedPage

RTT_MS = 50.0

pytestmark = pytest.mark.usefixtures("emulator")

ONE_HOST = chain(3, hosts=1)
LARGE = page("large", document(body_bytes=60_000))
MANY = page(
    "many",
    document(),
    *(
        document(
            url=f"http://o0.test/{number}.png",
            kind="image",
            mime="image/png",
            initiator={"resource": 0, "via": "parser", "at_byte": 500},
        )
        for number in range(1, 5)
    ),
)


PATH = {"rtt": [RTT_MS], "down": "unlimited", "up": "unlimited"}


def run(folder: Path, loaded: LoadedPage, **keys: object) -> ff.Results:
    (folder / "page.json").write_text(loaded.page.to_json())
    return ff.run(pages=[str(folder / "page.json")], repeats=2, out=folder / "out", **PATH, **keys)  # type: ignore[arg-type]


def by_treatment(results: ff.Results, column: str) -> dict[str, list[object]]:
    """For each treatment, the sorted values that `column` has in its loads."""
    rows = results.loads.group_by("treatment").agg(pl.col(column).unique().sort())
    return dict(rows.iter_rows())


@pytest.mark.parametrize(
    ("loaded", "keys", "column", "seen"),
    [
        (
            ONE_HOST,
            {"compare": "keep_alive=true,false"},
            "connections",
            {"keep_alive=true": [1], "keep_alive=false": [3]},
        ),
        (
            MANY,
            {"compare": "http=1.1,2", "scheme": "https"},
            "connections",
            {"http=1.1": [5], "http=2": [1]},
        ),
        (
            ONE_HOST,
            {"compare": "cookies=warm,cold"},
            "tfo_accepted",
            {"cookies=warm": [1], "cookies=cold": [0]},
        ),
        (
            ONE_HOST,
            {"compare": "client=loader,curl"},
            "client",
            {"client=loader": ["loader"], "client=curl": ["curl"]},
        ),
    ],
)
def test_the_loads_of_a_treatment_do_what_it_says(
    tmp_path: Path, loaded: LoadedPage, keys: dict[str, str], column: str, seen: dict[str, list[object]]
) -> None:
    results = run(tmp_path, loaded, **keys)
    assert by_treatment(results, column) == seen
    [cell] = results.summary["cells"]
    assert (cell["n"], cell["proof"]["ok"]) == (2, True)
    assert [cell["baseline"], cell["treatment"]] == list(seen)


def test_treatments_of_two_schemes_load_the_same_page_under_each(tmp_path: Path) -> None:
    results = run(tmp_path, ONE_HOST, compare="scheme=http,https")
    [cell] = results.summary["cells"]
    assert (cell["n"], cell["proof"]["ok"]) == (2, True)
    loads = results.loads.select("load_id", "treatment")
    origins = results.connections.join(loads, on="load_id").select("treatment", "origin").unique()
    assert set(origins.iter_rows()) == {
        ("scheme=http", "http://o0.test"),
        ("scheme=https", "https://o0.test"),
    }


def test_a_larger_initial_window_saves_the_round_trips_that_it_should(tmp_path: Path) -> None:
    """60 kB are 42 segments: four flights of 4, 8, 16 and 14 segments, or one flight of 42."""
    results = run(tmp_path, LARGE, compare="initial_window=4,50")
    [cell] = results.summary["cells"]
    assert cell["proof"]["ok"]
    saved_ms = known(cell["baseline_ms"]["median"]) - known(cell["treatment_ms"]["median"])
    assert 2.5 * RTT_MS < saved_ms < 3.9 * RTT_MS


def test_a_version_of_a_page_with_one_more_request_in_its_chain_is_slower_by_a_round_trip(
    tmp_path: Path,
) -> None:
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, length in zip(files, (2, 3), strict=True):
        file.write_text(chain(length, hosts=1).page.to_json())
    versions = f"page={files[0]},{files[1]}"
    results = ff.run(compare=versions, repeats=6, out=tmp_path / "out", say=lambda _: None, **PATH)  # type: ignore[arg-type]
    [cell] = results.summary["cells"]
    assert (cell["n"], cell["proof"]["ok"], cell["verdict"]) == (6, True, "slower")
    more = {name: known(measure["difference"]["point"]) for name, measure in cell["measures"].items()}
    assert 0.8 * RTT_MS < more["plt_ms"] < 1.5 * RTT_MS
    assert (more["requests"], more["connections"]) == (1, 0)
    [found] = read_measured(tmp_path / "out").explanations
    assert [step.fate for step in found.steps] == ["both", "both", "added"]


def test_a_plan_names_combinations_and_the_report_compares_each_with_the_first(program: Program) -> None:
    Path(program.folder / "plan.toml").write_text(
        "".join(
            f'[[treatment]]\nname = "{name}"\nmode = "{mode}"\ninitial_window = {window}\n'
            for name, mode, window in (("small", "tcp", 4), ("large", "tcp", 50), ("both", "tfo", 50))
        )
    )
    (program.folder / "page.json").write_text(LARGE.page.to_json())
    path = ("--rtt", f"{RTT_MS:g}", "--down", "unlimited", "--up", "unlimited", "--repeats", "2")
    ended = program("run", "page.json", *path, "--plan", "plan.toml", "--out", "out", "--quiet")
    assert ended.code == 0, ended.err
    results = ff.open_results(program.folder / "out")
    cells = results.summary["cells"]
    assert [(cell["baseline"], cell["treatment"]) for cell in cells] == [
        ("small", "both"),
        ("small", "large"),
    ]
    assert all(cell["proof"]["ok"] for cell in cells)
    both, large = (known(cell["treatment_ms"]["median"]) for cell in cells)
    assert 0.5 * RTT_MS < large - both < 1.5 * RTT_MS, "Fast Open saves the handshake"
    assert by_treatment(results, "tfo_accepted") == {"small": [0], "large": [0], "both": [1]}
    assert (program.folder / "out" / "report.html").is_file()
