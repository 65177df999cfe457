"""The journal: one line per attempt, on disk before the next load starts.

A killed run leaves at most one incomplete last line. Readers skip it and the next append removes it, so a run
can always be resumed. Damage anywhere else is an error, since firstflight cannot have caused it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from firstflight.errors import UsageError
from firstflight.model.treatment import PLAIN
from firstflight.results.check import check_record, fits
from firstflight.results.files import appended, plan_keys
from firstflight.results.records import LoadRecord
from firstflight.results.schema import CONNECTIONS, EARLIER_FORMATS, JOURNAL_FORMAT, TREATMENT

_PIECE = 1 << 20


class Journal:
    """A file of load records. Several threads may append at once.

    Args:
        path: The journal file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        """Whether the last reading skipped an incomplete last line: the record of a load that was cut off."""
        self.instrument_failures: list[LoadRecord] = []
        """Records that the last reading skipped: the laboratory failed, so that there is no load."""
        self._lock = threading.Lock()
        self._repaired = False

    def append(self, record: LoadRecord) -> None:
        """Adds one load; returns once it is on disk.

        Raises:
            ValueError: The record does not have the columns of `firstflight.results.schema`.
            UsageError: The journal cannot be written.
        """
        self.append_lines([encode(record)])

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Adds loads in the form that `encode` returns, with one sync; returns once they are on disk.

        Raises:
            UsageError: The journal cannot be written.
        """
        with self._lock:
            try:
                self._write(b"".join(lines))
            except OSError as error:
                raise UsageError(
                    f"{self.path}: cannot be written: {error.strerror or error}",
                    "make the results folder writable, or free some space",
                ) from error

    def __iter__(self) -> Iterator[LoadRecord]:
        """Every load, in file order and one at a time; of a repeated load, the last attempt.

        Raises:
            UsageError: A line is malformed or of an unknown version; the message names file and line.
        """
        last = {record["load"]["load_id"]: place for place, record in self.placed()}
        return (record for place, record in self.placed() if last[record["load"]["load_id"]] == place)

    def attempts(self) -> Iterator[LoadRecord]:
        """Every attempt, in file order and one at a time, including those that a later attempt replaces.

        Raises:
            UsageError: A line is malformed or of an unknown version; the message names file and line.
        """
        return (record for _, record in self.placed())

    def placed(self) -> Iterator[tuple[int, LoadRecord]]:
        """As `attempts`, each with the offset of its line in the file, bytes."""
        self.instrument_failures = []
        for place, record in self._placed_lines():
            if is_instrument_failure(record):
                self.instrument_failures.append(record)
            else:
                yield place, record

    def lines(self) -> Iterator[LoadRecord]:
        """As `attempts`, together with instrument failures, which are records without a load."""
        return (record for _, record in self._placed_lines())

    def _placed_lines(self) -> Iterator[tuple[int, LoadRecord]]:
        self.torn = False
        place = 0
        for number, line in enumerate(self._lines(), start=1):
            if line.endswith(b"\n") or is_json(line):
                yield place, self._parse(line, number)
            else:
                self.torn = True
            place += len(line)

    def records(self) -> list[LoadRecord]:
        """All loads, in the order in which their first attempts were written.

        The last attempt of a load replaces the earlier ones.

        Raises:
            UsageError: A line is malformed or of an unknown version; the message names file and line.
        """
        return list({record["load"]["load_id"]: record for record in self.attempts()}.values())

    def finished(self) -> set[str]:
        """Ids of the loads that ended, ok or failed. A resumed run repeats none of them."""
        return {record["load"]["load_id"] for record in self.attempts()}

    def read_again(self, file: BinaryIO, place: int) -> LoadRecord:
        """The record at an offset that `placed` returned. It is not checked again."""
        file.seek(place)
        record = json.loads(file.readline())
        if record.pop("format", JOURNAL_FORMAT) in EARLIER_FORMATS:
            self._complete(record)
        return cast(LoadRecord, record)

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be read: {error.strerror or error}", "check its owner"
            ) from error

    def _parse(self, line: bytes, number: int) -> LoadRecord:
        where = f"{self.path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{where}: not a journal line: {error}",
                "restore the file from a copy, or delete that line: `--resume` runs the load again",
            ) from error
        found = record.get("format", JOURNAL_FORMAT) if isinstance(record, dict) else None
        if found in EARLIER_FORMATS:
            self._complete(record)
        elif isinstance(record, dict) and found != JOURNAL_FORMAT:
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

    def _complete(self, record: dict[str, object]) -> None:
        """Adds the columns that a load of an earlier format lacks."""
        load = record.get("load")
        if isinstance(load, dict):
            later_keys = {"certificate_bytes": 0, "ip": "4", "priorities": "none", "version": ""}
            compared = {"treatment": load.get("mode"), "baseline": PLAIN}
            record["load"] = {**self._planned, **compared, **later_keys, **load}
        rows = record.get("connections")
        if isinstance(rows, list):
            later: dict[str, str | None] = {
                column.name: None for column in CONNECTIONS.columns if column.since > 1
            }
            later |= {"protocol": "tcp"}
            record["connections"] = [{**later, **row} if isinstance(row, dict) else row for row in rows]

    @cached_property
    def _planned(self) -> dict[str, object]:
        """The columns that format 1 lacks, from the plan in the folder; null if the plan lacks them too."""
        keys = plan_keys(self.path.parent)
        if keys.get("loss_burst", "off") == "off":
            keys["loss_burst"] = keys["loss_in_burst"] = None
        for trace in ("down_trace", "up_trace"):
            name = keys.get(trace, "off")
            keys[trace] = None if name == "off" else PurePath(str(name)).name
        found = ((column, keys.get(column.key)) for column in TREATMENT if column.since > 1)
        return {column.name: value if fits(column, value) else None for column, value in found}

    def _write(self, lines: bytes) -> None:
        if not self._repaired:
            repair(self.path)
            self._repaired = True
        with appended(self.path) as handle:
            write_all(handle, lines)


def is_instrument_failure(record: LoadRecord) -> bool:
    """Whether the record says that the laboratory could not be built, or died, so that there is no load."""
    return record.get("instrument_failure") is True


def encode(record: LoadRecord) -> bytes:
    """A record as a journal line.

    Raises:
        ValueError: The record does not have the columns of `firstflight.results.schema`.
    """
    if problem := check_record(record):
        raise ValueError(f"cannot be journalled: {problem}")
    line = json.dumps({"format": JOURNAL_FORMAT, **record}, ensure_ascii=False, allow_nan=False)
    return line.encode() + b"\n"


def repair(path: Path) -> None:
    """Ends the last line of a file that a killed run wrote line by line, or removes it if it is incomplete.

    Raises:
        OSError: The file cannot be written to.
    """
    with appended(path) as handle:
        tail = _tail(handle)
        if tail and is_json(tail):
            write_all(handle, b"\n")
        elif tail:
            os.ftruncate(handle, os.fstat(handle).st_size - len(tail))


def _tail(handle: int) -> bytes:
    """What follows the last newline.

    It is incomplete unless it parses: no proper prefix of a JSON object is JSON. A line that parses lacks
    only its newline (an editor removed it, or the run was killed before writing it).
    """
    end = start = os.fstat(handle).st_size
    tail = b""
    while start > 0 and b"\n" not in tail:
        start = max(0, start - _PIECE)
        tail = os.pread(handle, end - start, start)
    return tail.rpartition(b"\n")[2]


def is_json(text: bytes) -> bool:
    """Whether a last line without its newline is complete."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def write_all(handle: int, content: bytes) -> None:
    """Writes all of `content`, for which one call of `write` may not suffice."""
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
