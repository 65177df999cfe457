"""Where bodies of archives are kept while they are served: files in the user's cache, named by their content.

`$XDG_CACHE_HOME/firstflight/bodies/ab/abcd...` (`~/.cache` where that is not set). A body is written to a
file of its own and moved into place once it is on the disk, and its size is checked when it is used again. So
a file there is always whole, and two runs that open one archive share it. Nothing is ever left elsewhere,
however the process ends; the folder may be removed whenever no experiment is running. Files that no opening
has asked for in `KEPT_DAYS` are removed by the next one.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile

from firstflight.errors import PageInputError
from firstflight.pages.archives.budget import Budget

KEPT_DAYS = 14
MOST_BODY_BYTES = 1 << 29
MOST_ARCHIVE_BYTES = 1 << 31
PIECE = 1 << 16
_DAY_S = 86_400.0


class BodyStore:
    """Keeps the bodies of one archive.

    Args:
        place: The archive, named in errors.

    Attributes:
        budget: What reading the archive may cost.

    Raises:
        PageInputError: The cache cannot be written.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.budget = Budget(place)
        self._folder = cache_folder() / "bodies"
        self._spent = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _prune(self._folder)
        except OSError as error:
            raise self._unwritable(error) from None

    def add(self, chunks: Iterable[bytes], entry: str) -> Path:
        """Writes one body, piece by piece, and returns its file.

        Args:
            chunks: The body.
            entry: Whose body it is, named in errors.

        Raises:
            PageInputError: It is larger than `MOST_BODY_BYTES`, all together are larger than
                `MOST_ARCHIVE_BYTES`, or the cache cannot be written.
        """
        digest = hashlib.sha256()
        try:
            with NamedTemporaryFile(dir=self._folder, prefix=".part-", delete=False) as file:
                part = Path(file.name)
                try:
                    for chunk in self._counted(chunks, entry):
                        digest.update(chunk)
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                except BaseException:
                    part.unlink(missing_ok=True)
                    raise
            return self._settle(part, digest.hexdigest())
        except OSError as error:
            raise self._unwritable(error) from None

    def _counted(self, chunks: Iterable[bytes], entry: str) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._spent += len(chunk)
            if size > MOST_BODY_BYTES:
                problem = f"{self._place}: {entry}: the body has more than {MOST_BODY_BYTES >> 20} MiB"
                raise PageInputError(problem, "remove this entry from the archive: no page needs it to load")
            if self._spent > MOST_ARCHIVE_BYTES:
                problem = (
                    f"{self._place}: {entry}: the bodies together have more than "
                    f"{MOST_ARCHIVE_BYTES >> 30} GiB"
                )
                raise PageInputError(problem, "split the archive: one page each")
            yield chunk

    def _settle(self, part: Path, name: str) -> Path:
        path = self._folder / name[:2] / name
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.stat().st_size == part.stat().st_size:
            part.unlink()
            os.utime(path)
        else:
            # Not there, or cut short by a crash of the system before it was on the disk.
            part.replace(path)
        return path

    def _unwritable(self, error: OSError) -> PageInputError:
        problem = f"{self._place}: cannot keep its bodies in {self._folder}: {error.strerror or error}"
        return PageInputError(problem, "set XDG_CACHE_HOME to a folder you can write, with room for them")


def cache_folder() -> Path:
    """Firstflight's folder in the user's cache (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "firstflight"


def pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    with path.open("rb") as file:
        while data := file.read(PIECE):
            yield data


def _prune(folder: Path) -> None:
    """Removes what was not asked for in `KEPT_DAYS`, once a day; opening an archive asks for its bodies."""
    mark, now = folder / ".pruned", time.time()
    if mark.exists() and now - mark.stat().st_mtime < _DAY_S:
        return
    mark.touch()
    oldest = now - KEPT_DAYS * _DAY_S
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    for path in islice(files, 100_000):
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except OSError:
            continue  # another process was quicker
