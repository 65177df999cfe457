"""Which blocks are due: all at once, or, with `until`, round by round for the cells still too wide.

Every round is made whole before the next is decided on, and what is decided depends on the journal alone: a
run that was stopped goes on as it would have. To look at the data before stopping costs coverage;
`FIRST_LOOK` keeps it (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from firstflight.experiment.schedule import Schedule
from firstflight.experiment.tally import Tally


@dataclass(frozen=True)
class Round:
    """What is due next.

    Attributes:
        blocks: Numbers of the blocks.
        loads: Loads of this round and those before it.
        wide: Groups of cells whose interval was found too wide; 0 in the first round.
    """

    blocks: Sequence[int]
    loads: int
    wide: int


class Rounds:
    """The rounds of a run; iterate, and make each before asking for the next.

    Args:
        schedule: What is planned.
        tally: What was made.
        until: Width of the interval, as in the plan.
    """

    def __init__(self, schedule: Schedule, tally: Tally, until: float | Literal["off"]) -> None:
        self._schedule = schedule
        self._tally = tally
        self._until = until
        self._due: list[Sequence[int]] = []

    def __iter__(self) -> Iterator[Round]:
        first, *more = self._schedule.rounds
        self._due = [first]
        yield Round(first, self.loads, 0)
        for blocks in more:
            wide = self._wide(self._blocks())
            if not wide:
                return
            self._due.append([number for number in blocks if self._schedule.pair(number) in wide])
            yield Round(self._due[-1], self.loads, len(wide))

    @property
    def loads(self) -> int:
        """Loads of the rounds begun so far."""
        return sum(map(len, self._due)) * self._schedule.block_size

    def too_wide(self) -> dict[str, float | None]:
        """The groups of cells that did not get narrow enough, with their widths; None: no interval."""
        blocks = self._blocks() if self._until != "off" else {}
        return {
            self._schedule.pair_name(pair): self._width(blocks[pair]) for pair in sorted(self._wide(blocks))
        }

    def _wide(self, blocks: dict[int, list[int]]) -> set[int]:
        widths = {pair: self._width(numbers) for pair, numbers in blocks.items()}
        return {
            pair
            for pair, width in widths.items()
            if not self._schedule.is_exact(pair) and (width is None or width > float(self._until))
        }

    def _blocks(self) -> dict[int, list[int]]:
        """The blocks of each group of cells that were due so far."""
        found: dict[int, list[int]] = {}
        for number in (number for blocks in self._due for number in blocks):
            found.setdefault(self._schedule.pair(number), []).append(number)
        return found

    def _width(self, blocks: Sequence[int]) -> float | None:
        """The width of the widest interval of the improvements over these blocks, a fraction."""
        plts_ms: dict[str, list[tuple[float, float]]] = {}
        for number in blocks:
            for treatment, pair in self._pairs(number):
                plts_ms.setdefault(treatment, []).append(pair)
        widths = [_width_of(plts_ms.get(name, [])) for name in self._schedule.treated]
        return None if None in widths else max(width for width in widths if width is not None)

    def _pairs(self, block: int) -> Iterator[tuple[str, tuple[float, float]]]:
        """PLT of the baseline and of each treatment of a block, where both loads ended ok."""
        loads = self._schedule[block].loads
        plt_ms = {load.treatment: self._tally.plt_ms(load.order) for load in loads}
        baseline_ms = plt_ms.pop(loads[0].baseline)
        for treatment, treated_ms in plt_ms.items():
            if baseline_ms is not None and treated_ms is not None:
                yield treatment, (baseline_ms, treated_ms)


def _width_of(pairs: Sequence[tuple[float, float]]) -> float | None:
    from firstflight.analysis.statistics import improvement  # noqa: PLC0415 (numpy takes a while)

    found = improvement([baseline_ms for baseline_ms, _ in pairs], [treated_ms for _, treated_ms in pairs])
    return None if found["low"] is None or found["high"] is None else found["high"] - found["low"]
