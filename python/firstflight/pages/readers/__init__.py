"""Readers of recordings, one module per format.

To add a format, write a module here with a function `open_name(path, url)`, and add a row to `FORMATS`.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from firstflight.model.page import LoadedPage


@dataclass(frozen=True, slots=True)
class Format:
    """A format of recordings, and how it is recognised.

    Attributes:
        reader: Module in this package and function, `module:function`. The module is imported on first use.
        endings: Suffixes of its files, lower case; empty if it is not a file.
        members: Patterns of names that only a directory of this format contains; empty if it is not a
            directory.
    """

    reader: str
    endings: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def matches(self, path: Path) -> bool:
        """Whether the file or directory at `path` has this format, by its name or its members' names."""
        if path.is_file():
            return bool(self.endings) and path.name.lower().endswith(self.endings)
        return path.is_dir() and any(next(path.glob(name), None) is not None for name in self.members)

    def open(self, path: Path, url: str = "") -> list[LoadedPage]:
        """The page that begins at `url` in the recording at `path`; without `url`, the format's default.

        Raises:
            PageInputError: The recording is damaged, or has no such page.
        """
        module, _, function = self.reader.partition(":")
        found: LoadedPage | list[LoadedPage]
        found = getattr(import_module(f"{__name__}.{module}"), function)(path, url)
        return found if isinstance(found, list) else [found]


HARS_IN_FOLDERS = (
    "browsertime.har*",
    "pages/*/**/data/browsertime.har*",
    "*/browsertime.har*",
    "*/pages/*/**/data/browsertime.har*",
    "*.har",
    "*.har.gz",
)
"""Where sitespeed.io, browsertime and people put HARs: patterns, in the order in which they are tried."""

FORMATS = (
    Format("har:open_har", endings=(".har", ".har.gz")),
    Format("json_file:open_json", endings=(".json", ".json.gz")),
    Format("warc:open_warc", endings=(".warc", ".warc.gz")),
    Format("wacz:open_wacz", endings=(".wacz",)),
    Format(
        "webpagetest:open_agent",
        endings=(".zip",),
        members=("*_devtools_requests.json", "*_devtools_requests.json.gz"),
    ),
    Format("mahimahi:open_mahimahi", members=("save.*",)),
    Format("devtools_log:open_lighthouse", members=("*.devtoolslog.json", "*.devtoolslog.json.gz")),
    Format("browsertime:open_folder", members=HARS_IN_FOLDERS),
)

_BEGINNINGS = ((b"PK\x03\x04", "webpagetest:open_agent"), (b"WARC/", "warc:open_warc"))
_MOST_LOOKED_AT = 1 << 12
_JSON = Format("json_file:open_json")
MIRROR = Format("mirror:open_mirror")
"""The format of a directory that no other format matches."""


def by_content(path: Path) -> Format:
    """The format of the file at `path` by its content; if unknown, JSON, whose reader finds out more."""
    with path.open("rb") as file:
        begins = file.read(5)
    if begins.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as zipped:
                begins = zipped.read(5)
        except (OSError, EOFError, zlib.error):
            return _JSON
    found = (Format(reader) for beginning, reader in _BEGINNINGS if begins.startswith(beginning))
    return next(found, _JSON)


def is_archive(path: Path) -> bool:
    """Whether `path` is the recording of a tool. Mirrors, profiles, lists and missing files are not.

    Of a JSON file only the beginning is read, to distinguish it from a profile.
    """
    if path.is_dir():
        return format_of(path) is not None
    if not path.is_file() or path.suffix == ".pages":
        return False
    found = format_of(path) or by_content(path)
    return found.reader != _JSON.reader or not _is_profile(path)


def _is_profile(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            begins = file.read(_MOST_LOOKED_AT)
    except (OSError, EOFError, zlib.error):
        return False
    return b'"firstflight-profile' in begins or b'"resources"' in begins


def format_of(path: Path) -> Format | None:
    """The format of the recording at `path`; `None` for a mirror, and for what is not a recording."""
    return next((found for found in FORMATS if found.matches(path)), None)
