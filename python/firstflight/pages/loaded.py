"""A page together with the files that hold its bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from firstflight.pages.model import Page


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A page, ready for an experiment.

    Attributes:
        page: The page.
        bodies: File with the body of each resource, by its index; empty for a profile.
        notes: What the reader had to decide or leave out, one line each.
    """

    page: Page
    bodies: dict[int, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def strip(page: Page) -> Page:
    """The profile of an archive's page.

    A `Page` never holds content: what makes an archive is `LoadedPage.bodies`. Without them the bodies are
    synthesised, so the profile is the same page under its own name, checked once more.
    """
    return Page.from_json(page.to_json(), place=page.name)
