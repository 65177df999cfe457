"""Which page a mirror directory means where its name is given without a start page."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.pages.archives.bodies import scannable
from firstflight.pages.mirror_files import MirrorFiles

_MOST_SEARCHED = 2_000
"""Documents whose links are followed: to ask is quicker than to read a whole site."""
_MOST_NAMED = 5
_DOCUMENTS = ("text/html", "application/xhtml+xml")
_MARKUP = re.compile(rb"<!doctype\s+html|<html\b", re.IGNORECASE)
_STARTS_WITHIN = 1 << 16
_FRAME = re.compile(rb"<i?frame\b[^>]*\ssrc\s*=\s*[\"']?\s*([^\s\"'>]+)", re.IGNORECASE)
_LINK = re.compile(rb"\shref\s*=\s*[\"']?\s*([^\s\"'>]+)", re.IGNORECASE)


def start_url(root: Path) -> tuple[Path, str]:
    """The mirror directory and start page that a bare directory means.

    A directory with an `index.html` of its own is the folder of a host. Else the start page is the document
    `index.html` of a host, where there is one, else any document. Of several it is that of the host that the
    directory is named after, else the only one that no other shows in a frame, else the only one that no
    other links to.

    Raises:
        PageInputError: There is no such page, or more than one.
    """
    if (root / "index.html").is_file():
        return root.absolute().parent, f"http://{root.absolute().name.lower()}/"
    files = MirrorFiles(root)
    left = _likeliest(_starts(files), files)
    if not left:
        raise PageInputError(f"{root}: which page? no host folder has an HTML document", start_hint(root))
    if len(left) > 1:
        raise PageInputError(f"{root}: which page? {len(left)} could be meant", start_hint(root))
    return root, left[0]


def start_hint(root: Path) -> str:
    """How to name a start page of the mirror at `root`: the likeliest ones, ready to be pasted."""
    files = MirrorFiles(root)
    left = _likeliest(_starts(files), files)
    if not left:
        return f"name the start page as '{root}#http://host/path'"
    more = f" or one of {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    named = ", ".join(f"'{root}#{url}'" for url in left[:_MOST_NAMED])
    return f"name one: {named}{more}"


def _starts(files: MirrorFiles) -> dict[str, Path]:
    """The documents that can be a start page, by URL."""
    documents = {url: path for url, path in sorted(files.urls().items()) if _is_document(path)}
    fronts = {url: path for url, path in documents.items() if _is_front(url, path)}
    return fronts or documents


def _is_front(url: str, path: Path) -> bool:
    parts = urlsplit(url)
    return (parts.path, parts.query) == ("/", "") and path.name == "index.html"


def _is_document(path: Path) -> bool:
    """Whether it is markup: `wget -E` and servers give the ending `.html` to scripts and data, too."""
    mime = mimetypes.guess_type(path.name)[0]
    if mime not in (None, *_DOCUMENTS):
        return False
    with path.open("rb") as file:
        start = file.read(_STARTS_WITHIN).removeprefix(b"\xef\xbb\xbf").lstrip()
    return bool(_MARKUP.match(start)) if mime is None else start.startswith(b"<")


def _likeliest(starts: dict[str, Path], files: MirrorFiles) -> list[str]:
    """The start pages that are left after each rule that leaves any."""
    left = dict(starts)
    name = files.root.absolute().name.lower()
    rules: tuple[Callable[[], set[Path]], ...] = (
        lambda: {path for url, path in left.items() if urlsplit(url).hostname not in (name, f"www.{name}")},
        lambda: _named(_FRAME, left.items(), files),
        lambda: _named(_LINK, left.items(), files),
    )
    for rule in rules:
        if 1 < len(left) <= _MOST_SEARCHED:
            out = rule()
            left = {url: path for url, path in left.items() if path not in out} or left
    return list(left)


def _named(attribute: re.Pattern[bytes], starts: Iterable[tuple[str, Path]], files: MirrorFiles) -> set[Path]:
    """The files that `attribute` of another document in `starts` names."""
    found: set[Path] = set()
    for base, path in starts:
        references = {
            unescape(word.decode("utf-8", "replace")) for word in attribute.findall(scannable(path))
        }
        targets = {files.find(url) for word in references if (url := files.resolve(word, base, path))}
        found |= {target for target in targets if target is not None and target != path}
    return found
