import json
import re
import subprocess
from functools import cache
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import polars as pl
import pytest
import typer
from api_reference import render as render_api
from documents import (
    GENERATED,
    ROOT,
    anchors,
    blocks,
    documents,
    links,
    mentioned_commands,
    shown_commands,
)
from typer.core import TyperGroup
from typer.exceptions import TyperException

from firstflight.cli.app import app
from firstflight.cli.reference import commands, program, render_man, render_reference
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.reference import plan_schema
from firstflight.experiment.reference import render_reference as render_plan
from firstflight.model.plan import Plan

MAN = ROOT / "wheel/data/share/man/man1/firstflight.1"
WRITTEN = [page for page in documents() if page.parent != GENERATED]


@cache
def command_group() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def parse(arguments: list[str]) -> None:
    """Parses a call as the program does, the values of a plan's keys too, and runs nothing."""
    group = command_group()
    context = typer.Context(group, info_name="firstflight")
    if arguments[0].startswith("-"):
        assert arguments[0] in {name for option in program().options for name in option.names}
        return
    name, command, rest = group.resolve_command(context, arguments)
    assert command
    given = command.make_context(name, rest, parent=context).params
    if name == "run":
        resolve({key: value for key, value in given.items() if key in Plan.model_fields and value})


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_can_be_called(page: Path) -> None:
    for _, arguments in shown_commands(page, "firstflight"):
        parse(arguments)
        files = [word for word in arguments if word.startswith(("plans/", "examples/", "studies/"))]
        assert [file for file in files if not (ROOT / file).exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_mentioned_exists_with_its_flags(page: Path) -> None:
    for _, arguments in mentioned_commands(page, "firstflight"):
        try:
            parse(arguments)
        except TyperException as error:
            assert error.format_message().startswith("Missing"), arguments


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    navigation = re.findall(r"\"(\S+\.md)\"", (ROOT / "zensical.toml").read_text())
    roots = {"docs": ROOT / "docs", "studies": ROOT}
    pages = {
        str(page.relative_to(root)) for name, root in roots.items() for page in (ROOT / name).rglob("*.md")
    }
    assert pages - set(navigation) == set()


def test_the_row_that_the_readme_prints_has_the_numbers_of_the_study() -> None:
    loads = pl.read_csv(ROOT / "studies/paper/loads.csv")
    [row] = loads.filter(page="wikipedia", rtt_ms=100).iter_rows(named=True)
    times = (f"{row[name]:.2f} s" for name in ("tcp_s", "tfo_s"))
    shares = (f"{100 * row[name]:+.1f}" for name in ("improvement", "low", "high"))
    text = (ROOT / "README.md").read_text()
    proof = f"{row['accepted']} of {row['connections']}"
    assert [number for number in (*times, *shares, proof) if number not in text] == []


def test_the_readme_has_its_parts_in_order_and_at_most_700_words() -> None:
    text = (ROOT / "README.md").read_text()
    parts = re.findall("^## (.+)$", text, re.MULTILINE)
    assert parts == ["Install", "One command", "Four entrances", "Proof", "Limits", "Cite"]
    assert "Browsers no longer ship TFO" in text.partition("## Install")[0]
    assert len(text.split()) <= 700


def test_the_front_page_has_four_entrances_each_with_a_command_and_at_most_six_lines_of_its_output() -> None:
    shown = blocks(ROOT / "docs/index.md")[1:]
    assert len(shown) == 8
    for command, output in zip(shown[::2], shown[1::2], strict=True):
        assert [line.startswith(".venv/bin/firstflight ") for line in command.lines] == [True]
        assert 5 <= len(output.lines) <= 6


def test_figures_of_the_gallery_are_less_than_a_megabyte_and_each_has_a_command() -> None:
    gallery = ROOT / "docs/gallery.md"
    parts = gallery.read_text().split("\n## ")[1:]
    assert [part for part in parts if "firstflight" not in part.partition("```")[2]] == []
    files = [gallery.parent / link for link in links(gallery) if link.endswith((".svg", ".png"))]
    assert len(files) >= 6
    assert sum(file.stat().st_size for file in files) < 1_000_000


@pytest.mark.parametrize("template", ["bug.yml", "number.yml"])
def test_an_issue_asks_for_the_report_of_doctor(template: str) -> None:
    text = (ROOT / ".github/ISSUE_TEMPLATE" / template).read_text()
    [call] = re.findall("`firstflight (doctor --report [^`]+)`", text)
    parse(call.split())


def test_every_file_that_the_map_for_contributors_names_exists() -> None:
    rows = [line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| ")]
    folders = [name for row in rows for name in re.findall(r"`((?:crates|python)/[^`]+)`", row)]
    files = [name for row in rows for name in re.findall(r"`([\w/]+\.(?:py|rs))`", row)]
    assert len(folders) > 20
    assert len(files) > 5
    assert [name for name in folders if not (ROOT / name).exists()] == []
    sources = [
        str(path)
        for folder in ("crates", "packaging", "python", "tests")
        for path in (ROOT / folder).rglob("*.*")
    ]
    assert [name for name in files if not any(path.endswith(f"/{name}") for path in sources)] == []


def test_every_target_of_make_that_is_shown_or_mentioned_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in documents():
        for _, arguments in (*shown_commands(page, "make"), *mentioned_commands(page, "make")):
            assert f"\n{arguments[0]}:" in makefile, (page.name, arguments)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (GENERATED / "cli.md", render_reference()),
        (GENERATED / "plan.md", render_plan()),
        (GENERATED / "python.md", render_api()),
        (GENERATED / "plan.schema.json", json.dumps(plan_schema(), indent=2) + "\n"),
        (MAN, render_man()),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_page_that_is_made_from_the_code_is_current(file: Path, text: str) -> None:
    assert file.read_text() == text, "run: make reference"


@pytest.mark.parametrize("plan", [{}, {"topology": "star", "rtt": "20", "jobs": 4, "down": "unlimited"}])
def test_a_plan_fits_its_schema_and_an_unknown_key_does_not(plan: dict[str, object]) -> None:
    document = resolve(plan).model_dump(mode="json")
    jsonschema.validate(document, plan_schema())
    with pytest.raises(jsonschema.ValidationError, match="delay"):
        jsonschema.validate({**document, "delay": 20}, plan_schema())


def test_man_shows_every_command_and_flag_without_a_warning() -> None:
    shown = subprocess.run(
        ["man", "--warnings", "--local-file", str(MAN)],
        env={"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    for command in commands():
        assert f"\n   {command.usage}\n" in shown.stdout
        for option in command.options:
            assert ", ".join(option.names) in shown.stdout
