"""Summarises the loads of a run by cell pair, with proof and warnings; reads a results folder once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import cast

from firstflight.analysis.cells import SIDES, CellPair, cell_pairs
from firstflight.analysis.changes import SAME_WITHIN_MS
from firstflight.analysis.critical_path.explanation import Explanation, explain
from firstflight.analysis.proof import prove
from firstflight.analysis.records import Cell, Counts, Estimate, Measure, Side, Summary
from firstflight.analysis.signed_rank import CONFIDENCE
from firstflight.analysis.statistics import (
    EXACT,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    adjusted_p_values,
    blocks_needed,
    coefficient_of_variation,
    median,
    null_halves,
    null_improvement,
    p_value,
    shift,
    verdict,
)
from firstflight.analysis.warnings import (
    find_warnings,
    warn_of_many_cells,
    warn_of_too_few_repeats,
    warn_of_what_if,
    warn_of_width,
    without_result,
)
from firstflight.analysis.words import caption
from firstflight.deferred import numpy as np
from firstflight.errors import UsageError
from firstflight.results import Journal, LoadRecord, journal_path
from firstflight.results.files import plan_keys, read_profile
from firstflight.results.schema import LOADS

SUMMARY_FORMAT = "firstflight-summary/4"
"""Format and version of summary.json.

In version 2 the sides were the modes: `tcp_ms` and `tfo_ms`. In version 1 the improvement compared medians.
"""


MOST_EXPLAINED = 48
"""With more cells than this the figure of critical paths is too long to read and is left out."""


def summarize(folder: Path) -> Summary:
    """Summarises a results folder. It writes nothing.

    Args:
        folder: The results folder. Its journal is read, and from its plan `until`.

    Returns:
        What ``summary.json`` holds: `cells` (one per cell pair) and `warnings`; see docs/results.md.

    Raises:
        UsageError: The folder has no readable journal or no load.
    """
    journal = Journal(journal_path(folder))
    pairs = cell_pairs(journal.records())
    return summarize_folder(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)


def summarize_folder(
    folder: Path, pairs: Sequence[CellPair], *, torn: bool, failures: Sequence[LoadRecord] = ()
) -> Summary:
    """As `summarize`, for cell pairs that exist already.

    Args:
        folder: The results folder.
        pairs: From `cell_pairs`.
        torn: Whether the journal ended in an incomplete line.
        failures: The journal's instrument failures.

    Raises:
        UsageError: There is no load.
    """
    if not pairs:
        hint = "run the experiment, or continue with `--resume`"
        raise UsageError(f"{folder}: no load has ended yet", hint)
    summary = summarize_pairs(pairs, torn=torn, failures=failures)
    summary["warnings"] += warn_of_width(summary["cells"], _until(folder))
    summary["warnings"] += warn_of_what_if(plan_keys(folder))
    return summary


def summarize_pairs(
    pairs: Sequence[CellPair], *, torn: bool = False, failures: Sequence[LoadRecord] = ()
) -> Summary:
    """The summary of cell pairs. It depends on its arguments alone.

    Args:
        pairs: From `cell_pairs`.
        torn: Whether the journal ended in an incomplete line.
        failures: The journal's instrument failures.
    """
    cells = _judged([_cell(pair) for pair in pairs])
    return {
        "format": SUMMARY_FORMAT,
        "interval": {"confidence": CONFIDENCE, "method": "Hodges-Lehmann, signed rank"},
        "cells": cells,
        "instrument_failures": {
            "attempts": len(failures),
            "loads_without_result": len(without_result(pairs, failures)),
        },
        "warnings": [
            *find_warnings(pairs, torn=torn, failures=failures),
            *warn_of_too_few_repeats(cells),
            *warn_of_many_cells(cells),
        ],
    }


@dataclass(frozen=True)
class Evidence:
    """What answers are derived from.

    Attributes:
        pairs: From `cell_pairs`.
        summary: The summary of these pairs, from `summarize_pairs`.
        explanations: From `explain`, of pairs that can be explained; without them answers name fewer causes.
    """

    pairs: Sequence[CellPair]
    summary: Summary
    explanations: Sequence[Explanation] = ()


@dataclass(frozen=True)
class Measured:
    """A results folder in memory.

    Attributes:
        folder: The results folder.
        records: Its loads.
        pairs: The cell pairs of its loads.
        summary: The contents of ``summary.json``.
    """

    folder: Path
    records: Sequence[LoadRecord]
    pairs: Sequence[CellPair]
    summary: Summary

    @cached_property
    def explanations(self) -> list[Explanation]:
        """The explanations of those pairs that can be explained.

        Raises:
            UsageError: A page's profile cannot be read.
        """
        return explain(self.pairs, partial(read_profile, self.folder))

    @property
    def evidence(self) -> Evidence:
        """What answers and the report are derived from; without explanations if there are many cells."""
        return Evidence(
            self.pairs, self.summary, self.explanations if len(self.pairs) <= MOST_EXPLAINED else []
        )


def read_measured(folder: Path) -> Measured:
    """Reads a results folder.

    Raises:
        UsageError: The folder has no readable journal or no load.
    """
    journal = Journal(journal_path(folder))
    records = journal.records()
    pairs = cell_pairs(records)
    summary = summarize_folder(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)
    return Measured(folder, records, pairs, summary)


def _until(folder: Path) -> float | None:
    """The interval width that the plan asks for, a fraction; `None` if it has none or cannot be read."""
    try:
        return float(str(plan_keys(folder)["until"]).removesuffix("%")) / 100
    except (KeyError, ValueError):
        return None


def _cell(pair: CellPair) -> Cell:
    plt_ms = {side: pair.plt_ms(side) for side in SIDES}
    paired = (plt_ms["baseline"], plt_ms["treatment"]) if pair.blocks else ([], [])
    tested = ([], []) if pair.is_exact else paired
    null, saved = null_improvement(tested[0]), shift(*paired)
    return {
        **pair.setting,
        "caption": caption(pair.setting),
        "n": len(pair.blocks),
        "exact": pair.is_exact,
        "baseline_loads": _counts(pair, "baseline"),
        "treatment_loads": _counts(pair, "treatment"),
        "baseline_ms": _median(pair, plt_ms["baseline"]),
        "treatment_ms": _median(pair, plt_ms["treatment"]),
        "baseline_cv": None if pair.is_exact else coefficient_of_variation(plt_ms["baseline"]),
        "treatment_cv": None if pair.is_exact else coefficient_of_variation(plt_ms["treatment"]),
        "improvement": pair.improvement,
        "shift_ms": {**saved, "low": None, "high": None} if pair.is_exact else saved,
        "measures": _measures(pair),
        "same_within_ms": None,
        "p_value": p_value(*tested),
        "null_improvement": null["point"],
        "null_ms": [median(half)["median"] for half in null_halves(tested[0])],
        "null_low": null["low"],
        "null_high": null["high"],
        "proof": prove(pair),
        "p_adjusted": None,
        "verdict": "",
        "blocks_needed": None,
    }


MEASURES = (
    "plt_ms",
    "first_byte_ms",
    "first_paint_ms",
    "first_contentful_paint_ms",
    "lcp_ms",
    "requests",
    "connections",
    "bytes_down",
)
"""Columns of the loads table that are shown side by side, if both sides have them."""

_MEASURED = [column for name in MEASURES for column in LOADS.columns if column.name == name]


def _measures(pair: CellPair) -> dict[str, Measure]:
    """The quantities that both sides of paired blocks have, by column."""
    found: dict[str, Measure] = {}
    for column in _MEASURED:
        both = [(column.of(one), column.of(other)) for one, other in pair.paired]
        known = [(float(one), float(other)) for one, other in both if None not in (one, other)]
        if known:
            baseline, treatment = zip(*known, strict=True)
            more = shift(treatment, baseline)
            found[column.name] = {
                "baseline": float(np.median(baseline)),
                "treatment": float(np.median(treatment)),
                "difference": {**more, "low": None, "high": None} if pair.is_exact else more,
            }
    return found


def _same_within_ms(cell: Cell) -> float | None:
    """The bound within which both PLTs are the same, ms: the interval of their difference lies within it.

    For versions of a page it also exists when the difference shown is within the tolerance.
    """
    if "plt_ms" not in cell["measures"]:
        return None
    difference = cell["measures"]["plt_ms"]["difference"]
    ends = ("point",) if cell["exact"] else ("low", "high")
    known = [
        abs(end) for name in ends if (end := cast(Mapping[str, float | None], difference)[name]) is not None
    ]
    within = max(known, default=math.inf)
    is_small = "version" in cell.get("differs", {}) and within <= SAME_WITHIN_MS
    may_be_same = cell["verdict"] in (FASTER, SLOWER, EXACT) and is_small
    return within if known and (cell["verdict"] == NO_DIFFERENCE or may_be_same) else None


def _median(pair: CellPair, values: Sequence[float]) -> Estimate:
    """The median; of a model without randomness without an interval, which would have no width."""
    found = median(values)
    return {**found, "low": None, "high": None} if pair.is_exact else found


def _judged(cells: list[Cell]) -> list[Cell]:
    """The cells with `p_adjusted`, `verdict`, `blocks_needed` and `same_within_ms`."""
    values = [cell["p_value"] for cell in cells]
    family = sum(value is not None for value in values)
    needed = blocks_needed(family)
    judged: list[Cell] = [
        {
            **cell,
            "p_adjusted": raised,
            "verdict": verdict(
                blocks=cell["n"],
                is_proved=cell["proof"]["ok"],
                is_exact=cell["exact"],
                low=cell["improvement"]["low"],
                high=cell["improvement"]["high"],
                p_adjusted=raised,
                family=family,
            ),
            "blocks_needed": None if cell["p_value"] is None else needed,
        }
        for cell, raised in zip(cells, adjusted_p_values(values), strict=True)
    ]
    return [{**cell, "same_within_ms": _same_within_ms(cell)} for cell in judged]


def _counts(pair: CellPair, side: Side) -> Counts:
    return {"ok": len(pair.ok[side]), "failed": len(pair.failed[side])}
