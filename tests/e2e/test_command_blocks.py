"""Every command block of the README, the front page and the tutorial does what the page says.

The commands run in a folder with the examples and plans of a clone. A block without a command shows the
output of the command before it. Deterministic output must match exactly.

A run on the real kernel is made on the virtual clock instead. Its load times must be within half a round trip
of those in the block. The first such run is also made on the real kernel, once in each mode.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from documents import ROOT, Block, blocks

from firstflight.cli import main

PAGES = ("README.md", "docs/index.md", "docs/tutorial.md")

EXCUSED = {
    "git clone <this repository> && cd firstflight": "there is no network",
    "make": "it takes minutes, and everything here runs on what it built",
    ".venv/bin/firstflight doctor": "test_doctor.py runs it: it measures for two seconds",
    ".venv/bin/firstflight record https://www.example.org/ -o mine.wacz": "no network; test_record.py",
    ".venv/bin/firstflight run mine.wacz --rtt 100": "its page is the one that the line before would record",
}
"""Commands that no test here runs, each with the reason."""

ON_THE_KERNEL = ".venv/bin/firstflight run examples/chain.json --rtt 100"
_ROW = re.compile(r"^ +(\d+) ms +([\d.]+) s +([\d.]+) s +[+−]", re.MULTILINE)  # noqa: RUF001


@dataclass(frozen=True)
class Shown:
    """A command of a page and the output that the page shows for it; empty where the page shows none."""

    command: str
    output: list[str]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the command."""
        return self.command.removeprefix(".venv/bin/firstflight ").split()

    @property
    def is_measured(self) -> bool:
        """Whether the load times in its output were measured on the real kernel."""
        return self.arguments[0] == "run" and "simulate" not in self.arguments


def is_command(line: str) -> bool:
    return line.startswith((".venv/bin/firstflight ", "make", "git "))


def shown(page: str) -> Iterator[Shown | Block]:
    """The commands of a page, each with its output, and its Python blocks, in the order of the page."""
    last: Shown | None = None
    for block in blocks(ROOT / page):
        if block.language == "python":
            yield block
        elif is_command(block.lines[0]):
            assert all(map(is_command, block.lines)), block
            if last:
                yield last
            *before, command = block.lines
            yield from (Shown(line, []) for line in before)
            last = Shown(command, [])
        elif not all((ROOT / line.split()[0]).exists() for line in block.lines):
            assert last, block
            yield Shown(last.command, block.lines)
            last = None
    if last:
        yield last


def lines(text: str) -> list[str]:
    """The lines of `text` without rules and blank lines, with single spaces."""
    found = (" ".join(re.sub("─+", "", line).split()) for line in text.splitlines())
    return [line for line in found if line]


def times(text: str) -> dict[float, tuple[float, float]]:
    """Page load times in s, without and with TFO, by RTT in ms, from the rows of a table for one page."""
    return {float(rtt): (float(tcp), float(tfo)) for rtt, tcp, tfo in _ROW.findall(text)}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the examples and plans of a clone."""
    for name in ("examples", "plans"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("FIRSTFLIGHT_KEEP_AWAKE", "0")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_every_command_block_of_a_page_runs_and_prints_what_the_page_says(
    page: str, clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = 0
    for item in shown(page):
        if isinstance(item, Block):
            run_python(item, clone)
        elif item.command not in EXCUSED:
            expect(item, called(item, capfd), page)
            ran += 1
    assert ran >= 4


def called(item: Shown, capfd: pytest.CaptureFixture[str]) -> str:
    """What the command printed."""
    code = main([*item.arguments, *(["--engine", "simulate"] if item.is_measured else [])])
    said = capfd.readouterr()
    assert code == (1 if "gate" in item.arguments else 0), said
    return said.out


def expect(item: Shown, out: str, page: str) -> None:
    if item.is_measured:
        found = times(out)
        for rtt_ms, expected_s in times("\n".join(item.output)).items():
            assert found[rtt_ms] == pytest.approx(expected_s, abs=rtt_ms / 2000), (page, item.command)
    else:
        printed = iter(lines(out))
        missing = [line for line in lines("\n".join(item.output)) if line not in printed]
        assert missing == [], (page, item.command, out)


def run_python(block: Block, clone: Path) -> None:
    """Runs a Python block, with its results folder replaced by that of the last run."""
    code = "\n".join(block.lines)
    assert '"results/..."' in code
    [*_, folder] = sorted((clone / "results").iterdir())
    exec(code.replace("results/...", str(folder)), {})


@pytest.mark.timing
def test_the_first_run_of_the_tutorial_takes_on_the_kernel_what_the_tutorial_says(
    clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    item = next(item for item in shown("docs/tutorial.md") if getattr(item, "command", "") == ON_THE_KERNEL)
    assert isinstance(item, Shown)
    assert main([*item.arguments, "--repeats", "1"]) == 0
    assert times(capfd.readouterr().out)[100.0] == pytest.approx(
        times("\n".join(item.output))[100.0], abs=0.1
    )
    assert (clone / "results").is_dir()


def test_what_is_excused_is_shown_somewhere() -> None:
    commands = {item.command for page in PAGES for item in shown(page) if isinstance(item, Shown)}
    assert EXCUSED.keys() - commands == set()
