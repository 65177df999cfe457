"""A page together with the files that hold its bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from firstflight.pages.model import Page

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Spare:
    """An answer beside the page: its recording holds it, but its browser had it cached or did without."""

    url: str
    mime: str
    file: Path


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A page, ready for an experiment.

    Attributes:
        page: The page.
        bodies: File with the body of each resource, by its index; empty for a profile.
        notes: What the reader had to decide or leave out, one line each.
        headers: Fields of each response that the server repeats, as recorded, by the resource's index.
            Without those of the connection and of the framing, except `Transfer-Encoding: chunked`;
            `Content-Encoding` only where `bodies` has the body in that coding.
        spare: Answers in addition to the page, for clients that decide themselves what they request.
    """

    page: Page
    bodies: dict[int, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    headers: dict[int, Headers] = field(default_factory=dict)
    spare: tuple[Spare, ...] = ()


def strip(page: Page) -> Page:
    """The profile of an archive's page.

    A `Page` never holds content: what makes an archive is `LoadedPage.bodies`. Without them the bodies are
    synthesised, so the profile is the same page under its own name, checked once more.
    """
    return Page.from_json(page.to_json(), place=page.name)
