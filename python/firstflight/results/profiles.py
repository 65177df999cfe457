"""``pages/`` of a results folder: the profiles of its pages, to explain loads with."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from firstflight.errors import UsageError
from firstflight.pages.model import Page
from firstflight.pages.pace import paced
from firstflight.results.files import write_whole

PROFILES = "pages"
"""Name of the folder in a results folder."""


def write_profiles(folder: Path, pages: Iterable[Page]) -> list[Path]:
    """Write ``pages/<name>.json`` for every page; no content, only sizes, times and dependencies.

    Raises:
        UsageError: The folder cannot be written to.
    """
    return [write_whole(folder / PROFILES / f"{page.name}.json", page.to_json().encode()) for page in pages]


def read_profile(folder: Path, name: str) -> Page | None:
    """The page of that name as it was loaded; `None` in a folder that holds none.

    Raises:
        UsageError: The file cannot be read or is not a profile.
    """
    file = folder / PROFILES / f"{Path(name).name}.json"
    try:
        content = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        hint = "delete it: `firstflight run --resume` writes it anew"
        raise UsageError(f"{file}: cannot be read: {error}", hint) from error
    page = Page.from_json(content, place=str(file))
    plan = _plan(folder)
    return paced(page, server_time=plan.get("server_time", True), processing=plan.get("processing", 1))


def _plan(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return tomllib.loads((folder / "plan.toml").read_text("utf-8"))
    return {}
