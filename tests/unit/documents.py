"""Parses the Markdown documents: links, headings, code blocks, and the commands in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs/reference"


def documents() -> list[Path]:
    """Every Markdown document for users: docs/, studies/, and those at the top of the repository."""
    folders = (page for folder in ("docs", "studies") for page in sorted((ROOT / folder).rglob("*.md")))
    return [*sorted(ROOT.glob("*.md")), *folders, ROOT / "fuzz/README.md"]


@dataclass(frozen=True)
class Document:
    """A page: its prose and its code blocks, each line with its number."""

    prose: list[tuple[int, str]]
    code: list[tuple[int, str]]


def read(page: Path) -> Document:
    """A page, split into prose and fenced blocks. Lines that end in a backslash are joined with the next."""
    prose: list[tuple[int, str]] = []
    code: list[tuple[int, str]] = []
    fenced = False
    text = page.read_text().replace("\\\n", " ")
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        else:
            (code if fenced else prose).append((number, line))
    return Document(prose, code)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, which may be empty, and its lines."""

    language: str
    lines: list[str]


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks. Lines that end in a backslash are joined with the next."""
    text = page.read_text().replace("\\\n", " ")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(language, body.splitlines()) for language, body in found]


def links(page: Path) -> list[str]:
    """The targets of the page's links and pictures, without URLs."""
    text = "\n".join(re.sub("`[^`]*`", "", line) for _, line in read(page).prose)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The anchors of the page's headings, as links to them are written."""
    headings = [line.lstrip("# ") for _, line in read(page).prose if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def shown_commands(page: Path, program: str) -> Iterator[tuple[int, list[str]]]:
    """Every call of a program in the page's code blocks: line number and arguments."""
    for number, line in read(page).code:
        if found := re.match(rf"\s*(?:\$ )?(?:\w+ \| )?(?:\S*/)?{program} (\S.*)", line):
            yield number, _arguments(found[1])


def mentioned_commands(page: Path, program: str) -> Iterator[tuple[int, list[str]]]:
    """Every call of a program in the page's prose: line number and arguments."""
    for number, line in read(page).prose:
        for call in re.findall(rf"`(?:\S*/)?{program} ([a-z][^`]*)`", line):
            yield number, _arguments(call)


def _arguments(call: str) -> list[str]:
    """The arguments of a call, up to a comment (two spaces or a #) or to a shell operator (|, > or &&)."""
    words = shlex.split(re.split(r"\s{2,}(?=[^\s#-])|\s#", call)[0])
    ends = [position for position, word in enumerate(words) if word in ("|", ">", "&&")]
    return words[: ends[0]] if ends else words
