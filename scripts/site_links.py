"""Hooks of mkdocs: the studies, and other files that the documentation links to, are in the site too.

The studies keep their folder. Other files are in `repository/`, and links are changed to lead there.
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
    """Adds the studies with their figures, and the files that a page leads to."""
    for file in sorted(path for suffix in ("md", "svg") for path in (ROOT / "studies").rglob(f"*.{suffix}")):
        files.append(File.generated(config, file.relative_to(ROOT).as_posix(), abs_src_path=str(file)))
    linked = {name for file in files.documentation_pages() for name in _outside(file)}
    for name in sorted(linked | set(_PAGES)):
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:  # noqa: ANN401
    """Changes the page's links to where the site has what they mean; a page alone in its tab has no menu."""
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    return _LINK.sub(_relinked(page.file.src_uri), markdown)


def _outside(file: File) -> Iterator[str]:
    for link in _LINK.findall(file.content_string):
        name = _in_repository(file.src_uri, link)
        if _in_site(name).startswith("repository/") and (ROOT / name).is_file():
            yield name


def _relinked(uri: str) -> Callable[[re.Match[str]], str]:
    def relinked(link: re.Match[str]) -> str:
        target = _in_site(_in_repository(uri, link[1]))
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}"

    return relinked


def _in_site(name: str) -> str:
    """Where the site has a file of the repository."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    is_study = name.startswith("studies/") and name.endswith((".md", ".svg"))
    return name if is_study else f"repository/{name}"


def _in_repository(uri: str, link: str) -> str:
    """The path of what a page links to, from the repository's root."""
    is_outside = uri.startswith(("repository/", "studies/"))
    page = uri.removeprefix("repository/") if is_outside else f"docs/{uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
