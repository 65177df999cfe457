"""Hooks of mkdocs: what the documentation links to elsewhere in the repository is part of the site too.

Such files are in its folder `repository/`, and links are changed to lead there.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")


def on_files(files: Files, *, config: Any) -> Files:  # noqa: ANN401
    """Adds the files outside of the documentation that a page of it leads to."""
    linked = {name for file in files.documentation_pages() for name in _outside(file)}
    for name in sorted(linked | set(_PAGES)):
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:  # noqa: ANN401
    """Changes the page's links to where the site has what they mean; a page alone in its tab has no menu."""
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    return _LINK.sub(_mend(page.file.src_uri), markdown)


def _outside(file: File) -> Iterator[str]:
    for link in _LINK.findall(file.content_string):
        name = _in_repository(file.src_uri, link)
        if not name.startswith("docs/") and (ROOT / name).is_file():
            yield name


def _mend(uri: str) -> Callable[[re.Match[str]], str]:
    def mend(link: re.Match[str]) -> str:
        name = _in_repository(uri, link[1])
        target = name.removeprefix("docs/") if name.startswith("docs/") else f"repository/{name}"
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}"

    return mend


def _in_repository(uri: str, link: str) -> str:
    """The path of what a page links to, from the repository's root."""
    folder = posixpath.dirname(uri.removeprefix("repository/") if "repository/" in uri else f"docs/{uri}")
    return posixpath.normpath(posixpath.join(folder, link))
