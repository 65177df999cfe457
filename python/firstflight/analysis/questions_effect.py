"""What the treatment does to a page's load time, and how the RTT changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from firstflight.analysis.cells import SIDES
from firstflight.analysis.questions_case import Case, by_setting, overlap
from firstflight.analysis.statistics import EXACT, FASTER, SLOWER, TOO_FEW_REPEATS
from firstflight.analysis.words import listed, number, percent, rtt, seconds
from firstflight.plural import plural

MOST_CASES = 12
"""With more cells of a page than this, they are counted rather than listed."""


def effect(found: Sequence[Case]) -> Iterator[str]:
    """A sentence per cell, or the counts of many, then what noise alone would print."""
    known = [case for case in found if case.counts]
    if len(known) > MOST_CASES:
        yield _counted(known)
        yield from map(_sentence, (case for case in found if not case.counts))
    else:
        yield from map(_sentence, found)
    nulls = [case.cell["null_improvement"] for case in known if case.cell["null_improvement"] is not None]
    if nulls:
        ends = list(dict.fromkeys((percent(min(nulls)), percent(max(nulls)))))
        yield f"The baseline against itself shows {' to '.join(ends)}: this is noise alone."


def by_rtt(found: Sequence[Case]) -> Iterator[str]:
    """How improvement, time saved and handshakes go with the RTT, for each setting."""
    groups = by_setting(found)
    if not groups:
        yield "No RTT has a proved result."
    for group in groups:
        setting = f"{group[0].setting}: " if group[0].setting else ""
        if len(group) == 1:
            yield (
                f"{setting}{'only' if setting else 'Only'} {rtt(group[0].rtt_ms)} ms RTT was measured: "
                f"{group[0].improvement}; `--rtt 20,100,200` would tell how the RTT changes it."
            )
        else:
            points = _at_each(group, lambda case: percent(case.point))
            yield f"{setting}{'the' if setting else 'The'} improvement is {points}: {_course(group)}."
            yield _ends(group)
            yield _round_trips(group)


def falls(group: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Neighbouring RTTs, ascending, of which the longer has the smaller improvement."""
    return [(before, after) for before, after in pairwise(group) if after.point < before.point]


def _sentence(case: Case) -> str:
    cell = case.cell
    if not cell["n"]:
        loads = [cell[f"{side}_loads"] for side in SIDES]
        ended = [f"{count['ok']} of {count['ok'] + count['failed']}" for count in loads]
        return (
            f"At {case.where} nothing can be compared: {ended[0]} loads {case.phrases[0]} ended ok and "
            f"{ended[1]} {case.phrases[1] or 'under a treatment'}, none of them in the same block."
        )
    if not case.counts:
        return f"At {case.where} no result is given, without proof: {cell['proof']['text']}."
    treatment, baseline = (seconds(cell[name]["median"]) for name in ("treatment_ms", "baseline_ms"))
    medians = f"{treatment} {case.phrases[1]}, {baseline} {case.phrases[0]}"
    blocks = plural(cell["n"], "paired block")
    return f"At {case.where} {_finding(case)}: {medians}, medians of {blocks}{_shift(case)}."


def _finding(case: Case) -> str:
    said = case.cell["verdict"]
    if said in (FASTER, SLOWER):
        return f"the page loads {said} {case.phrases[1]}, {case.improvement}"
    if said == EXACT:
        return f"the improvement is {case.improvement}"
    if said == TOO_FEW_REPEATS:
        needed = case.cell["blocks_needed"]
        return f"too few repeats for a verdict, which takes {needed}: {case.improvement}"
    return f"no difference is shown, {case.improvement}"


def _shift(case: Case) -> str:
    """The saving of a typical pair of loads, where its interval is known."""
    shift = case.cell["shift_ms"]
    if shift["low"] is None:
        return ""
    point, low, high = (number(shift[name]) for name in ("point", "low", "high"))
    return f"; a load takes {point} ms less (95 % interval {low} to {high})"


def _counted(known: Sequence[Case]) -> str:
    verdicts = Counter(case.cell["verdict"] for case in known)
    low, high = (pick(known, key=lambda case: case.point) for pick in (min, max))
    counts = listed([f"{verdict} in {count}" for verdict, count in verdicts.most_common()])
    return (
        f"Of {len(known)} cells the verdict is {counts}; improvements: from {low.improvement} at {low.where} "
        f"to {high.improvement} at {high.where}."
    )


def _at_each(group: Sequence[Case], number: Callable[[Case], str]) -> str:
    return listed([f"{number(case)} at {rtt(case.rtt_ms)} ms" for case in group])


def _course(group: Sequence[Case]) -> str:
    down = falls(group)
    if not down:
        return "it rises with every step"
    if len(down) == len(group) - 1:
        return "it falls with every step"
    return f"it does not rise with every step but falls {listed([_fall(*pair) for pair in down])}"


def _fall(before: Case, after: Case) -> str:
    return f"from {rtt(before.rtt_ms)} to {rtt(after.rtt_ms)} ms"


def _ends(group: Sequence[Case]) -> str:
    first, last = group[0], group[-1]
    points = 100 * (last.point - first.point)
    shown = overlap(first, last)
    return (
        f"From {rtt(first.rtt_ms)} to {rtt(last.rtt_ms)} ms it changes by {number(points, 1)} percentage "
        f"points; {shown}."
    )


def _round_trips(group: Sequence[Case]) -> str:
    saved = _at_each(group, lambda case: f"{number(case.saved_ms)} ms")
    far = [case for case in group if case.rtt_ms > 0]
    trips = f"{listed([number(case.saved_ms / case.rtt_ms, 1) for case in far])} round trips"
    if len(far) < len(group):
        trips += f" (at {listed([f'{rtt(case.rtt_ms)} ms' for case in far])})"
    in_trips = f", that is {trips}" if far else ""
    handshakes = ""
    if all(case.bound_ms is not None for case in group):
        counts = [
            len(case.explanation.loads["baseline"].path.handshakes) for case in group if case.explanation
        ]
        handshakes = (
            f"; handshakes on the critical path {group[0].phrases[0]}: {listed(list(map(str, counts)))}"
        )
    return f"The time saved is {saved}{in_trips}{handshakes}."
