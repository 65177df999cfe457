"""`.pages` lists: one URL per line, blank lines ignored, nothing else."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.pages.mirror import shorten

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


def read_text(path: Path, most_bytes: int) -> str:
    """Reads a UTF-8 text file.

    Raises:
        PageInputError: The file cannot be read, is longer than `most_bytes`, or is not UTF-8.
    """
    try:
        if (size := path.stat().st_size) > most_bytes:
            raise PageInputError(
                f"{path}: {size} bytes are too many", f"such a file has at most {most_bytes}"
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PageInputError(
            f"{path}: {error.strerror or error}", "check the path and its permissions"
        ) from None
    except UnicodeDecodeError as error:
        raise PageInputError(
            f"{path}: byte {error.start} is not UTF-8", "save the file as UTF-8 text"
        ) from None
