"""What is surprising about a page, with the reason where the ledger or the critical paths show one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median

from firstflight.analysis.cells import SIDES
from firstflight.analysis.records import Side, known, loads_of
from firstflight.analysis.statistics import SLOWER, outliers
from firstflight.analysis.words import (
    COMPONENT_NAMES,
    listed,
    number,
    percent,
    rtt,
    seconds,
)
from firstflight.course.answers import falls
from firstflight.course.cases import Case, by_setting, overlap
from firstflight.plural import plural
from firstflight.results import LoadRecord
from firstflight.results.records import numeric, plt_ms

MOST_OUTLIERS = 5
"""More outliers of a page than this are counted."""

_APART = 0.05
"""Share of the load time by which a saving differs from what handshakes explain."""
_WORTH_MS = 5.0


def surprises(found: Sequence[Case]) -> Iterator[str]:
    """Regressions, falls where the RTT grows, savings beside the bound, outliers, failures."""
    said = [
        *map(_regression, (case for case in found if case.counts and _is_regression(case))),
        *_falls(found),
        *_unexplained(found),
        *_outliers(found),
        *_failures(found),
    ]
    if said:
        yield from said
    else:
        yield _nothing(found)


def _is_regression(case: Case) -> bool:
    return case.cell["verdict"] == SLOWER or (case.is_exact and case.point < 0)


def _regression(case: Case) -> str:
    if case.is_exact:
        return f"At {case.where} the improvement is negative, {case.improvement}{_because(case)}."
    return f"At {case.where} the page loads slower {case.phrases[1]}, {case.improvement}{_because(case)}."


def _falls(found: Sequence[Case]) -> Iterator[str]:
    for group in by_setting(found):
        for before, after in falls(group):
            points = number(100 * (before.point - after.point), 1)
            yield (
                f"From {rtt(before.rtt_ms)} ms to {after.where} the improvement falls by {points} percentage "
                f"points; {overlap(before, after)}{_because(after)}."
            )


def _unexplained(found: Sequence[Case]) -> Iterator[str]:
    """Savings far above what the handshakes on the critical path take, or far below it."""
    for case in found:
        bound_ms = case.bound_ms
        if bound_ms is None or not case.counts:
            continue
        apart_ms = case.saved_ms - bound_ms
        if abs(apart_ms) > _APART * known(case.cell["baseline_ms"]["median"]):
            word = "more" if apart_ms > 0 else "less"
            yield (
                f"At {case.where} TFO saves {number(case.saved_ms)} ms, {number(abs(apart_ms))} ms {word} "
                f"than the {number(bound_ms)} ms that handshakes on the critical path take{_because(case)}."
            )


def _outliers(found: Sequence[Case]) -> Iterator[str]:
    said = [sentence for case in found for side in SIDES for sentence in _outliers_of(case, side)]
    yield from said[:MOST_OUTLIERS]
    if len(said) > MOST_OUTLIERS:
        yield f"So do {plural(len(said) - MOST_OUTLIERS, 'more load')} of this page."


def _outliers_of(case: Case, side: Side) -> Iterator[str]:
    loads = case.pair.loads(side)
    for place in outliers(case.pair.plt_ms(side)):
        took_ms, block = plt_ms(loads[place]), loads[place]["load"]["block"]
        usual_ms = median(case.pair.plt_ms(side))
        way = "more" if took_ms > usual_ms else "less"
        yield (
            f"At {case.where} one load {case.pair.phrases[side]} (block {block}) takes "
            f"{seconds(took_ms)}, far {way} than the median of {seconds(usual_ms)}"
            f"{_ledger(loads[place], loads)}."
        )


def _ledger(record: LoadRecord, others: Sequence[LoadRecord]) -> str:
    """What the ledger has on one load that it has not on the others."""
    signs = []
    for column, noun in (("retransmits", "retransmission"), ("failed_requests", "failed request")):
        count, *counts = (int(numeric(one["load"], column) or 0) for one in (record, *others))
        usual = median(counts)
        if count > usual:
            signs.append(f"{plural(count, noun)} (median {number(usual)})")
    lost = sum(int(row["syn_retransmits"]) for row in record["connections"])
    if lost:
        signs.append(f"{plural(lost, 'SYN')} sent again, a second or more each")
    if record["relay"].get("late"):
        signs.append(f"the relay was late by {float(record['relay'].get('late_max_ms') or 0):.1f} ms")
    return f"; the ledger shows {listed(signs)}" if signs else "; the ledger shows no reason"


def _failures(found: Sequence[Case]) -> Iterator[str]:
    for case in found:
        counts = {side: loads_of(case.cell, side)["failed"] for side in SIDES}
        if any(counts.values()):
            errors = [str(record["load"]["error"]) for side in SIDES for record in case.pair.failed[side]]
            yield (
                f"At {case.where} {plural(counts['baseline'], 'load')} {case.phrases[0]} and "
                f"{counts['treatment']} {case.phrases[1]} failed: {listed(list(dict.fromkeys(errors))[:3])}."
            )


def _because(case: Case) -> str:
    """What differs between the sides that saved handshakes do not explain; empty where nothing is seen."""
    signs = [*_in_the_ledger(case), *_on_the_path(case)]
    return f": {listed(signs)}" if signs else "; neither the ledger nor the critical path shows why"


def _in_the_ledger(case: Case) -> Iterator[str]:
    before, after = (_mean_of(case, side, "retransmits") for side in SIDES)
    without, with_it = case.phrases
    if after - before >= 0.5:
        yield f"{number(after, 1)} retransmissions a load {with_it}, {number(before, 1)} {without}"
    lost = [
        sum(int(row["syn_retransmits"]) for row in r["connections"]) for r in case.pair.loads("treatment")
    ]
    seen = case.cell["proof"]["treatment"]
    if sum(lost):
        data = " with data" if seen["offered"] else ""
        yield f"{plural(sum(lost), 'SYN')}{data} sent again in {plural(len(lost), 'load')}"
    if refused := seen["offered"] - seen["accepted"]:
        yield f"the data of {refused} of {seen['offered']} SYNs was not accepted"


def _mean_of(case: Case, side: Side, column: str) -> float:
    return mean(numeric(record["load"], column) or 0.0 for record in case.pair.loads(side))


def _on_the_path(case: Case) -> Iterator[str]:
    """The components of the critical path, handshakes aside, that changed most between the sides."""
    loads = case.explanation.loads if case.explanation else {}
    if set(loads) != set(SIDES):
        return
    before, after = (loads[side].path.spent_ms() for side in SIDES)
    grown = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {*before, *after} - {"tcp"}}
    worth = sorted(
        (item for item in grown.items() if abs(item[1]) >= _WORTH_MS), key=lambda item: -abs(item[1])
    )
    parts = [
        f"{number(abs(ms))} ms {'more' if ms > 0 else 'less'} on {COMPONENT_NAMES[name]}"
        for name, ms in worth[:2]
    ]
    if parts:
        yield f"{case.phrases[1]} the critical path spends {listed(parts)}"


def _treated(known: Sequence[Case]) -> str:
    phrases = {case.phrases[1] for case in known}
    return phrases.pop() if len(phrases) == 1 else "under its treatment"


def _nothing(found: Sequence[Case]) -> str:
    known = [case for case in found if case.counts]
    if not known:
        return "Without a proved result nothing can be said."
    worst = min(known, key=lambda case: case.point)
    return (
        f"Nothing: in none of {plural(len(known), 'cell')} is the page slower "
        f"{_treated(known)} (the least gain is {percent(worst.point)}), the gain "
        "never falls where the RTT grows, and no load is an outlier."
    )
