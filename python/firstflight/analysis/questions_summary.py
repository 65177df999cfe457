"""A page, or all of them, in short: how many cells, how large, and the best and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from firstflight.analysis.questions_case import Case, overlap
from firstflight.analysis.statistics import (
    EXACT,
    FALSE_VERDICTS,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    TOO_FEW_REPEATS,
)
from firstflight.analysis.words import listed, number, percent
from firstflight.plural import plural


def in_short(found: Sequence[Case]) -> Iterator[str]:
    """Verdicts counted, the median improvement, and what is left when the number of cells is counted in."""
    known = [case for case in found if case.counts]
    if not known:
        yield f"None of {plural(len(found), 'cell')} has a proved result."
        return
    counts = [
        f"{verdict} in {count}"
        for verdict in (FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW_REPEATS, EXACT)
        if (count := sum(case.cell["verdict"] == verdict for case in known))
    ]
    yield (
        f"Of {plural(len(known), 'cell')} the verdict is {listed(counts)}; the median improvement is "
        f"{percent(median(case.point for case in known))}."
    )
    if left_out := len(found) - len(known):
        yield f"{plural(left_out, 'cell')} without proof or a pair of loads {_is(left_out)} not counted."
    yield from _adjusted(known)


def best_and_worst(found: Sequence[Case]) -> Iterator[str]:
    """The cells with the largest and the smallest improvement."""
    known = [case for case in found if case.counts]
    several = len({case.cell["page"] for case in known}) > 1
    if not known:
        yield "No cell has a proved result."
        return
    best, worst = (pick(known, key=lambda case: case.point) for pick in (max, min))
    yield f"Best: {_name(best, several=several)}, {_saving(best)}."
    if worst is not best:
        yield f"Worst: {_name(worst, several=several)}, {_saving(worst)}."
        yield f"Between them {number(100 * (best.point - worst.point), 1)} points; {overlap(best, worst)}."


def _adjusted(known: Sequence[Case]) -> Iterator[str]:
    """By which test, and for how many cells it was corrected."""
    values = [case.cell["p_adjusted"] for case in known if case.cell["p_adjusted"] is not None]
    if values:
        worst = f"{100 * FALSE_VERDICTS:g} %"
        left = sum(value < FALSE_VERDICTS for value in values)
        yield (
            f"Corrected for the number of cells, {left} of {len(values)} p values {_is(left)} below {worst} "
            f"(signed-rank test, Holm's method: the chance of any false one is at most {worst})."
        )


def _name(case: Case, *, several: bool) -> str:
    return f"{case.cell['page']} at {case.where}" if several else f"at {case.where}"


def _saving(case: Case) -> str:
    return f"{case.improvement}, {number(case.saved_ms)} ms saved"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
