"""What opening one archive may cost: a small file can hold more than a machine can unpack in a day."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, cast

from firstflight.errors import PageInputError

MOST_BYTES = 1 << 32
"""Read and decompressed, with what is left out in the end."""
MOST_MEMBERS = 400_000
"""Files in it and records of its files; a WARC is read twice, and counts twice."""

_LEAST_CHUNK = 256


class Budget:
    """Counts the bytes that come out of one archive, and its members.

    Args:
        place: The archive, named in errors.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._bytes = 0
        self._members = 0

    def spend(self, size: int) -> None:
        """Counts bytes, at each layer of compression.

        Raises:
            PageInputError: They are more than `MOST_BYTES` by now.
        """
        self._bytes += size
        if self._bytes > MOST_BYTES:
            problem = f"{self.place}: more than {MOST_BYTES >> 30} GiB were unpacked and no end"
            raise PageInputError(problem, "split the archive: one page each")

    def member(self) -> None:
        """Counts a file or record.

        Raises:
            PageInputError: They are more than `MOST_MEMBERS` by now.
        """
        self._members += 1
        if self._members > MOST_MEMBERS:
            problem = f"{self.place}: more than {MOST_MEMBERS} files and records in it"
            raise PageInputError(problem, "split the archive: one page each")

    def counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """`chunks`, counted as they come; a small one costs more time than it has bytes."""
        for chunk in chunks:
            self.spend(max(len(chunk), _LEAST_CHUNK))
            yield chunk

    def reader(self, file: IO[bytes]) -> io.BufferedReader:
        """`file`, counted as it is read."""
        return io.BufferedReader(cast("io.RawIOBase", _Counted(file, self)))


class _Counted(io.RawIOBase):
    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file, self._budget = file, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        self._budget.spend(len(data))
        buffer[: len(data)] = data
        return len(data)
