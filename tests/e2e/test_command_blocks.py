"""Every command block of the README, the front page and the tutorial does what the page says.

Commands run in a folder that has what a clone has. A block without a command shows what the command before it
prints. What is deterministic prints exactly that. A run on the real kernel is made on the virtual clock: its
load times are those of the block within half a round trip; the first one is also made on the kernel, once in
each mode.
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
    """A command of a page, and what the page says that it prints; empty where it does not."""

    command: str
    output: list[str]

    @property
    def arguments(self) -> list[str]:
        """What follows the program's name."""
        return self.command.removeprefix(".venv/bin/firstflight ").split()

    @property
    def is_measured(self) -> bool:
        """Whether its times are the real kernel's."""
        return self.arguments[0] == "run" and "simulate" not in self.arguments


def is_command(line: str) -> bool:
    return line.startswith((".venv/bin/firstflight ", "make", "git "))


def shown(page: str) -> Iterator[Shown | Block]:
    """A page's commands, each with its output, and its blocks of Python, from the top."""
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
    """The lines without rules, and with single blanks."""
    found = (" ".join(re.sub("─+", "", line).split()) for line in text.splitlines())
    return [line for line in found if line]


def times(text: str) -> dict[float, tuple[float, float]]:
    """Page load times, s, without and with TFO, by RTT in ms: the rows of a table of one page."""
    return {float(rtt): (float(tcp), float(tfo)) for rtt, tcp, tfo in _ROW.findall(text)}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: it has the clone's examples, and room for results."""
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
    """Runs it with the folder of the last run."""
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
