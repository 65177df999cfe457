"""summary.json: what the loads of a run say, per cell pair, with proof and doubts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firstflight.analysis.cells import MODES, CellPair, cell_pairs
from firstflight.analysis.doubts import doubt_of_many, doubt_of_what_if, doubt_of_width
from firstflight.analysis.proof import prove
from firstflight.analysis.shift import shift
from firstflight.analysis.statistics import (
    CONFIDENCE,
    RESAMPLES,
    adjusted_p_values,
    coefficient_of_variation,
    improvement,
    median,
    null_halves,
    null_improvement,
    p_value,
    verdict,
)
from firstflight.analysis.warnings import find_warnings, without_result
from firstflight.analysis.words import caption
from firstflight.errors import UsageError
from firstflight.results import Journal, LoadRecord, journal_path, write_whole
from firstflight.results.files import plan_keys

SUMMARY_FORMAT = "firstflight-summary/2"
"""Format and version of summary.json."""


def summarize(folder: Path) -> dict[str, Any]:
    """Summarise a results folder and write its ``summary.json``.

    Args:
        folder: The results folder; its journal is read, and the width to repeat until in its plan.

    Returns:
        What was written: `cells` (one per cell pair) and `warnings`. docs/results.md names every key.

    Raises:
        UsageError: The folder has no readable journal or no load, or cannot be written to.
    """
    journal = Journal(journal_path(folder))
    pairs = cell_pairs(journal.records())
    return write_summary(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)


def write_summary(
    folder: Path, pairs: Sequence[CellPair], *, torn: bool, failures: Sequence[LoadRecord] = ()
) -> dict[str, Any]:
    """As `summarize`, of cell pairs that are at hand already.

    Args:
        folder: Where ``summary.json`` goes.
        pairs: From `cell_pairs`.
        torn: Whether the journal ended in a torn line.
        failures: The journal's instrument failures.
    """
    if not pairs:
        hint = "run the experiment, or go on with `--resume`"
        raise UsageError(f"{folder}: no load has ended yet", hint)
    summary = summarize_pairs(pairs, torn=torn, failures=failures)
    summary["warnings"] += doubt_of_width(summary["cells"], _until(folder))
    summary["warnings"] += doubt_of_what_if(plan_keys(folder))
    write_whole(folder / "summary.json", (json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode())
    return summary


def summarize_pairs(
    pairs: Sequence[CellPair], *, torn: bool = False, failures: Sequence[LoadRecord] = ()
) -> dict[str, Any]:
    """The summary of cell pairs; the same pairs give the same summary.

    Args:
        pairs: From `cell_pairs`.
        torn: Whether the journal ended in a torn line.
        failures: The journal's instrument failures.
    """
    cells = _adjusted([_cell(pair) for pair in pairs])
    return {
        "format": SUMMARY_FORMAT,
        "interval": {
            "confidence": CONFIDENCE,
            "method": "paired percentile bootstrap",
            "resamples": RESAMPLES,
        },
        "cells": cells,
        "instrument_failures": {
            "attempts": len(failures),
            "loads_without_result": len(without_result(pairs, failures)),
        },
        "warnings": [*find_warnings(pairs, torn=torn, failures=failures), *doubt_of_many(cells)],
    }


def _until(folder: Path) -> float | None:
    """The width that the plan asks for, a fraction; None where it asks for none or cannot be read."""
    try:
        return float(str(plan_keys(folder)["until"]).removesuffix("%")) / 100
    except (KeyError, ValueError):
        return None


def _cell(pair: CellPair) -> dict[str, Any]:
    tcp_ms, tfo_ms = (pair.plt_ms(mode) for mode in MODES)
    paired = (tcp_ms, tfo_ms) if pair.blocks else ([], [])
    found, null = improvement(*paired), null_improvement(paired[0])
    return {
        **pair.treatment,
        "caption": caption(pair.treatment),
        "n": len(pair.blocks),
        **{f"{mode}_loads": _counts(pair, mode) for mode in MODES},
        "tcp_ms": median(tcp_ms),
        "tfo_ms": median(tfo_ms),
        "tcp_cv": coefficient_of_variation(tcp_ms),
        "tfo_cv": coefficient_of_variation(tfo_ms),
        "improvement": found,
        "shift_ms": shift(*paired),
        "p_value": p_value(*paired),
        "verdict": verdict(found),
        "null_improvement": null["point"],
        "null_ms": [median(half)["median"] for half in null_halves(paired[0])],
        "null_low": null["low"],
        "null_high": null["high"],
        "proof": prove(pair),
    }


def _adjusted(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with `p_adjusted`: a table of many cells shows small p values by chance alone."""
    raised = adjusted_p_values([cell["p_value"] for cell in cells])
    return [{**cell, "p_adjusted": value} for cell, value in zip(cells, raised, strict=True)]


def _counts(pair: CellPair, mode: str) -> dict[str, int]:
    return {"ok": len(pair.ok[mode]), "failed": len(pair.failed[mode])}
