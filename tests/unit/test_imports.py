"""Which modules each command imports: a command must not load libraries that it does not use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.cli.app import COMMANDS, load_command

HEAVY = {
    "altair",
    "asyncio",
    "brotli",
    "distributed",
    "fsspec",
    "jinja2",
    "numpy",
    "playwright",
    "polars",
    "pydantic",
    "rich",
    "scipy",
    "tinycss2",
    "tomlkit",
    "vl_convert",
    "warcio",
}
TYPER_PARSES_WITH = {"pydantic"}
PROGRAM = """
import json, sys
from firstflight.cli import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """Runs a command in a new process; returns the modules that it has imported at the end."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_program_itself_imports_no_command_and_nothing_heavy(flag: str) -> None:
    modules = imported(flag)
    assert not modules & HEAVY
    assert not modules & {f"firstflight.cli.{name}" for name in COMMANDS}


def test_exec_imports_no_analysis_no_report_and_nothing_heavy() -> None:
    modules = imported("exec", "--help")
    assert modules & HEAVY == TYPER_PARSES_WITH | {"brotli"}
    unused = ("firstflight.analysis", "firstflight.report")
    assert not {name for name in modules if name.startswith(unused)}


def test_pages_imports_no_engine_and_no_reader_of_archives_that_it_does_not_read() -> None:
    modules = imported("pages", "wikipedia")
    assert not {name for name in modules if name.startswith("firstflight.engines")}
    assert modules & HEAVY == TYPER_PARSES_WITH | {"brotli", "rich"}


SLOWEST = {"altair", "jinja2", "numpy", "playwright", "polars", "scipy", "tomlkit", "vl_convert", "warcio"}


@pytest.mark.parametrize("name", ["check", "compare", "gate", "report", "run", "stress"])
def test_a_command_imports_what_computes_and_draws_only_when_there_is_something_to_show(name: str) -> None:
    assert not imported(name, "--help") & SLOWEST


def test_a_report_is_written_without_the_libraries_that_draw_figures(tmp_path: Path) -> None:
    made = tmp_path / "out"
    modules = imported("run", "wikipedia", "--engine", "simulate", "--figures", "off", "--out", str(made))
    assert (made / "report.html").exists()
    assert not modules & {"altair", "scipy", "vl_convert"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    assert (load_command(name).help or "").partition("\n")[0] == COMMANDS[name]
