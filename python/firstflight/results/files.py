"""A results folder on disk: what must be there, and files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from firstflight.errors import UsageError

JOURNAL = "journal.jsonl"
"""Name of the journal in a results folder."""

PLAN = "plan.toml"
"""Name of the plan in a results folder."""


def journal_path(folder: Path) -> Path:
    """The journal of a results folder.

    Raises:
        UsageError: There is no such folder, or it holds no journal.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder}: no such folder", "name a results folder, as `firstflight run --out DIR` makes it"
        )
    path = folder / JOURNAL
    if not path.is_file():
        raise UsageError(
            f"{folder}: not a results folder: it holds no {JOURNAL}",
            "name the folder that `firstflight run --out DIR` wrote, not one inside or above it",
        )
    return path


def plan_keys(folder: Path) -> dict[str, Any]:
    """What the plan in a results folder says, as it stands there; nothing where none can be read."""
    with suppress(OSError, ValueError):
        return tomllib.loads((folder / PLAN).read_text("utf-8"))
    return {}


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Args:
        path: Where to; missing folders are made.
        content: All of the file.

    Returns:
        The path.

    Raises:
        UsageError: The place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as file:
            file.write(content)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror or error}",
            "make the results folder writable, or copy it to a place that is",
        ) from error
    return path


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that is at `path` when the block has ended well, and nowhere if not.

    Raises:
        OSError: The place cannot be written to.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
