"""Where the loads of a run are written down: journal, tally and watch together, each attempt once."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.engines.engine import Record
from firstflight.errors import ExperimentError, LabError, UsageError
from firstflight.experiment.attempts import attempt_of, is_settled
from firstflight.experiment.schedule import Block, Schedule
from firstflight.experiment.tally import Tally
from firstflight.experiment.watch import Watch
from firstflight.model.load import PlannedLoad
from firstflight.results import Journal
from firstflight.results.journal import encode, is_instrument_failure

MAX_IN_A_ROW = 5
"""So many instrument failures without a load in between stop the run."""


class Made(NamedTuple):
    """A record as a worker sends it: its journal line, and the parts of it that a run looks at."""

    line: bytes
    record: Record


def made(record: Record, keep: str) -> Made:
    """What a worker sends of a record; with `keep` = `loads` without its requests and connections."""
    record = _kept(record, keep)
    brief: Record = {**record, "requests": [], "connections": []}
    return Made(encode(record), brief)


@dataclass
class Book:
    """Takes what was made. Safe to use from several threads.

    Attributes:
        journal: Gets a line per attempt.
        tally: Counts.
        watch: Is told.
        schedule: What is planned.
        keep: As in the plan.
    """

    journal: Journal
    tally: Tally
    watch: Watch
    schedule: Schedule
    keep: str

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row = 0

    def is_left(self, numbers: Iterable[int]) -> bool:
        """Whether anything of those blocks is missing."""
        return not all(map(self.tally.is_block_settled, numbers))

    def left(self, numbers: Iterable[int]) -> Iterator[Block]:
        """What is missing of those blocks: each with only those of its loads that no run has settled."""
        for number in numbers:
            if not self.tally.is_block_settled(number):
                block = self.schedule[number]
                loads = tuple(load for load in block.loads if not self.tally.is_settled(load.order))
                yield Block(number, loads)

    def attempts(self, planned: PlannedLoad) -> int:
        """How often a load was made."""
        return self.tally.attempts(planned.order)

    def attempts_of(self, blocks: Sequence[Block]) -> dict[int, int]:
        """Earlier attempts by the order of the load, where there were any."""
        orders = (planned.order for block in blocks for planned in block.loads)
        return {order: count for order in orders if (count := self.tally.attempts(order))}

    def add(self, record: Record) -> None:
        """Writes down one attempt.

        Raises:
            LabError: It is the last of `MAX_IN_A_ROW` instrument failures.
            ExperimentError: The journal cannot be written; what was measured is kept.
        """
        self.add_all([made(record, self.keep)])

    def add_all(self, several: Sequence[Made]) -> None:
        """Writes down attempts; those that are there already, made twice since a worker died, are dropped."""
        with self._lock:
            new = [one for one in several if self._is_new(one.record)]
            self._write([one.line for one in new])
            for one in new:
                self.tally.note(one.record)
                self._in_a_row = self._in_a_row + 1 if is_instrument_failure(one.record) else 0
            in_a_row = self._in_a_row
        for one in new:
            self.watch.made(one.record, settled=is_settled(one.record))
        if new and in_a_row >= MAX_IN_A_ROW:
            last = new[-1].record
            raise LabError(
                f"{in_a_row} laboratories in a row gave no result, the last one: {last['load']['error']}",
                f"{last.get('hint') or 'try: firstflight doctor'}; then go on: "
                f"firstflight run --resume --out {self.journal.path.parent}",
            )

    def _is_new(self, record: Record) -> bool:
        order = record["load"]["order"]
        return not self.tally.is_settled(order) and attempt_of(record) > self.tally.attempts(order)

    def _write(self, lines: Sequence[bytes]) -> None:
        try:
            self.journal.append_lines(lines)
        except UsageError as error:
            hint = f"free some space, then go on: firstflight run --resume --out {self.journal.path.parent}"
            raise ExperimentError(error.message, hint) from error


def _kept(record: Record, keep: str) -> Record:
    return record if keep == "all" else {**record, "requests": [], "connections": []}
