"""Versions of a page as treatments: their pairing, their loads, and what firstflight reports of changes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from handmade_load import PAGE, chain
from synthetic_results import load_record, write_journal

from firstflight.analysis import cell_pairs, summarize_pairs, words
from firstflight.analysis.critical_path.steps import compare_paths
from firstflight.analysis.critical_path.walk import critical_path
from firstflight.cli import main
from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.catalogue import Catalogue, read_catalogue
from firstflight.experiment.plan_file import PlanFile, read_plan_file, resolve
from firstflight.experiment.run import run_experiment
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.setup import EngineSetup
from firstflight.experiment.workers.processes import Processes
from firstflight.model.load import recording_name
from firstflight.model.page import Initiator, Page, Resource
from firstflight.model.treatment import version_names
from firstflight.observer import Observer
from firstflight.results import Journal, LoadRecord
from firstflight.results.tables import load_row, write_tables

Shown = pytest.CaptureFixture[str]


def resource(path: str, kind: str = "image", by: int | None = 0, **fields: object) -> Resource:
    initiator = None if by is None else Initiator(by, "parser")
    made = Resource(f"http://shop.example{path}", "image", "image/png", 300, 300, 5_000, initiator=initiator)
    return replace(made, kind=kind, **fields)  # type: ignore[arg-type]


def shop(*more: Resource, name: str = "shop", **document: object) -> Page:
    fields: dict[str, object] = {"body_bytes": 20_000, "server_ms": 100.0, **document}
    resources = (
        resource("/", "document", None, **fields),
        resource("/app.css", "style", server_ms=10.0),
        resource("/pixel.png"),
        *more,
    )
    return Page(name, resources).checked()


BEFORE = shop()
AFTER = shop(resource("/more.css", "style", 1), server_ms=250.0)
NOISE = shop(server_ms=120.0, body_bytes=20_050)
OTHER = Page("other", (replace(BEFORE.resources[0], url="http://other.example/"),)).checked()
UNTIMED = Page("untimed", tuple(replace(one, server_ms=0.0) for one in BEFORE.resources)).checked()


@pytest.fixture(autouse=True)
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    every = {"a": BEFORE, "b": AFTER, "noise": NOISE, "copy": BEFORE, "other": OTHER, "untimed": UNTIMED}
    for name, page in every.items():
        Path(f"{name}.json").write_text(page.to_json())


class Listener(Observer):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(message)


def simulated(*flags: str, out: str = "out") -> int:
    return main(["run", *flags, "--engine", "simulate", "--rtt", "100", "--quiet", "--out", out])


def opened(versions: str, **keys: object) -> tuple[Catalogue, list[str]]:
    listener = Listener()
    return read_catalogue(resolve({"compare": f"page={versions}", **keys}), listener), listener.warnings


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        (["a.har", "b.har"], ["a.har", "b.har"]),
        (["old/site.har", "new/site.har"], ["old-site.har", "new-site.har"]),
        (["./x/site.har", "site.har"], ["x-site.har", "site.har"]),
        (["s.wacz#https://h.example/one", "s.wacz#https://h.example/two"], ["one", "two"]),
        ([f"{'x' * 50}/1", f"{'x' * 50}/2"], ["1", "2"]),
        (["x" * 60 + "1", "x" * 60 + "2"], ["1-" + "x" * 38, "2-" + "x" * 38]),
    ],
)
def test_versions_are_called_after_what_tells_their_files_apart(pages: list[str], names: list[str]) -> None:
    assert [*version_names(pages).values()] == names


def test_each_treatment_loads_its_own_version_and_a_resolved_plan_is_read_again() -> None:
    plan = resolve({"compare": "page = a.json, b.json"})
    assert plan.pages == ()
    assert plan.versions == {"a.json": "a.json", "b.json": "b.json"}
    assert {name: arm.pages for name, arm in plan.arms().items()} == {
        "page=a.json": ("a.json",),
        "page=b.json": ("b.json",),
    }
    assert plan.mode == ("tcp",)
    Path("plan.toml").write_text(plan.to_toml())
    assert resolve({}, read_plan_file(Path("plan.toml"))) == plan
    assert resolve({}, PlanFile(values=plan.to_keys())) == plan


def test_versions_stand_beside_other_keys_in_tables() -> None:
    tables = [
        {"name": "old", "page": "a.json"},
        {"name": "new", "page": "b.json"},
        {"name": "new-tfo", "page": "b.json", "mode": "tfo"},
    ]
    [block, *_] = Schedule(resolve({"treatment": tables, "repeats": 3}), ["shop"])
    assert {load.treatment: (load.version, load.mode) for load in block.loads} == {
        "old": ("a.json", "tcp"),
        "new": ("b.json", "tcp"),
        "new-tfo": ("b.json", "tfo"),
    }
    assert sorted(block.recordings) == ["shop--a.json", "shop--b.json"]
    assert len({(load.page, load.seed, load.path) for load in block.loads}) == 1


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"compare": "page=a.json,./a.json"}, 'compare: page: "./a.json" is given twice'),
        ({"compare": "page=a.json"}, "fewer than two values"),
        ({"compare": "pages=a.json,b.json"}, "compare: pages: treatments cannot differ in it"),
        ({"compare": "page=a.json,b.json", "pages": "a.json"}, "pages: the treatments name the pages"),
        ({"pages": []}, "pages: is empty"),
        (
            {"treatment": [{"name": "x", "page": "a.json"}, {"name": "y", "mode": "tfo"}]},
            "treatment: y names no page",
        ),
        ({"treatment": [{"name": "x", "page": 3}, {"name": "y", "page": "a"}]}, 'x: "3" is not a page'),
        ({"compare": "page=a.json,b.json", "mode": "tcp,tfo"}, "several modes are compared already"),
        ({"network": "cable,4g"}, "cable,4g names several networks, and a run has one"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        resolve(keys)


@pytest.mark.parametrize(
    ("versions", "problem"),
    [
        ("a.json,other.json", "are different pages: 0% of their requests match"),
        ("a.json,missing.json", "missing.json: no such file"),
        (
            "a.json,untimed.json",
            "untimed.json: the recording tells no times of servers, and that of a.json does",
        ),
    ],
)
def test_pages_that_are_no_versions_of_one_are_refused(versions: str, problem: str) -> None:
    with pytest.raises(PageInputError, match=problem):
        opened(versions)


def test_the_loader_loads_the_baseline_and_the_baseline_with_what_changed() -> None:
    catalogue, warnings = opened("a.json,b.json,noise.json")
    assert catalogue.names == ["shop"]
    base, changed, same = (
        catalogue.open(recording_name("shop", f"{name}.json")).page for name in ("a", "b", "noise")
    )
    assert base.resources == BEFORE.resources
    assert changed.resources[0].server_ms == 250.0
    assert changed.resources[-1].url.endswith("/more.css")
    assert same.resources == BEFORE.resources, "no more than two visits of one page differ"
    assert warnings == ["shop: a.json and noise.json differ by no more than two visits of one page do"]


def test_a_browser_is_served_each_recording_as_it_is() -> None:
    catalogue, _ = opened("a.json,noise.json", client="chromium")
    assert catalogue.open("shop--noise.json").page.resources[0].server_ms == 120.0


def test_equal_recordings_are_warned_of() -> None:
    assert opened("a.json,copy.json")[1] == ["shop: a.json and copy.json hold the same page"]


def test_versions_of_several_pages_are_paired_by_name() -> None:
    for folder, page in (("old", BEFORE), ("new", AFTER)):
        Path(folder).mkdir()
        for name in ("home", "cart", f"only-{folder}"):
            (Path(folder) / f"{name}.json").write_text(replace(page, name=name).to_json())
    catalogue, warnings = opened("old/*.json,new/*.json")
    assert catalogue.names == ["cart", "home"]
    assert warnings == ["left out, since not every version has them: only-new, only-old"]
    (Path("new") / "home.json").unlink()
    (Path("new") / "cart.json").unlink()
    Path("new/else.json").write_text(replace(AFTER, name="else").to_json())
    with pytest.raises(PageInputError, match=r"no name is in all: .* has cart, home, only-old"):
        opened("old/*.json,new/*.json")


def test_a_run_tells_both_sides_the_critical_paths_and_what_changed(capsys: Shown) -> None:
    assert simulated("--compare", "page=a.json,b.json") == 0
    told = " ".join(capsys.readouterr().out.split())
    for part in (
        "page=b.json against page=a.json: slower by",
        "page load (PLT)",
        "requests 3 4 +1",
        "server +150",
        "new request: ",
        "shop.example/more.css: new style",
        "shop.example: server time 100 to 250 ms",
    ):
        assert part in told
    cell = json.loads(Path("out/summary.json").read_text())["cells"][0]
    assert cell["differs"] == {"version": ["a.json", "b.json"]}
    measures = cell["measures"]
    assert measures["first_byte_ms"]["difference"]["point"] == pytest.approx(150, abs=1)
    assert measures["plt_ms"]["difference"]["point"] == pytest.approx(-cell["shift_ms"]["point"])
    assert "lcp_ms" not in measures, "no browser painted"
    report = Path("out/report.html").read_text()
    assert "Side by side" in report
    assert "from b.json" in report
    assert "changed in the page" in report
    loads = pl.read_parquet("out/loads.parquet")
    assert sorted(loads["version"]) == ["a.json", "b.json"]
    assert {file.name for file in Path("out/pages").iterdir()} == {"shop--a.json.json", "shop--b.json.json"}


def test_an_unchanged_page_is_the_same(capsys: Shown) -> None:
    assert simulated("--compare", "page=a.json,noise.json") == 0
    assert "same within 0 ms, exact" in capsys.readouterr().out


def test_what_an_explanation_holds_names_steps_and_changes(capsys: Shown) -> None:
    assert simulated("--compare", "page=a.json,b.json") == 0
    capsys.readouterr()
    assert main(["report", "out", "--explain", "--json", "--figures", "off"]) == 0
    [found] = json.loads(capsys.readouterr().out)["explanations"]
    assert [change["what"] for change in found["changes"]] == [["slower"], ["added"]]
    assert {step["url"]: step["fate"] for step in found["steps"] if step["is_changed"]} == {
        "http://shop.example/": "both",
        "http://shop.example/more.css": "added",
    }


def test_a_run_of_versions_goes_on_and_refuses_another_version(capsys: Shown) -> None:
    assert simulated("--compare", "page=a.json,b.json", "--loss", "0.01", "--repeats", "4") == 0
    journal = Path("out/journal.jsonl")
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:5]))
    assert main(["run", "--resume", "--quiet", "--out", "out"]) == 0
    loads = [record["load"] for record in Journal(journal).records()]
    assert len(loads) == 8
    assert {(load["block"], load["version"]) for load in loads} == {
        (block, f"{version}.json") for block in range(4) for version in "ab"
    }
    capsys.readouterr()
    Path("b.json").write_text(shop(resource("/another.css", "style", 1)).to_json())
    assert main(["run", "--resume", "--quiet", "--out", "out"]) == 2
    assert "the page shop--b.json has changed" in capsys.readouterr().err


def test_processes_load_versions_as_threads_do() -> None:
    plan = resolve(
        {"compare": "page=a.json,b.json", "rtt": "100", "loss": 0.01, "repeats": 2, "engine": "simulate"}
    )
    setup = EngineSetup.of(plan, Path("by-processes"))
    run_experiment(plan, read_catalogue(plan, Observer()), Processes(setup, 1), Path("by-processes"))
    by_threads = ["--compare", "page=a.json,b.json", "--loss", "0.01", "--repeats", "2"]
    assert simulated(*by_threads, out="by-threads") == 0
    assert plts(Path("by-processes")) == plts(Path("by-threads"))


def plts(folder: Path) -> dict[str, float | None]:
    loads = (record["load"] for record in Journal(folder / "journal.jsonl").records())
    return {load["load_id"]: load["plt_ms"] for load in loads}


def measured(
    treatment_ms: float, names: tuple[str, str], versions: tuple[str, str] = ("", ""), **browser: float
) -> list[LoadRecord]:
    """Loads of ten blocks.

    The treatment takes `treatment_ms` longer than the baseline, with twice its noise.
    """
    found: list[Any] = []
    for block in range(10):
        for side, more in enumerate((0.0, treatment_ms)):
            named: Any = {"treatment": names[side], "baseline": names[0], "version": versions[side]}
            noise = (block * 7 % 10) * (1 + side) / 10
            load_id = f"{block}-{side}"
            record = load_record(
                mode="tcp", block=block, plt_ms=1000 + more + noise, load_id=load_id, **named
            )
            marks = {"browser": {name: ms + more for name, ms in browser.items()}} if browser else {}
            found.append({**record, **marks})
    return found


@pytest.mark.parametrize(
    ("later_ms", "names", "versions", "verdict"),
    [
        (200.0, ("page=a", "page=b"), ("a", "b"), "slower by 200 ms"),
        (-200.0, ("page=a", "page=b"), ("a", "b"), "faster by 200 ms"),
        (6.0, ("page=a", "page=b"), ("a", "b"), "same within "),
        (6.0, ("initial_window=10", "initial_window=3"), ("", ""), "slower by 6"),
    ],
)
def test_a_verdict_says_by_how_many_ms_and_versions_have_the_tolerance_of_the_gate(
    later_ms: float, names: tuple[str, str], versions: tuple[str, str], verdict: str
) -> None:
    [cell] = summarize_pairs(cell_pairs(measured(later_ms, names, versions)))["cells"]
    assert words.plt_verdict(cell).startswith(verdict)
    assert (cell["same_within_ms"] is None) == ("same" not in verdict)


def test_what_a_browser_paints_is_a_column_and_stands_side_by_side(tmp_path: Path) -> None:
    records = measured(50.0, ("page=a", "page=b"), ("a", "b"), first_paint_ms=300.0, lcp_ms=700.0)
    [cell] = summarize_pairs(cell_pairs(records))["cells"]
    found = {name: measure["difference"]["point"] for name, measure in cell["measures"].items()}
    assert found["lcp_ms"] == found["first_paint_ms"] == pytest.approx(50)
    assert "first_contentful_paint_ms" not in found
    loads = pl.read_parquet(write_tables(write_journal(tmp_path / "painted", records))[0])
    assert set(loads["lcp_ms"]) == {700.0, 750.0}
    assert load_row(load_record())["lcp_ms"] is None


def test_journals_of_before_have_one_version_of_each_page(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "old", [load_record()]) / "journal.jsonl"
    line: dict[str, Any] = json.loads(journal.read_text())
    line["format"] = "firstflight-journal/6"
    del line["load"]["version"]
    journal.write_text(json.dumps(line) + "\n")
    assert Journal(journal).records()[0]["load"]["version"] == ""


@pytest.mark.parametrize(
    ("same", "fates"),
    [
        ({0: 0, 1: 1}, {0: "both", 1: "both"}),
        ({0: 0}, {0: "both", 1: "added", -1: "removed"}),
    ],
)
def test_steps_say_which_path_has_a_request_and_which_part_took_longer(
    same: Mapping[int, int], fates: dict[int, str]
) -> None:
    paths = (critical_path(chain("tfo"), PAGE), critical_path(chain("tcp", extra_ms=30), PAGE))
    steps = compare_paths(paths, (PAGE, PAGE), same)
    assert [step.fate for step in steps] == [*fates.values()]
    assert sum(step.longer_ms for step in steps) == pytest.approx(paths[1].plt_ms - paths[0].plt_ms)
    assert all(sum(step.parts_ms.values()) == pytest.approx(step.longer_ms) for step in steps)
    assert steps[0].parts_ms["tcp"] == pytest.approx(100)
