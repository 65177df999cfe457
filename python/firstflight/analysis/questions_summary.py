"""A page, or all of them, in short: how many cells, how large, and the best and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from firstflight.analysis.questions_case import Case, overlap
from firstflight.analysis.statistics import FALSE_DISCOVERIES, chance_of_sign
from firstflight.analysis.words import number, percent
from firstflight.plural import plural


def in_short(found: Sequence[Case]) -> Iterator[str]:
    """Verdicts counted, the median improvement, and what is left when the number of cells is counted in."""
    known = [case for case in found if case.counts]
    if not known:
        yield f"None of {plural(len(found), 'cell')} has a proved result."
        return
    faster, slower = (sum(case.cell["verdict"] == word for case in known) for word in ("faster", "slower"))
    yield (
        f"In {faster} of {plural(len(known), 'cell')} the page loads faster with TFO, in {slower} slower, in "
        f"{len(known) - faster - slower} no difference is shown; the median improvement is "
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
    """What multiple comparisons leave; said only of a table of many cells."""
    values = [case.cell["p_adjusted"] for case in known if case.cell["p_adjusted"] is not None]
    if len(values) < 2:
        return
    test = f"signed-rank test, false discovery rate {100 * FALSE_DISCOVERIES:g} %"
    if chance_of_sign(max(case.cell["n"] for case in known)) > FALSE_DISCOVERIES:
        yield f"So few blocks cannot be corrected for {len(values)} cells: it takes six or more ({test})."
    else:
        left = sum(value <= FALSE_DISCOVERIES for value in values)
        yield f"Corrected for {len(values)} cells, {left} of them {_is(left)} different from chance ({test})."


def _name(case: Case, *, several: bool) -> str:
    return f"{case.cell['page']} at {case.where}" if several else f"at {case.where}"


def _saving(case: Case) -> str:
    return f"{case.improvement}, {number(case.saved_ms)} ms saved"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
