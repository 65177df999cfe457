"""Makes the loads of a run, repeats some, counts them, and writes each attempt to the journal once.

A load is repeated when its relay was late or its client broke; the last attempt counts. An instrument failure
means that the laboratory could not be built or died. It is neither an attempt nor a result: the load is made
again at once. If that fails too, the load is left for `--resume`.
"""

import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast

from firstflight.engines.engine import Engine, Record, instrument_failure_of
from firstflight.errors import ExperimentError, LabError, UsageError
from firstflight.experiment.schedule import Block, Schedule
from firstflight.model.load import PlannedLoad
from firstflight.observer import Observer
from firstflight.pages import LoadedPage, UnderSchemes
from firstflight.results import Journal, LoadRecord
from firstflight.results.journal import encode, is_instrument_failure
from firstflight.results.records import attempt_of
from firstflight.text import plural

MAX_ATTEMPTS = 3
"""How many attempts a load gets at most while its relay is late."""

MAX_FAILURES = 2
"""After this many instrument failures in a row a load is left for `--resume`."""

_under = UnderSchemes()
"""Where treatments differ in the scheme, pages are opened as recorded, and the scheme is applied here."""


def make_block(
    engine: Engine,
    open_page: Callable[[str], LoadedPage],
    block: Block,
    attempts: Callable[[PlannedLoad], int],
    keep: Callable[[Record], None],
) -> None:
    """Makes the loads of a block one after the other.

    Args:
        engine: Makes the loads.
        open_page: Returns a page of `block.recordings` by its name.
        block: What is planned.
        attempts: Returns how many attempts a load had so far.
        keep: Takes the record of each attempt and of each instrument failure, as soon as it ends.

    Raises:
        EngineStoppedError: The engine was told to stop.
    """
    for planned in block.loads:
        attempt, failures = attempts(planned) + 1, 0
        page = open_page(planned.recording)
        loaded = _under(planned.scheme, page) if "scheme" in planned.compared else page
        while failures < MAX_FAILURES:
            record: Record = {**_load(engine, planned, loaded), "attempt": attempt}
            keep(record)
            if is_settled(record):
                break
            if is_instrument_failure(record):
                failures += 1
            else:
                attempt, failures = attempt + 1, 0


def is_settled(record: LoadRecord) -> bool:
    """Whether the load is finished: the attempt needs no repeat, or was the last one allowed."""
    if is_instrument_failure(record):
        return False
    if cast(Record, record).get("broken"):
        return attempt_of(record) > 1
    return not record["relay"].get("late") or attempt_of(record) >= MAX_ATTEMPTS


def _load(engine: Engine, planned: PlannedLoad, page: LoadedPage) -> Record:
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        return engine.load(planned, page)
    except LabError as error:
        return instrument_failure_of(planned, started_at, error)


Problem = Literal["left", "unproved", "empty_cells"]
"""What is wrong with a run that was not stopped: the field of `Outcome` that is not 0."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        planned: Loads in the plan.
        made: Loads in the journal, those of earlier runs included.
        unproved: Of those made, loads whose proof does not hold.
        empty_cells: Cells (all repeats of a page, path and treatment) with loads, but none that succeeded.
        signal: The signal that stopped the run; `None` when it came to its end.
        instrument_failures: Times that a laboratory gave no result, those of earlier runs included.
        left: Loads that are still to be made.
    """

    planned: int
    made: int
    unproved: int
    empty_cells: int
    signal: int | None = None
    instrument_failures: int = 0
    left: int = 0

    def problems(self) -> dict[Problem, str]:
        """The problems of a run that was not stopped, a line each; empty if there are none."""
        lines: dict[Problem, str] = {
            "left": "without a result, since the laboratory failed: "
            f"{self.left} of {plural(self.planned, 'load')}",
            "unproved": f"without proof of their mode: {plural(self.unproved, 'load')}",
            "empty_cells": f"without a load that succeeded: {plural(self.empty_cells, 'cell')}",
        }
        return {problem: line for problem, line in lines.items() if getattr(self, problem)}


class RunState:
    """Counts loads by their position in the run. Not thread-safe.

    Args:
        schedule: What is planned.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._attempts = bytearray(schedule.loads)
        self._settled = bytearray(schedule.loads)
        self._ok = bytearray(schedule.loads)
        self._unproved = bytearray(schedule.loads)
        self._made_in = array("L", bytes(8 * schedule.cells))
        self._ok_in = array("L", bytes(8 * schedule.cells))
        self._plt_ms = array("d", bytes(8 * schedule.loads))
        self._instrument_failures = 0

    def recall(self, record: LoadRecord) -> None:
        """Counts a record of an earlier run.

        Raises:
            UsageError: The schedule has no load or another load at that position.
        """
        load_id, order = record["load"]["load_id"], record["load"]["order"]
        planned = self._schedule.load_id(order) if 0 <= order < self._schedule.loads else "no load"
        if planned != load_id:
            raise UsageError(
                f"resume: the journal has the load {load_id} at place {order}, where this plan has {planned}",
                "the plan or its pages were changed, or another version of firstflight laid the loads out: "
                "bring the old ones back, or name another folder with --out",
            )
        self.note(record)

    def note(self, record: LoadRecord) -> None:
        """Counts a record of a planned load; it replaces an earlier record of the same load.

        An instrument failure is counted separately and replaces nothing.
        """
        if is_instrument_failure(record):
            self._instrument_failures += 1
            return
        load = record["load"]
        order, ok = load["order"], load["status"] == "ok"
        cell = self._schedule.cell(order, load["treatment"])
        self._made_in[cell] += not self._attempts[order]
        self._ok_in[cell] += ok - self._ok[order]
        self._attempts[order] = min(255, attempt_of(record))
        self._ok[order] = ok
        self._unproved[order] = record["proof"].get("ok") is False
        self._settled[order] = is_settled(record)
        self._plt_ms[order] = (load["plt_ms"] or 0.0) if ok else 0.0

    def plt_ms(self, order: int) -> float | None:
        """PLT of the load at that position, ms; `None` if it was not made or did not end ok."""
        return self._plt_ms[order] if self._ok[order] else None

    def attempts(self, order: int) -> int:
        """How many attempts the load at that position had."""
        return self._attempts[order]

    def is_settled(self, order: int) -> bool:
        """Whether the load at that position is finished."""
        return bool(self._settled[order])

    @property
    def settled(self) -> int:
        """How many loads are finished."""
        return sum(self._settled)

    def is_block_settled(self, number: int) -> bool:
        """Whether all loads of that block are finished."""
        first = number * self._schedule.block_size
        return all(self._settled[first : first + self._schedule.block_size])

    def outcome(self, signal: int | None, planned: int) -> Outcome:
        """The counts; `signal` is what stopped the run, `planned` the number of loads in the plan."""
        return Outcome(
            planned=planned,
            made=self._schedule.loads - self._attempts.count(0),
            unproved=sum(self._unproved),
            empty_cells=sum(made > 0 and not ok for made, ok in zip(self._made_in, self._ok_in, strict=True)),
            signal=signal,
            instrument_failures=self._instrument_failures,
            left=max(0, planned - self.settled),
        )


MAX_IN_A_ROW = 5
"""After this many instrument failures without a load in between the run stops."""


class JournalLine(NamedTuple):
    """A record as a worker sends it: its journal line, and the parts of it that the run reads."""

    line: bytes
    record: Record


def journal_line(record: Record, keep: str) -> JournalLine:
    """Encodes a record for the run; with `keep` = `loads` without requests and connections."""
    record = _kept(record, keep)
    brief: Record = {**record, "requests": [], "connections": []}
    return JournalLine(encode(record), brief)


@dataclass
class Recorder:
    """Takes the records of loads. Thread-safe.

    Attributes:
        journal: Gets a line per attempt.
        state: Counts the loads.
        observer: Gets progress, notes and warnings.
        schedule: What is planned.
        keep: As in the plan.
    """

    journal: Journal
    state: RunState
    observer: Observer
    schedule: Schedule
    keep: str

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._again: Counter[str] = Counter()

    def is_left(self, numbers: Iterable[int]) -> bool:
        """Whether any load of those blocks is not finished."""
        return not all(map(self.state.is_block_settled, numbers))

    def left(self, numbers: Iterable[int]) -> Iterator[Block]:
        """Those blocks that are not finished, each with only its unfinished loads."""
        for number in numbers:
            if not self.state.is_block_settled(number):
                block = self.schedule[number]
                loads = tuple(load for load in block.loads if not self.state.is_settled(load.order))
                yield Block(number, loads)

    def attempts(self, planned: PlannedLoad) -> int:
        """How many attempts a load had."""
        return self.state.attempts(planned.order)

    def attempts_of(self, blocks: Sequence[Block]) -> dict[int, int]:
        """The number of earlier attempts by the order of the load; loads without any are left out."""
        orders = (planned.order for block in blocks for planned in block.loads)
        return {order: count for order in orders if (count := self.state.attempts(order))}

    def add(self, record: Record) -> None:
        """Writes one attempt to the journal.

        Raises:
            LabError: It is the last of `MAX_IN_A_ROW` instrument failures.
            ExperimentError: The journal cannot be written; what is in it remains.
        """
        self.add_all([journal_line(record, self.keep)])

    def add_all(self, several: Sequence[JournalLine]) -> None:
        """Writes attempts to the journal. Drops duplicates: a task is redone after its worker died."""
        with self._lock:
            new = [one for one in several if self._is_new(one.record)]
            self._write([one.line for one in new])
            for one in new:
                self.state.note(one.record)
                self._in_a_row = self._in_a_row + 1 if is_instrument_failure(one.record) else 0
            in_a_row = self._in_a_row
        for one in new:
            self._tell(one.record)
        if new and in_a_row >= MAX_IN_A_ROW:
            last = new[-1].record
            raise LabError(
                f"{in_a_row} laboratories in a row gave no result, the last one: {last['load']['error']}",
                f"{last.get('hint') or 'try: firstflight doctor'}; then go on: "
                f"firstflight run --resume --out {self.journal.path.parent}",
            )

    def _tell(self, record: Record) -> None:
        load, settled = record["load"], is_settled(record)
        if settled:
            self.observer.advance()
        if is_instrument_failure(record):
            self.observer.warn(f"load {load['load_id']} has no result: {load['error']}")
            return
        if load["status"] == "failed":
            self.observer.warn(f"load {load['load_id']} failed: {load['error']}")
        if not settled:
            self._again["the client broke" if record.get("broken") else "the relay was late"] += 1
            self.observer.remark(f"{self._again.total()} made again")

    def tell_made_again(self) -> None:
        """Notes how often loads were made again, and why."""
        for why, count in self._again.items():
            self.observer.note(f"loads made again: {count}, since {why}")

    def _is_new(self, record: Record) -> bool:
        order = record["load"]["order"]
        return not self.state.is_settled(order) and attempt_of(record) > self.state.attempts(order)

    def _write(self, lines: Sequence[bytes]) -> None:
        try:
            self.journal.append_lines(lines)
        except UsageError as error:
            hint = f"free some space, then go on: firstflight run --resume --out {self.journal.path.parent}"
            raise ExperimentError(error.message, hint) from error


def _kept(record: Record, keep: str) -> Record:
    return record if keep == "all" else {**record, "requests": [], "connections": []}
