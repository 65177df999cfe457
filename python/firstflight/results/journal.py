"""The journal: one line per load, on disk before the next load starts.

A killed run leaves at most one torn last line. Reading passes over it and the next append removes it, so a
run can always go on where it stopped. Damage anywhere else is an error: it was not made by us.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import cast

from firstflight.errors import UsageError
from firstflight.results.check import check_record
from firstflight.results.schema import JOURNAL_FORMAT, LoadRecord


class Journal:
    """A file of load records. Several threads may append at once.

    Args:
        path: The journal file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        """Whether the last `records` call passed over a torn last line: a load that was cut short."""
        self._lock = threading.Lock()
        self._repaired = False

    def append(self, record: LoadRecord) -> None:
        """Add one load and return once it is on disk.

        Raises:
            ValueError: The record does not have the columns of `firstflight.results.schema`.
            UsageError: The journal cannot be written.
        """
        if problem := check_record(record):
            raise ValueError(f"cannot be journalled: {problem}")
        line = json.dumps({"format": JOURNAL_FORMAT, **record}, ensure_ascii=False, allow_nan=False)
        with self._lock:
            try:
                self._write(line.encode() + b"\n")
            except OSError as error:
                raise UsageError(
                    f"{self.path}: cannot be written: {error.strerror or error}",
                    "make the results folder writable, or free some space",
                ) from error

    def records(self) -> list[LoadRecord]:
        """All loads, in the order they were first journalled.

        A load that was run again replaces its earlier line.

        Raises:
            UsageError: A line is malformed or of another version; names file and line.
        """
        lines, tail = _split(self._read())
        by_id: dict[str, LoadRecord] = {}
        for number, line in enumerate(lines, start=1):
            record = self._parse(line, number)
            by_id[record["load"]["load_id"]] = record
        self.torn = bool(tail)
        return list(by_id.values())

    def finished(self) -> set[str]:
        """Ids of the loads that ended, well or badly. A resumed run repeats none of them."""
        return {record["load"]["load_id"] for record in self.records()}

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be read: {error.strerror or error}", "check its owner"
            ) from error

    def _parse(self, line: bytes, number: int) -> LoadRecord:
        where = f"{self.path}:{number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise UsageError(
                f"{where}: not a journal line: {error}",
                "restore the file from a copy, or delete that line: `--resume` runs the load again",
            ) from error
        found = record.get("format", JOURNAL_FORMAT) if isinstance(record, dict) else None
        if isinstance(record, dict) and found != JOURNAL_FORMAT:
            raise UsageError(
                f"{where}: journal format is {found!r}, this firstflight reads {JOURNAL_FORMAT!r}",
                "read it with the version that wrote it (see environment.json), or run the experiment again",
            )
        if problem := check_record(record):
            raise UsageError(
                f"{where}: {problem}",
                "edited, or written by another version; delete the line and `--resume` runs the load again",
            )
        record.pop("format", None)
        return cast(LoadRecord, record)

    def _write(self, line: bytes) -> None:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            if not self._repaired:
                self._repair(handle)
            _write_all(handle, line)
            os.fsync(handle)
        finally:
            os.close(handle)

    def _repair(self, handle: int) -> None:
        content = self._read()
        _, tail = _split(content)
        if tail:
            os.ftruncate(handle, len(content) - len(tail))
        elif content and not content.endswith(b"\n"):
            _write_all(handle, b"\n")
        self._repaired = True


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and the torn tail.

    A last line without its newline is torn unless it parses: no proper prefix of a JSON object is JSON, so
    such a line lost nothing but the newline (an editor took it, or the kill came between).
    """
    *lines, tail = content.split(b"\n")
    if tail and _is_json(tail):
        return [*lines, tail], b""
    return lines, tail


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
