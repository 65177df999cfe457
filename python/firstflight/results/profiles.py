"""``pages/`` of a results folder: the profiles of its pages, to explain loads with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from firstflight.errors import UsageError
from firstflight.model.page import Page, paced
from firstflight.results.files import plan_keys, write_whole

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
        hint = "delete it: `firstflight run --resume` writes it again"
        raise UsageError(f"{file}: cannot be read: {error}", hint) from error
    page = Page.from_json(content, place=str(file))
    plan = plan_keys(folder)
    processing = float(str(plan.get("processing", 1)))
    return paced(page, server_time=plan.get("server_time", True) is not False, processing=processing)
