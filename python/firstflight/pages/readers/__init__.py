"""Readers of recordings, one module per format.

A new format is a module here, with a function `open_name(path, url)`, and a row of `FORMATS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from firstflight.model.page import LoadedPage


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recordings, and how one is recognised.

    Attributes:
        reader: Module in this package and function, `module:function`. Imported when there is something to
            read.
        endings: How names of its files end, lower case; none if it is no file.
        member: Pattern of a name that only a directory of this format holds; empty if it is no directory.
    """

    reader: str
    endings: tuple[str, ...] = ()
    member: str = ""

    def matches(self, path: Path) -> bool:
        """Whether the file or directory at `path` is of this format, by its name or its members' names."""
        if path.is_file():
            return path.name.lower().endswith(self.endings)
        return bool(self.member) and path.is_dir() and next(path.glob(self.member), None) is not None

    def open(self, path: Path, url: str = "") -> list[LoadedPage]:
        """The page of the recording at `path` that begins at `url`; without `url`, what the format gives.

        Raises:
            PageInputError: The recording is damaged, or holds no such page.
        """
        module, _, function = self.reader.partition(":")
        found: LoadedPage | list[LoadedPage]
        found = getattr(import_module(f"{__name__}.{module}"), function)(path, url)
        return found if isinstance(found, list) else [found]


FORMATS = (
    Format("har:open_har", endings=(".har", ".har.gz")),
    Format("json_file:open_json", endings=(".json", ".json.gz")),
    Format("warc:open_warc", endings=(".warc", ".warc.gz")),
    Format("wacz:open_wacz", endings=(".wacz",)),
    Format("mahimahi:open_mahimahi", member="save.*"),
)

MIRROR = Format("mirror:open_mirror")
"""What a directory is that no other format matches."""


def format_of(path: Path) -> Format | None:
    """The format of the recording at `path`; None for a mirror, and for what is no recording."""
    return next((found for found in FORMATS if found.matches(path)), None)
