"""Files of a results folder: their names, locks, and files that are written completely or not at all."""

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
"""Name of the folder in a results folder for the profiles of its pages, which explanations need."""

LOCK = ".lock"
"""Name of the file on which the run that uses a results folder holds a lock."""


def journal_path(folder: Path) -> Path:
    """The path of the journal in a results folder.

    Raises:
        UsageError: There is no such folder, or it has no journal.
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
    """The keys of the plan in a results folder, as written there; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        return tomllib.loads((folder / PLAN).read_text("utf-8"))
    return {}


def check_writable(file: Path) -> None:
    """Refuses, before anything starts, a file that a command could not write at its end.

    Raises:
        UsageError: It is a folder, or its own folder does not exist or is not writable.
    """
    folder = file.absolute().parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"{file}: cannot be written", "name a file in a folder that exists and is yours")


def write_whole(path: Path, content: bytes) -> Path:
    """Writes a file atomically: a reader sees the old file or the new one, never a part.

    Args:
        path: The file; missing folders are created.
        content: The complete contents.

    Returns:
        The path.

    Raises:
        UsageError: The file cannot be written.
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
    """A file that appears at `path`, synced to disk, if the block ends without an error; else it is deleted.

    Raises:
        OSError: The file cannot be written.
    """
    part = path.absolute().with_name(f".{path.name[:40]}.{secrets.token_hex(4)}")
    # The kernel applies the umask. Reading the umask would change it for all threads.
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
    """A file descriptor that appends to a file, which is created if needed.

    If the block ends without an error, everything it wrote is synced to disk. If not, the file gets its old
    size again, so that no partial line stays in it.

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
    """Locks a results folder, which is created if needed: no other run can use it meanwhile.

    The kernel releases the lock when the process ends, however it ends. The file `.lock` stays.

    Raises:
        UsageError: The folder cannot be written to or locked, or another run has locked it.
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
    """Whether a folder has only files of a run that was killed before it had written its plan.

    Args:
        folder: An existing folder.
        others: Names of files that a run writes before its plan, in addition to the lock.
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
    """Writes ``pages/<name>.json`` for every page: sizes, times and dependencies, but no contents.

    Raises:
        UsageError: The folder cannot be written to.
    """
    return [write_whole(folder / PROFILES / f"{page.name}.json", page.to_json().encode()) for page in pages]


def read_profile(folder: Path, name: str) -> Page | None:
    """The page of that name as it was loaded; `None` if the folder has no such profile.

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
