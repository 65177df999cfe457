"""Profiles: pages without content, as JSON. Four come with the package: those of the paper."""

from __future__ import annotations

from pathlib import Path

from firstflight.pages.model import Page
from firstflight.pages.text_file import read_text

MOST_BYTES = 100_000_000


def embedded_names() -> list[str]:
    """Names of the profiles that come with the package, in the order of the paper's table."""
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
