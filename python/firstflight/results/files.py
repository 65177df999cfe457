"""A results folder on disk: what must be there, and files that are written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import tomllib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from firstflight.errors import UsageError
from firstflight.model.page import Page, paced

JOURNAL = "journal.jsonl"
"""Name of the journal in a results folder."""

PLAN = "plan.toml"
"""Name of the plan in a results folder."""

PROFILES = "pages"
"""Name of the folder in a results folder that holds its pages' profiles, to explain loads with."""

LOCK = ".lock"
"""Name of the file that the run at work in a results folder holds a lock on."""


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


def plan_keys(folder: Path) -> dict[str, object]:
    """What the plan in a results folder says, as it stands there; nothing where none can be read."""
    with suppress(OSError, ValueError):
        return tomllib.loads((folder / PLAN).read_text("utf-8"))
    return {}


def check_writable(file: Path) -> None:
    """Refuses a file that a command could not write at its end, before anything starts.

    Raises:
        UsageError: It is a folder, or its own folder does not exist or cannot be written to.
    """
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{file}: cannot be written", "name a file in a folder that exists and is yours")


def write_whole(path: Path, content: bytes) -> Path:
    """Writes a file so that a reader sees the old one or the new one, never a part.

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
    """A file that is at `path`, on the disk, when the block has ended well, and nowhere if not.

    Raises:
        OSError: The place cannot be written to.
    """
    part = path.absolute().with_name(f".{path.name[:40]}.{secrets.token_hex(4)}")
    # The kernel applies the umask; to read it would change it for all threads.
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def appended(path: Path) -> Iterator[int]:
    """A descriptor to append to a file, which is made if need be.

    What the block wrote is on the disk when it has ended well; if not, the file has its old size: a part of
    a line is never left for the next one to be glued to.

    Raises:
        OSError: The file cannot be written to.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(handle).st_size
        try:
            yield handle
            os.fsync(handle)
        except BaseException:
            os.ftruncate(handle, min(size, os.fstat(handle).st_size))
            raise
    finally:
        os.close(handle)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a results folder, which is made if need be, for one run: no other gets it meanwhile.

    The lock goes with the process, however it ends; the file `.lock` stays.

    Raises:
        UsageError: The folder cannot be written to or locked, or another run holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(
            f"out: cannot write to {folder}: {error.strerror}", "name a folder you may write to with --out"
        ) from error
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def left_before_the_plan(folder: Path, others: Collection[str] = ()) -> bool:
    """Whether a folder holds only what a run that was killed before it had written its plan leaves.

    Args:
        folder: An existing folder.
        others: Names of what a run writes before its plan, in addition to the lock.
    """
    names = {entry.name for entry in folder.iterdir()}
    return not names or (
        LOCK in names and all(name in {LOCK, *others} or name.startswith(".") for name in names)
    )


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(
            f"out: another run is at work in {folder}", "wait for it, or name another --out"
        ) from error
    except OSError as error:
        raise UsageError(
            f"out: {folder} cannot be locked: {error.strerror or error}",
            "name a folder with --out whose file system has locks, on a disk of this machine",
        ) from error


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
