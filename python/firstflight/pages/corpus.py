"""A corpus: many profiles in one file, `firstflight-corpus-VERSION.tar.xz`, which `make data` writes.

Its profiles are published, so they are anonymous. They keep what both engines need (sizes, types, times,
hosts, initiators), and nothing that a recording could reveal about its visitor. `corpus:NAME` names a page of
the installed corpus. The installed corpus is the file in `FIRSTFLIGHT_CORPUS`, else the file with the last
name in `$XDG_DATA_HOME/firstflight` (`~/.local/share/firstflight`).
"""

from __future__ import annotations

import lzma
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from firstflight.errors import PageInputError
from firstflight.model.page import Page

PREFIX = "corpus:"
FILES = "firstflight-corpus-*.tar.xz"
FOLDER = "profiles"
"""The folder of profiles, below the one folder at the top of the file."""
VARIABLE = "FIRSTFLIGHT_CORPUS"

TOKEN = re.compile(r"(?=.*\d).{8,}|\d{4,}")
"""A label of a host name that may identify an account or a visitor."""
_SUFFIXES = {"style": ".css", "script": ".js", "image": ".img", "font": ".font"}
_MOST_PROFILES = 100_000
_MOST_BYTES = 1 << 28
"""Limit for all profiles of a file, unpacked."""


def installed() -> Path:
    """The path of the installed corpus.

    Raises:
        PageInputError: No corpus is installed.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME", "")
    data = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    if found := sorted((data / "firstflight").glob(FILES)):
        return found[-1]
    raise PageInputError(
        f"no corpus is installed: there is no {data}/firstflight/{FILES}",
        f"put the file there, or name it in {VARIABLE}; `make data` in a clone makes one of recordings",
    )


def corpus_page(name: str) -> Page:
    """The page `name` of the installed corpus.

    Raises:
        PageInputError: There is no corpus, it cannot be read, or it has no such page.
    """
    file = installed()
    for known, text in _profiles(file):
        if known == name:
            return Page.from_json(text, place=f"{file}: {name}")
    raise PageInputError(f"{file}: no page {name[:80]!r} in it", "firstflight pages --corpus lists its pages")


def read_corpus(file: Path) -> list[Page]:
    """All pages of a corpus, by name.

    Raises:
        PageInputError: The file cannot be read, is not a corpus, or has an invalid profile.
    """
    return [Page.from_json(text, place=f"{file}: {name}") for name, text in sorted(_profiles(file))]


def _profiles(file: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the profiles. Nothing is unpacked to disk, whatever paths the file has."""
    hint = "name a firstflight-corpus-VERSION.tar.xz, as `make data` writes it"
    found = total = 0
    try:
        with tarfile.open(file, "r:xz") as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if not (member.isfile() and path.suffix == ".json" and path.parent.name == FOLDER):
                    continue
                found, total = found + 1, total + member.size
                if found > _MOST_PROFILES or total > _MOST_BYTES:
                    raise PageInputError(f"{file}: too many profiles, or too long", hint)
                if (content := archive.extractfile(member)) is not None:
                    yield path.stem, content.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise PageInputError(f"{file}: {path.name}: byte {error.start} is not UTF-8", hint) from None
    except OSError as error:
        raise PageInputError(f"{file}: {error.strerror or error}", "check the path to the corpus") from None
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
        raise PageInputError(f"{file}: not a corpus: {error}", hint) from None
    if not found:
        raise PageInputError(f"{file}: not a corpus: no folder {FOLDER} with profiles in it", hint)


def anonymous(page: Page, said: str) -> Page:
    """The page with numbers in place of paths, queries and tokens. Both schemes of a URL get the same number.

    URLs keep their length if possible, since the length of requests and redirects depends on it.

    Args:
        page: A page from a reader.
        said: Its new `source`.
    """
    numbers: dict[str, int] = {}
    labels: dict[str, int] = {}

    def host(name: str) -> str:
        parts = name.split(".")
        return ".".join(
            f"n{labels.setdefault(part, len(labels))}" if TOKEN.fullmatch(part) else part for part in parts
        )

    def shape(url: str, kind: str) -> str:
        parts = urlsplit(url)
        _, _, rest = url.partition("://")
        number = numbers.setdefault(rest, len(numbers))
        port = f":{parts.port}" if parts.port else ""
        start = f"{parts.scheme}://{host(parts.hostname or '')}{port}/"
        if rest.endswith(f"{parts.netloc}/"):
            return start
        suffix = _SUFFIXES.get(kind, "")
        return f"{start}{number}{'x' * (len(url) - len(f'{start}{number}{suffix}'))}{suffix}"

    return replace(
        page,
        source=said,
        missing=(),
        hosts=tuple(
            replace(one, host=host(one.host), carrier=host(one.carrier) if one.carrier else None)
            for one in page.hosts
        ),
        resources=tuple(replace(one, url=shape(one.url, one.kind)) for one in page.resources),
    )
