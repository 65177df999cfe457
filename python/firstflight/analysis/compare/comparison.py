"""Two sides set beside each other: first how they were made, then cell by cell.

A dimension that only one side varies, or that both hold constant, is no part of a cell's identity: it is a
difference of set-up. So an emulated run is compared with a simulated one, and a run of ours with the paper.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from firstflight.analysis.compare.sides import DIMENSIONS, Side, SideCell
from firstflight.analysis.signed_rank import CONFIDENCE
from firstflight.analysis.statistics import (
    FALSE_VERDICTS,
    NO_DIFFERENCE,
    NOT_PROVED,
    TOO_FEW_REPEATS,
    adjusted_p_values,
)
from firstflight.errors import UsageError

_ALWAYS = ("page", "rtt_ms")
_FEW = 3
"""Fewer common cells have no order worth a correlation."""


@dataclass(frozen=True)
class Pair:
    """A cell that both sides have.

    Attributes:
        key: What tells it apart.
        a: On the first side.
        b: On the second.
        p_adjusted: `p_value` raised for the number of pairs.
    """

    key: Mapping[str, Any]
    a: SideCell
    b: SideCell
    p_adjusted: float | None = None

    @property
    def difference(self) -> float:
        """Improvement of the first less that of the second, a fraction."""
        return self.a.improvement - self.b.improvement

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the difference; None where neither side has one, or a side has too few blocks for one.

        The method of variance estimates recovery: each side's distance to its ends, squared and added
        (Zou and Donner, Statistics in Medicine 27, 2008). A side without an interval counts as exact.
        """
        ends = [_ends(cell) for cell in (self.a, self.b)]
        if all(end is None for end in ends) or self._has_too_few_blocks:
            return None
        (a_low, a_high), (b_low, b_high) = (end or (0.0, 0.0) for end in ends)
        return self.difference - math.hypot(a_low, b_high), self.difference + math.hypot(a_high, b_low)

    @property
    def verdict(self) -> str:
        """Whether the two differ, by the rule of all verdicts: proof, interval and adjusted p value."""
        if not (self.a.is_proved and self.b.is_proved):
            return NOT_PROVED
        if self._has_too_few_blocks:
            return TOO_FEW_REPEATS
        if self.interval is None or self.p_adjusted is None:
            return "no interval"
        low, high = self.interval
        is_shown = (low > 0 or high < 0) and self.p_adjusted < FALSE_VERDICTS
        return "differs" if is_shown else NO_DIFFERENCE

    @property
    def p_value(self) -> float | None:
        """The level at which the interval would end at 0; None where there is no interval.

        Its distance to 0 is measured in those of the 95 % interval, on the scale of Student's t with as many
        degrees of freedom as the side with fewer blocks has.
        """
        if self.interval is None:
            return None
        blocks = [cell.blocks for cell in (self.a, self.b) if cell.blocks and cell.low is not None]
        from scipy import stats  # type: ignore[import-untyped]  # noqa: PLC0415 (takes a second)

        student = stats.t(min(blocks) - 1) if blocks else stats.norm
        low, high = self.interval
        margin = self.difference - low if self.difference > 0 else high - self.difference
        if margin == 0:
            return 0.0 if self.difference else 1.0
        away = student.ppf(0.5 + CONFIDENCE / 2) * abs(self.difference) / margin
        return float(2 * student.sf(away))

    @property
    def _has_too_few_blocks(self) -> bool:
        return any(cell.blocks is not None and cell.low is None for cell in (self.a, self.b))


@dataclass(frozen=True)
class Comparison:
    """What came of it.

    Attributes:
        a: The first side.
        b: The second side.
        setup: What they say of themselves, where it differs: name, first, second.
        pairs: Cells that both have.
        only_a: How many only the first has.
        only_b: How many only the second has.
    """

    a: Side
    b: Side
    setup: tuple[tuple[str, str, str], ...]
    pairs: tuple[Pair, ...]
    only_a: int
    only_b: int

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's, of the improvements; None below three cells or where a side is constant."""
        return _spearman([(pair.a.improvement, pair.b.improvement) for pair in self.pairs])

    @property
    def plt_rank_correlation(self) -> float | None:
        """Spearman's, of the load times of the baseline."""
        return _spearman([(pair.a.baseline_ms, pair.b.baseline_ms) for pair in self.pairs])

    @property
    def median_difference(self) -> float:
        """Median of the differences' sizes, a fraction."""
        return statistics.median(abs(pair.difference) for pair in self.pairs)

    @property
    def mean_difference(self) -> float:
        """Mean of the differences' sizes, a fraction."""
        return statistics.mean(abs(pair.difference) for pair in self.pairs)

    @property
    def same_sign(self) -> int:
        """In how many cells both are faster, or both are not."""
        return sum((pair.a.improvement > 0) == (pair.b.improvement > 0) for pair in self.pairs)


def compare(a: Side, b: Side) -> Comparison:
    """Compares two sides.

    Raises:
        UsageError: They have no cell in common.
    """
    names = [name for name in DIMENSIONS if name in _ALWAYS or (a.varies(name) and b.varies(name))]
    first, second = (_by_key(side, names) for side in (a, b))
    pairs = [
        Pair(dict(zip(names, key, strict=True)), first[key], second[key]) for key in first if key in second
    ]
    if not pairs:
        raise UsageError(
            f"{a.name} and {b.name} have no page and RTT in common", f"{_pages(a)} here, {_pages(b)} there"
        )
    raised = adjusted_p_values([pair.p_value for pair in pairs])
    pairs = [replace(pair, p_adjusted=value) for pair, value in zip(pairs, raised, strict=True)]
    return Comparison(a, b, _setup(a, b), tuple(pairs), len(first) - len(pairs), len(second) - len(pairs))


def _by_key(side: Side, names: list[str]) -> dict[tuple[Any, ...], SideCell]:
    """Cells by what tells them apart; several of one key cannot be compared."""
    found: dict[tuple[Any, ...], SideCell] = {}
    for cell in side.cells:
        key = tuple(cell.key.get(name) for name in names)
        if key in found:
            varying = ", ".join(name for name in DIMENSIONS if name not in names and side.varies(name))
            raise UsageError(
                f"{side.name} has several cells of {cell.key['page']} at {cell.key['rtt_ms']:g} ms",
                f"the other side does not vary {varying}: compare a run of one value",
            )
        found[key] = cell
    return found


def _setup(a: Side, b: Side) -> tuple[tuple[str, str, str], ...]:
    names = list(dict.fromkeys([*a.setup, *b.setup]))
    rows = ((name, a.setup.get(name, ""), b.setup.get(name, "")) for name in names)
    return tuple(row for row in rows if row[1] != row[2])


def _pages(side: Side) -> str:
    cells = dict.fromkeys(f"{cell.key['page']} {cell.key['rtt_ms']:g} ms" for cell in side.cells)
    return ", ".join([*cells][:4]) + (", ..." if len(cells) > 4 else "")


def _ends(cell: SideCell) -> tuple[float, float] | None:
    """Distances from the improvement down and up to the ends of its interval."""
    if cell.low is None or cell.high is None:
        return None
    return cell.improvement - cell.low, cell.high - cell.improvement


def _spearman(values: list[tuple[float, float]]) -> float | None:
    first, second = zip(*values, strict=True)
    if len(values) < _FEW or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy import stats  # noqa: PLC0415

    return float(stats.spearmanr(first, second).statistic)
