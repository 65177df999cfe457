"""Text files from users: profiles, which are pages without content in JSON, and lists of URLs.

The package contains four profiles, those of the paper. A `.pages` list has one URL per line; blank lines are
ignored.
"""

from __future__ import annotations

from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import Page
from firstflight.pages.urls import check_url

MOST_BYTES = 100_000_000
_MOST_LIST_BYTES = 1_000_000


def embedded_names() -> list[str]:
    """Names of the profiles in the package, in the order of the paper's table."""
    return ["amazon", "nytimes", "wsj", "wikipedia"]


def embedded_page(name: str) -> Page:
    """The embedded profile `name`."""
    file = Path(__file__).parent / "embedded" / f"{name}.json"
    return Page.from_json(file.read_text(encoding="utf-8"), place=f"embedded page {name}")


def read_profile(path: Path) -> Page:
    """Reads the profile at `path`.

    Raises:
        PageInputError: The file cannot be read or is not a profile; the message names the key.
    """
    return Page.from_json(read_text(path, MOST_BYTES), place=str(path))


def read_pages_list(path: Path) -> list[str]:
    """The URLs in the list at `path`.

    Raises:
        PageInputError: The list cannot be read, is empty, or a line is not a URL.
    """
    urls = []
    for number, line in enumerate(read_text(path, _MOST_LIST_BYTES).splitlines(), start=1):
        if line.strip():
            check_url(line.strip(), place=f"{path}: line {number}")
            urls.append(line.strip())
    if not urls:
        raise PageInputError(f"{path}: no URL in it", "write one URL per line, as 'http://www.example.org/'")
    return urls


def read_text(path: Path, most_bytes: int) -> str:
    r"""Reads a UTF-8 text file; lines end in `\n`.

    Raises:
        PageInputError: The file cannot be read, is longer than `most_bytes`, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise PageInputError(f"{path}: too many bytes", f"such a file has at most {most_bytes} bytes")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise PageInputError(
            f"{path}: {error.strerror or error}", "check the path and its permissions"
        ) from None
    except UnicodeDecodeError as error:
        raise PageInputError(
            f"{path}: byte {error.start} is not UTF-8", "save the file as UTF-8 text"
        ) from None
