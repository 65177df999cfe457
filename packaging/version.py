"""Checks that a tag is the tree's version: `python packaging/version.py vX.Y.Z [--notes]`.

Cargo.toml has the version, and maturin copies it to the wheel. CITATION.cff must repeat it. CHANGELOG.md must
have a section for it, which `--notes` prints.
"""

import re
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def version(root: Path = _ROOT) -> str:
    """The version of the source tree."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def problems(tag: str, root: Path = _ROOT) -> list[str]:
    """Lists the reasons why the tree cannot be released under this tag."""
    now = version(root)
    found = [] if tag == f"v{now}" else [f"the tag is {tag}, but Cargo.toml says {now}"]
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if cited is None or cited[1] != now:
        found.append(f"CITATION.cff does not say version: {now}")
    if not notes(root):
        found.append(f"CHANGELOG.md has no section ## [{now}] with a date")
    return found


def notes(root: Path = _ROOT) -> str:
    """The version's section of the changelog; empty if there is none."""
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    head = rf"^## \[{re.escape(version(root))}\] - \d{{4}}-\d\d-\d\d\n"
    found = re.search(head + r"(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def main(arguments: list[str]) -> int:
    """Ends with 1 and the list of problems, or prints the section of the changelog with `--notes`."""
    found = problems(arguments[0])
    if found:
        sys.exit("\n".join(f"error: {problem}" for problem in found))
    if "--notes" in arguments:
        print(notes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
