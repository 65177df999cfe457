"""The pages of a sweep: file patterns, page names, and how many pages are open at once."""

from pathlib import Path

import pytest
from engine_double import EngineDouble, pages

from firstflight.errors import PageInputError, UsageError
from firstflight.experiment.catalogue import AT_HAND, Catalogue, read_catalogue
from firstflight.experiment.run import run_experiment
from firstflight.experiment.setup import threads
from firstflight.model.plan import Plan
from firstflight.observer import Observer


def write(folder: Path, name: str, count: int = 1) -> list[Path]:
    """Writes `count` profiles with the same page name."""
    [page] = pages("wikipedia")
    files = [folder / f"{chr(ord('a') + number % 26)}{number // 26}.json" for number in range(count)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page.page.to_json().replace('"wikipedia"', f'"{name}"', 1))
    return files


class Heard(Observer):
    """Keeps the warnings about a catalogue."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def read(self, *specs: str) -> Catalogue:
        return read_catalogue(Plan(pages=specs, scheme="recorded"), self)

    def warn(self, message: str, hint: str = "") -> None:
        self.warnings.append(message)


def test_a_pattern_gives_the_files_it_matches_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "deep" / "er", "two")
    write(tmp_path / "deep", "one")
    monkeypatch.chdir(tmp_path)
    assert Heard().read("deep/**/*.json").names == ["one", "two"]
    assert Heard().read("deep/*.json", "amazon").names == ["one", "amazon"]


def test_a_pattern_that_matches_nothing_is_refused_with_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing matches") as refused:
        Heard().read(f"{tmp_path}/*.har")
    assert str(Path.cwd()) in refused.value.hint


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    [file] = write(tmp_path, "page")
    file = file.rename(tmp_path / "page[1].json")
    assert Heard().read(str(file)).names == ["page"]


def test_a_file_of_a_pattern_that_cannot_be_read_is_left_out_and_said(tmp_path: Path) -> None:
    write(tmp_path, "page")
    (tmp_path / "broken.json").write_text("{")
    heard = Heard()
    assert heard.read(f"{tmp_path}/*.json").names == ["page"]
    assert len(heard.warnings) == 1
    assert "broken.json" in heard.warnings[0]
    with pytest.raises(PageInputError, match=r"broken\.json"):
        heard.read(str(tmp_path / "broken.json"))
    (tmp_path / "a0.json").unlink()
    with pytest.raises(UsageError, match=r"nothing that .* matches can be read"):
        heard.read(f"{tmp_path}/*.json")


def test_pages_of_one_name_from_a_pattern_take_their_files_names(tmp_path: Path) -> None:
    write(tmp_path, "same", 2)
    catalogue = Heard().read(f"{tmp_path}/*.json")
    assert catalogue.names == ["same-a0.json", "same-b0.json"]
    assert [page.page.name for page in catalogue] == catalogue.names
    with pytest.raises(UsageError, match="two pages are called same"):
        Heard().read(*map(str, sorted(tmp_path.glob("*.json"))))


def test_no_more_pages_are_held_than_the_bound(tmp_path: Path) -> None:
    write(tmp_path, "same", AT_HAND + 10)
    catalogue = Heard().read(f"{tmp_path}/*.json")
    assert [page.page.name for page in catalogue] == catalogue.names
    assert len([catalogue.open(name) for name in catalogue.names]) == AT_HAND + 10
    assert catalogue.held == AT_HAND


def test_what_is_wrong_with_one_of_many_files_is_said_and_the_others_are_opened(tmp_path: Path) -> None:
    files = write(tmp_path, "same", 20)
    files[7].write_text("{")
    heard = Heard()
    names = heard.read(f"{tmp_path}/*.json").names
    assert names == sorted(f"same-{file.name}" for file in files if file != files[7])
    assert len(heard.warnings) == 1
    assert files[7].name in heard.warnings[0]


def test_a_page_that_changes_while_a_run_goes_on_is_refused(tmp_path: Path) -> None:
    [file] = write(tmp_path, "page")
    catalogue = Heard().read(str(file))
    file.write_text(file.read_text().replace("Transmission_Control", "Datagram"))
    with pytest.raises(PageInputError, match="not the one this run began with"):
        catalogue.open("page")


def test_a_resumed_run_refuses_a_page_more(tmp_path: Path) -> None:
    write(tmp_path / "pages", "page")
    plan = Plan(pages=(f"{tmp_path}/pages/*.json",), rtt=(20.0,), repeats=1)
    run_experiment(plan, Heard().read(*plan.pages), threads(plan, EngineDouble()), tmp_path / "out")
    write(tmp_path / "pages" / "more", "other")
    (tmp_path / "pages" / "more" / "a0.json").rename(tmp_path / "pages" / "z.json")
    with pytest.raises(UsageError, match="the page other was not there"):
        run_experiment(
            plan, Heard().read(*plan.pages), threads(plan, EngineDouble()), tmp_path / "out", resume=True
        )
