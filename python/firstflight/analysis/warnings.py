"""Warnings: each is a reason to check a result before you trust it, with advice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypedDict

from firstflight.analysis.cells import SIDES, CellPair, cell_name
from firstflight.analysis.proof import prove
from firstflight.analysis.records import Cell, Effect, Warning
from firstflight.analysis.statistics import (
    NO_DIFFERENCE,
    TOO_FEW_REPEATS,
    improvement,
    null_improvement,
    outliers,
)
from firstflight.analysis.words import seconds, some
from firstflight.model.treatment import FAST_OPEN, MODES, PLAIN
from firstflight.results import LoadRecord
from firstflight.results.records import attempt_of, numeric, plt_ms
from firstflight.text import plural


def find_warnings(
    pairs: Sequence[CellPair], *, torn: bool = False, failures: Sequence[LoadRecord] = ()
) -> list[Warning]:
    """The warnings about the loads of a run, the most serious first.

    Args:
        pairs: The cell pairs of the run.
        torn: Whether the journal ended in an incomplete line.
        failures: The journal's instrument failures.
    """
    found = [found for check in _CHECKS for found in check(pairs)]
    found.extend(_instrument_failures(pairs, failures))
    if torn:
        found.append(
            {
                "kind": "cut short",
                "message": "the last load was cut short when the run was killed; it is left out",
                "advice": "continue with `firstflight run --resume`",
            }
        )
    return found


def without_result(pairs: Sequence[CellPair], failures: Sequence[LoadRecord]) -> set[str]:
    """The loads without a result: their laboratory failed, and they were not made since."""
    made = {record["load"]["load_id"] for pair in pairs for record in pair.records()}
    return {record["load"]["load_id"] for record in failures} - made


def _instrument_failures(pairs: Sequence[CellPair], failures: Sequence[LoadRecord]) -> Iterator[Warning]:
    if failures:
        reasons = some([str(record["load"]["error"]) for record in failures])
        missing = len(without_result(pairs, failures))
        left = f"{plural(missing, 'load')} of the plan {'has' if missing == 1 else 'have'} no result"
        resume = "make what is missing with `firstflight run --resume`; with `--jobs 1` if memory is short"
        yield {
            "kind": "instrument failures",
            "message": f"the laboratory failed {plural(len(failures), 'time')}, which is no load's result: "
            f"{left if missing else 'every load was made again'} ({reasons})",
            "advice": resume if missing else "run `firstflight doctor` if this goes on",
        }


def _proof(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    bad = [pair for pair in pairs if not prove(pair)["ok"]]
    if bad:
        records = (record for pair in bad for side in SIDES for record in pair.loads(side))
        said = [str(text) for record in records for text in record["proof"].get("disagreements") or []]
        example = f'; for example "{said[0]}"' if said else ""
        yield {
            "kind": "no proof",
            "message": f"not proved that loads did what their treatment promises: {_where(bad)}{example}",
            "advice": "no verdict without proof; run `firstflight doctor`, see tfo_offered and tfo_accepted",
        }


def _failed_loads(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    cells, failed = _select(pairs, lambda record: record["load"]["status"] == "failed")
    if failed:
        reasons = some([str(record["load"]["error"]) for record in failed])
        loads = plural(len(failed), "load")
        be = "is" if len(failed) == 1 else "are"
        yield {
            "kind": "failed loads",
            "message": f"{loads} failed and {be} in no median: {_where(cells)} ({reasons})",
            "advice": "fix the cause and run again; failures that hit one side more often are a result too",
        }


def _counted(
    kind: str, count: Callable[[LoadRecord], int], thing: str, message: str, advice: str
) -> Callable[[Sequence[CellPair]], Iterator[Warning]]:
    """Makes a check that warns if `count` finds anything in the records of loads.

    Args:
        kind: The warning's kind.
        count: Returns how many such things a load has.
        thing: The name of one of them.
        message: The warning's text; `{things}` and `{loads}` stand for their numbers.
        advice: The warning's advice.
    """

    def check(pairs: Sequence[CellPair]) -> Iterator[Warning]:
        cells, hit = _select(pairs, lambda record: count(record) > 0)
        if hit:
            things, loads = plural(sum(map(count, hit)), thing), plural(len(hit), "load")
            text = message.format(things=things, loads=loads)
            yield {"kind": kind, "message": f"{text}: {_where(cells)}", "advice": advice}

    return check


def _unmatched(record: LoadRecord) -> int:
    return int(numeric(record["load"], "unmatched_requests") or 0)


def _failed_requests(record: LoadRecord) -> int:
    return int(numeric(record["load"], "failed_requests") or 0)


def _earlier_attempts(record: LoadRecord) -> int:
    return attempt_of(record) - 1


def _fallbacks(record: LoadRecord) -> int:
    """How many connections of a load with QUIC used TLS over TCP instead."""
    if record["load"]["mode"] not in MODES or not MODES[record["load"]["mode"]].quic:
        return 0
    rows = record["connections"]
    return sum(row.get("protocol") == "tcp" and row["origin"].startswith("https:") for row in rows)


def _late_relay(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    cells, late = _select(pairs, lambda record: bool(record["relay"].get("late")))
    if late:
        worst_ms = max(float(record["relay"].get("late_max_ms") or 0) for record in late)
        seen = f"{plural(len(late), 'load')} (worst {worst_ms:.1f} ms)"
        yield {
            "kind": "late relay",
            "message": f"the relay was late beyond its bound in {seen}: {_where(cells)}",
            "advice": "leave the machine alone while it measures, or run fewer labs at once (`--jobs`)",
        }


def _alone(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    cells = [pair for pair in pairs if pair.blocks and _without_partner(pair)]
    if cells:
        loads = plural(sum(map(_without_partner, cells)), "load")
        yield {
            "kind": "blocks without a pair",
            "message": f"{loads} ended ok, the other load of the block did not: not counted, {_where(cells)}",
            "advice": "continue with `--resume`; where loads failed, fix the cause and run again",
        }


def _outliers(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    found = [(pair, side, place) for pair in pairs for side in SIDES for place in outliers(pair.plt_ms(side))]
    records = (pair.loads(side)[place] for pair, side, place in found)
    far = {record["load"]["load_id"]: record for record in records}
    if far:
        worst = max(far.values(), key=plt_ms)
        counts = f"{plural(len(far), 'load')} took far more or less than the median of the cell"
        yield {
            "kind": "outliers",
            "message": f"{counts}; all count; "
            f"the longest: {worst['load']['load_id']}, {seconds(plt_ms(worst))}",
            "advice": "medians hardly move, means do; see its requests and retransmissions",
        }


def _unpaired(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    alone = [pair for pair in pairs if not pair.blocks]
    if alone:
        yield {
            "kind": "nothing to compare",
            "message": f"no block has an ok load of baseline and treatment: {_where(alone)}",
            "advice": f"compare two (`--mode {PLAIN},{FAST_OPEN}`), or continue with `--resume`",
        }


def _noise(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    noisy = [pair for pair in pairs if _is_noise(pair)]
    if noisy:
        yield {
            "kind": "noise",
            "message": f"the baseline differs from itself by as much as from the treatment: {_where(noisy)}",
            "advice": "the effect is not larger than the noise; more repeats on a quiet machine would tell",
        }


def _simulated(pairs: Sequence[CellPair]) -> Iterator[Warning]:
    if any(pair.key.engine == "simulate" for pair in pairs):
        yield {"kind": "simulated", "message": caution(), "advice": SIMULATED_ADVICE}


_CHECKS = (
    _proof,
    _simulated,
    _failed_loads,
    _counted(
        "unmatched requests",
        _unmatched,
        "request",
        "{things} in {loads} requested something that is not in the recording",
        "see the failed rows in requests; record the page again with this client",
    ),
    _counted(
        "failed requests",
        _failed_requests,
        "request",
        "{things} in {loads} got no complete response",
        "see the rows without end_ms in requests; a page that breaks off early looks fast",
    ),
    _counted(
        "fell back to TCP",
        _fallbacks,
        "connection",
        "{things} of {loads} with QUIC spoke TCP",
        "the path drops or delays datagrams (`middlebox`); these times include the wait before",
    ),
    _late_relay,
    _counted(
        "made again",
        _earlier_attempts,
        "earlier attempt",
        "{things} of {loads} do not count",
        "the relay was late in them, or the client broke; the journal keeps them all",
    ),
    _unpaired,
    _alone,
    _outliers,
    _noise,
)


def _without_partner(pair: CellPair) -> int:
    """Loads that ended ok in blocks whose other load failed or was not made."""
    return sum(len(pair.ok[side]) - len(pair.blocks) for side in SIDES)


def _is_noise(pair: CellPair) -> bool:
    baseline_ms, treatment_ms = (pair.plt_ms(side) for side in SIDES)
    if len(pair.blocks) < 2 or pair.is_exact:
        return False
    null, found = null_improvement(baseline_ms)["point"], improvement(baseline_ms, treatment_ms)["point"]
    return null is not None and found is not None and abs(null) >= abs(found)


def _select(
    pairs: Sequence[CellPair], wanted: Callable[[LoadRecord], bool]
) -> tuple[list[CellPair], list[LoadRecord]]:
    """The cells that have a wanted load, and those loads, each once."""
    cells = [pair for pair in pairs if any(map(wanted, pair.records()))]
    loads = {r["load"]["load_id"]: r for pair in cells for r in pair.records() if wanted(r)}
    return cells, list(loads.values())


def _where(pairs: Sequence[CellPair]) -> str:
    return some([pair.name for pair in pairs])


def warn_of_too_few_repeats(cells: Sequence[Cell]) -> list[Warning]:
    """Warns of cells with too few blocks to show any difference in a table of this size.

    Args:
        cells: The cells of the summary.
    """
    few = [cell for cell in cells if cell["verdict"] == TOO_FEW_REPEATS]
    if not few:
        return []
    needed = max(cell["blocks_needed"] or 0 for cell in few)
    blocks = plural(min(cell["n"] for cell in few), "paired block")
    family = plural(sum(cell["p_value"] is not None for cell in cells), "cell")
    return [
        {
            "kind": "too few repeats",
            "message": f"{blocks} in a table of {family}: a verdict takes {needed}: {_cells_named(few)}",
            "advice": f"`--repeats {needed}` or more, or fewer cells",
        }
    ]


def warn_of_many_cells(cells: Sequence[Cell]) -> list[Warning]:
    """Warns of cells whose own interval excludes 0, but whose difference may be chance in this table.

    Args:
        cells: The cells of the summary.
    """
    weak = [
        cell for cell in cells if cell["verdict"] == NO_DIFFERENCE and _excludes_zero(cell["improvement"])
    ]
    if not weak:
        return []
    family = sum(cell["p_value"] is not None for cell in cells)
    return [
        {
            "kind": "many cells",
            "message": f"among {plural(family, 'cell')} such a difference may be random: "
            f"{_cells_named(weak)}",
            "advice": "no verdict, though the interval excludes 0; more repeats would tell (see p_adjusted)",
        }
    ]


def warn_of_width(cells: Sequence[Cell], until: float | None) -> list[Warning]:
    """Warns of cells whose interval is still wider than the plan asks for.

    Args:
        cells: The cells of the summary.
        until: The width, a fraction; `None` if the plan asks for none.
    """
    wide = [cell for cell in cells if not cell["exact"] and _is_wider(cell["improvement"], until)]
    if until is None or not wide:
        return []
    return [
        {
            "kind": "wide intervals",
            "message": f"the interval is wider than the {100 * until:g} % asked for: {_cells_named(wide)}",
            "advice": "continue with `--resume` and a larger `--most-repeats`, on a quieter machine",
        }
    ]


def warn_of_what_if(plan: Mapping[str, Any]) -> list[Warning]:
    """Warns that the loads used a changed TCP that no kernel has.

    Args:
        plan: The keys of the plan in the results folder.
    """
    what_if = plan.get("what_if", "off")
    if what_if == "off":
        return []
    return [
        {
            "kind": "what if",
            "message": f"these loads are of a TCP that no kernel has: {what_if}",
            "advice": "docs/what-if.md says what that means; `firstflight compare` with a run without it",
        }
    ]


def _excludes_zero(found: Effect) -> bool:
    low, high = found["low"], found["high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _is_wider(found: Effect, until: float | None) -> bool:
    low, high = found["low"], found["high"]
    return until is not None and (low is None or high is None or high - low > until)


def _cells_named(cells: Sequence[Cell]) -> str:
    return some([cell_name(cell) for cell in cells])


SIMULATED_ERROR = "simulated_error.json"
"""A file in the folder of this module; generated from the accuracy baseline, like docs/accuracy.md."""

SIMULATED_ADVICE = (
    "docs/accuracy.md says where it is off by more; make some of these loads with --engine emulate too"
)


class _SimulatedError(TypedDict):
    """Errors of the PLT (fractions) and the improvement (percentage points); number of conditions."""

    conditions: int
    plt_error_median: float
    plt_error_p95: float
    improvement_error_pp: float


def caution() -> str:
    """A sentence with the simulator's error against the real kernel, over the conditions of the baseline."""
    error = _error()
    plt, tail = error["plt_error_median"], error["plt_error_p95"]
    return (
        "these numbers are simulated, not measured: TCP on a virtual clock. "
        f"On {error['conditions']} conditions that the real kernel was measured on, its PLT was off by "
        f"{100 * plt:.1f} % at the median and {100 * tail:.1f} % at the 95th percentile, "
        f"the improvement by {error['improvement_error_pp']:.1f} points at the median"
    )


@cache
def _error() -> _SimulatedError:
    found: _SimulatedError = json.loads((files(__package__) / SIMULATED_ERROR).read_text(encoding="utf-8"))
    return found
