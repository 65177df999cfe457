"""Checks prose against the word list in prose.toml: documentation, help texts, messages, texts of reports.

Prints `file:line: word: write instead: ...` and exits with 1 where it finds one. In Markdown, code and
targets of links are not prose. In Python, strings with a blank are, and a command's docstring, its help.

Vale would read the Markdown but not a program's strings, which are half of what users read. Neither PyPI nor
npm has a package that holds its program.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = Path(__file__).with_suffix(".toml")
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->|https?://\S+")


def main(arguments: list[str]) -> int:
    """Checks the named files; without names, all that is written for people."""
    files = [Path(name) for name in arguments] or sorted(written())
    words = read_words()
    found = [f"{file}:{line}: {what}" for file in files for line, what in check(file, words)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


def written() -> Iterator[Path]:
    """Every file with prose for users."""
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"))
    yield from (file for folder in ("docs", "studies") for file in (ROOT / folder).rglob("*.md"))
    plans = ("plans", "examples", "studies")
    yield from (file for folder in plans for file in (ROOT / folder).rglob("*.toml"))
    for suffix in ("*.py", "*.html.j2"):
        yield from (ROOT / "python/firstflight").rglob(suffix)


def read_words() -> dict[re.Pattern[str], str]:
    """The patterns of the words to avoid, each with the words to write instead."""
    return {
        re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), re.IGNORECASE): instead
        for pattern, instead in tomllib.loads(WORDS.read_text()).items()
    }


def check(file: Path, words: dict[re.Pattern[str], str]) -> Iterator[tuple[int, str]]:
    """Finds the words of the list in a file: line number, word and replacement."""
    for line, text in prose(file):
        for pattern, instead in words.items():
            for match in pattern.finditer(text):
                at = line + text.count("\n", 0, match.start())
                yield at, f"{' '.join(match[0].split())}: write instead: {instead}"


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file in pieces, each with the number of its first line."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from _strings(ast.parse(text), with_help=file.parent.name == "cli")
    elif file.suffix == ".md":
        yield 1, _markdown(text)
    else:
        yield 1, re.sub(r"<(script|style)\b.*?</\1>|\{[%{#].*?[%}#]\}|<[^>]*>", _blank, text, flags=re.DOTALL)


def _markdown(text: str) -> str:
    """The text with its code blanked and its lines kept, so that line numbers stay the same."""
    kept, fenced = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        kept.append("" if fenced or fence else _CODE.sub(" ", line))
        fenced ^= fence
    return "\n".join(kept)


def _strings(tree: ast.Module, *, with_help: bool) -> Iterator[tuple[int, str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    commands = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "command")
    firsts = (node.body[0] for node in commands if with_help)
    helps = {id(first.value) for first in firsts if isinstance(first, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " in text and id(node) not in docstrings - helps:
                yield node.lineno, _CODE.sub(" ", text)
            case _:
                pass


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n") or " "


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
