"""The bodies of an archive by URL, as the scanners of the mirror importer ask for them."""

from __future__ import annotations

from pathlib import Path

from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.urls import absolute_url


class RecordedFiles:
    """Answers which references an archive answers."""

    def __init__(self, entries: list[Entry]) -> None:
        self._texts: dict[str, Path | None] = {entry.url: entry.text for entry in entries}

    def find(self, url: str) -> Path | None:
        """The decoded body of `url`, or None."""
        return self._texts.get(url)

    def resolve(self, reference: str, base_url: str, base_file: Path | None = None) -> str:
        """The absolute URL that `reference` means in `base_url`, without fragment; '' if it means none."""
        return absolute_url(reference, base_url)
