"""`.pages` lists: one URL per line, blank lines ignored, nothing else."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.pages.text_file import read_text

MOST_BYTES = 1_000_000


def read_pages_list(path: Path) -> list[str]:
    """The URLs in the list at `path`.

    Raises:
        PageInputError: The list cannot be read, is empty, or a line is no URL.
    """
    urls = []
    for number, line in enumerate(read_text(path, MOST_BYTES).splitlines(), start=1):
        if line.strip():
            check_url(line.strip(), place=f"{path}: line {number}")
            urls.append(line.strip())
    if not urls:
        raise PageInputError(f"{path}: no URL in it", "write one URL per line, as 'http://www.example.org/'")
    return urls


def check_url(url: str, *, place: str) -> None:
    """Refuses what is no absolute http or https URL of a possible host.

    Raises:
        PageInputError: Naming `place`.
    """
    hint = "write an absolute URL, as 'http://www.example.org/'"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise PageInputError(f"{place}: '{shorten(url)}': {error}", hint) from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise PageInputError(f"{place}: '{shorten(url)}' is not an http or https URL", hint)
    # RFC 1035 section 2.3.4
    if len(host) > 253 or any(len(label) > 63 for label in host.split(".")):
        problem = f"{place}: host name '{shorten(host)}' has {len(host)} characters"
        raise PageInputError(problem, "a host name has at most 253 characters, 63 between two dots")


def shorten(text: str) -> str:
    """`text` for an error message: at most 80 characters."""
    return text if len(text) <= 80 else text[:80] + "…"
