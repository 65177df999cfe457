"""One cell pair with everything that is known of it, and its names in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firstflight.analysis.cells import SIDES, CellPair
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.records import Cell, known
from firstflight.analysis.words import interval, percent, rates, rtt, varying


@dataclass(frozen=True)
class Case:
    """A cell pair of a page.

    Attributes:
        pair: Its loads.
        cell: Its entry in the summary.
        explanation: Its critical paths; `None`: not known.
        setting: What distinguishes its path from others of the page, apart from the RTT; may be empty.
    """

    pair: CellPair
    cell: Cell
    explanation: Explanation | None
    setting: str

    @property
    def counts(self) -> bool:
        """Whether it has a result: loads to compare, and proof."""
        return bool(self.cell["n"]) and bool(self.cell["proof"]["ok"])

    @property
    def is_exact(self) -> bool:
        """Whether nothing in its loads was random."""
        return bool(self.cell["exact"])

    @property
    def rtt_ms(self) -> float:
        """Round-trip time, ms."""
        return float(self.cell["rtt_ms"])

    @property
    def point(self) -> float:
        """The improvement, a signed fraction."""
        return known(self.cell["improvement"]["point"])

    @property
    def saved_ms(self) -> float:
        """The difference of the medians, signed, ms."""
        return known(self.cell["baseline_ms"]["median"]) - known(self.cell["treatment_ms"]["median"])

    @property
    def phrases(self) -> tuple[str, str]:
        """Names of baseline and treatment in sentences: ``without TFO``, ``with TFO``."""
        baseline, treatment = (self.pair.phrases[side] for side in SIDES)
        return baseline, treatment

    @property
    def bound_ms(self) -> float | None:
        """What Fast Open could save at most, ms; `None`: not known, or something else is compared."""
        found = self.explanation
        return found.could_save_ms if found and found.bounds_the_saving else None

    @property
    def where(self) -> str:
        """``100 ms RTT``, with the setting if the page has several."""
        return f"{rtt(self.rtt_ms)} ms RTT" + (f" ({self.setting})" if self.setting else "")

    @property
    def improvement(self) -> str:
        """``+16.3 % (95 % interval +12.0 to +18.4)``; for a simulation without randomness ``(exact)``."""
        found = self.cell["improvement"]
        known = interval(found["low"], found["high"])
        without = "exact" if self.is_exact else "no interval"
        return f"{percent(found['point'])} ({f'95 % interval {known}' if known else without})"

    def is_apart_from(self, other: Case) -> bool:
        """Whether the two intervals of the improvement do not overlap."""
        mine, theirs = self.cell["improvement"], other.cell["improvement"]
        if mine["low"] is None or theirs["low"] is None:
            return False
        return mine["low"] > known(theirs["high"]) or known(mine["high"]) < theirs["low"]


def cases(
    pairs: Sequence[CellPair], cells: Sequence[Cell], explanations: Sequence[Explanation]
) -> dict[str, list[Case]]:
    """The cases of each page, in the order of the summary.

    Args:
        pairs: From `cell_pairs`.
        cells: Their entries in the summary, in the same order.
        explanations: Of those pairs that can be explained.
    """
    explained = {id(found.pair): found for found in explanations}
    fields = varying(cells)
    found: dict[str, list[Case]] = {}
    for pair, cell in zip(pairs, cells, strict=True):
        case = Case(pair, cell, explained.get(id(pair)), _setting(cell, fields))
        found.setdefault(pair.key.page, []).append(case)
    return found


def overlap(one: Case, other: Case) -> str:
    """What the two intervals of the improvement say about the difference."""
    if one.is_exact and other.is_exact:
        return "both are exact"
    if None in (one.cell["improvement"]["low"], other.cell["improvement"]["low"]):
        return "without intervals this may be random"
    if one.is_apart_from(other):
        return "the two 95 % intervals do not overlap"
    return "the two 95 % intervals overlap"


def by_setting(found: Sequence[Case]) -> list[list[Case]]:
    """Cases with a result, grouped by everything except the RTT, in ascending order of RTTs."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        if case.counts:
            groups.setdefault(case.setting, []).append(case)
    return [sorted(group, key=lambda case: case.rtt_ms) for group in groups.values()]


def _setting(cell: Cell, fields: Sequence[str]) -> str:
    parts = []
    if {"down_mbps", "up_mbps"} & set(fields):
        parts.append(f"{rates(cell)} Mbit/s")
    if "loss" in fields:
        parts.append(f"{100 * cell['loss']:g} % loss")
    parts += [str(cell[name]) for name in ("topology", "client", "engine") if name in fields]
    parts += [f"{cell['cookies']} cookies"] if "cookies" in fields else []
    return ", ".join([*parts, *([str(cell["treatment"])] if "treatment" in fields else [])])
