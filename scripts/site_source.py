"""Prepares the site's sources: `site_source.py FOLDER` writes the documentation there as one tree.

In the repository, pages are in `docs/`, `studies/`, and next to these folders. The site has one root, with
the contents of `docs/`. Studies go to `studies/`, and every other file that a page links to goes to
`repository/`. Links are changed to the new places. Nothing here depends on the site generator.
"""

import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
_ALWAYS = ("CHANGELOG.md", "CONTRIBUTING.md")
_STUDIES = ("md", "svg", "png")


def main() -> None:
    """Removes an earlier tree and writes the new one."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for name in sorted(_files()):
        target = folder / _in_site(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            target.write_text(_LINK.sub(_relinked(name), (ROOT / name).read_text()))
        else:
            shutil.copyfile(ROOT / name, target)


def _files() -> set[str]:
    """Every file of the site, by its path in the repository."""
    docs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    studies = {
        path.relative_to(ROOT).as_posix()
        for suffix in _STUDIES
        for path in (ROOT / "studies").rglob(f"*.{suffix}")
    }
    pages = {name for name in docs | studies if name.endswith(".md")} | {*_ALWAYS}
    return docs | studies | pages | {name for page in pages for name in _linked(page)}


def _linked(page: str) -> Iterator[str]:
    """The files that a page links to."""
    for link in _LINK.findall((ROOT / page).read_text()):
        name = _in_repository(page, link)
        if (ROOT / name).is_file():
            yield name


def _relinked(page: str) -> Callable[[re.Match[str]], str]:
    start = posixpath.dirname(_in_site(page)) or "."

    def relinked(link: re.Match[str]) -> str:
        return f"]({posixpath.relpath(_in_site(_in_repository(page, link[1])), start)}"

    return relinked


def _in_site(name: str) -> str:
    """The path in the site of a file of the repository."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    is_study = name.startswith("studies/") and name.endswith(_STUDIES)
    return name if is_study else f"repository/{name}"


def _in_repository(page: str, link: str) -> str:
    """The path in the repository of a link's target."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


if __name__ == "__main__":
    main()
