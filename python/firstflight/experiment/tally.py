"""What has been made of a schedule: some bytes per load and cell, however large the records were."""

from array import array
from dataclasses import dataclass

from firstflight.errors import UsageError
from firstflight.experiment.attempts import attempt_of, is_settled
from firstflight.experiment.schedule import Schedule
from firstflight.results import LoadRecord
from firstflight.results.journal import is_instrument_failure


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


class Tally:
    """Counts loads by their place in the order of the run; not safe for several threads at once.

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
            UsageError: The schedule has another load at that place, or none.
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
        """Counts a record of a planned load; a later one of the same load replaces it.

        An instrument failure is counted apart and replaces nothing.
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
        self._plt_ms[order] = load["plt_ms"] if ok else 0.0

    def plt_ms(self, order: int) -> float | None:
        """Page load time of the load at that place, ms; None if it was not made or did not end ok."""
        return self._plt_ms[order] if self._ok[order] else None

    def attempts(self, order: int) -> int:
        """How often the load at that place was made."""
        return self._attempts[order]

    def is_settled(self, order: int) -> bool:
        """Whether the load at that place is made no more."""
        return bool(self._settled[order])

    @property
    def settled(self) -> int:
        """How many loads are made no more."""
        return sum(self._settled)

    def is_block_settled(self, number: int) -> bool:
        """Whether nothing of that block is left to be made."""
        first = number * self._schedule.block_size
        return all(self._settled[first : first + self._schedule.block_size])

    def outcome(self, signal: int | None, planned: int) -> Outcome:
        """The counts; `signal` is what stopped the run, `planned` how many loads it was to make."""
        return Outcome(
            planned=planned,
            made=self._schedule.loads - self._attempts.count(0),
            unproved=sum(self._unproved),
            empty_cells=sum(made > 0 and not ok for made, ok in zip(self._made_in, self._ok_in, strict=True)),
            signal=signal,
            instrument_failures=self._instrument_failures,
            left=max(0, planned - self.settled),
        )
