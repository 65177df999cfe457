"""Answers the course's questions for each page from the measurements.

The questions are: how the treatment changes the load time, and how this depends on the RTT; whether the
page's shape and critical paths suit the treatment; what is surprising, with a reason if the ledger or a
critical path shows one; and a summary.

Every sentence has a number of this run. If a question cannot be answered, the sentence says what is missing.
A cause is named only if the ledger or a critical path shows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from firstflight.analysis.cells import SIDES
from firstflight.analysis.records import Side, known, loads_of
from firstflight.analysis.statistics import (
    EXACT,
    FALSE_VERDICTS,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    TOO_FEW_REPEATS,
    outliers,
)
from firstflight.analysis.summary import Evidence
from firstflight.analysis.words import (
    COMPONENT_NAMES,
    is_of_fast_open,
    listed,
    number,
    percent,
    rtt,
    seconds,
)
from firstflight.course.cases import Case, by_setting, cases, overlap
from firstflight.model.page import INITIAL_WINDOW_BYTES, ONE_SEGMENT_BYTES, PageDescription
from firstflight.results import LoadRecord
from firstflight.results.records import numeric, plt_ms
from firstflight.text import plural, visible

MOST_CASES = 12
"""With more cells of a page than this, they are counted and not listed."""


def effect(found: Sequence[Case]) -> Iterator[str]:
    """A sentence per cell, or the counts of many, then the result that noise alone would give."""
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
    """How improvement, saved time and handshakes depend on the RTT, for each setting."""
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
    """Pairs of neighbouring RTTs, ascending, of which the longer RTT has the smaller improvement."""
    return [(before, after) for before, after in pairwise(group) if after.point < before.point]


def _sentence(case: Case) -> str:
    cell = case.cell
    if not cell["n"]:
        loads = [loads_of(cell, side) for side in SIDES]
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
    """The saving of a typical pair of loads, if its interval is known."""
    shift = case.cell["shift_ms"]
    if shift["low"] is None:
        return ""
    point, low, high = (number(known(value)) for value in (shift["point"], shift["low"], shift["high"]))
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


WELL, LITTLE = 0.10, 0.03
"""Improvements: from the first on a page is well suited to TFO, up to the second it is hardly suited."""


def content(found: Sequence[Case]) -> Iterator[str]:
    """Origins, connections, sizes, chains; then handshakes on the critical path relative to the load time."""
    pages = [next(iter(case.explanation.pages.values())) for case in found if case.explanation]
    loads = [record for case in found for record in case.pair.loads("baseline")]
    if loads:
        yield _connections(loads, pages[0].describe() if pages else None)
    if pages:
        shape = pages[0].describe()
        yield _sizes(shape)
        yield from _transfer(found, shape)
        yield _chain(shape)
    explained = [case for case in found if case.bound_ms is not None]
    shown = (
        explained
        if len(explained) <= MOST_CASES
        else [min(explained, key=_share), max(explained, key=_share)]
    )
    yield from map(_handshakes, shown)
    if explained or not any(case.explanation for case in found):
        yield _judgement(explained)


def _connections(loads: Sequence[LoadRecord], shape: PageDescription | None) -> str:
    opened = [int(record["load"]["connections"] or 0) for record in loads]
    asked = [int(record["load"]["requests"] or 0) for record in loads]
    origins = shape.origins if shape else len({r["origin"] for record in loads for r in record["requests"]})
    per = sum(asked) / max(1, sum(opened))
    return (
        f"The page makes {_span(asked)} requests to {plural(origins, 'origin')} over {_span(opened)} "
        f"connections, {per:.1f} on each; without TFO each connection costs a handshake."
    )


def _sizes(shape: PageDescription) -> str:
    small, window = (
        f"{100 * share:.0f} %" for share in (shape.one_segment_share, shape.initial_window_share)
    )
    return (
        f"Of its responses {small} fit into one segment ({ONE_SEGMENT_BYTES:,} bytes) and {window} into the "
        f"initial window ({INITIAL_WINDOW_BYTES:,} bytes): these take one round trip, two with a handshake."
    )


def _transfer(found: Sequence[Case], shape: PageDescription) -> Iterator[str]:
    """How much of the load time the link alone takes, if all origins share one."""
    shared = [case for case in found if case.counts and case.cell["topology"] == "access"]
    shared = [case for case in shared if case.cell["down_mbps"] is not None]
    if not shared:
        yield f"It is {shape.wire_bytes / 1000:,.0f} kB on the wire."
        return
    shares = [(_link_ms(case, shape) / known(case.cell["baseline_ms"]["median"]), case) for case in shared]
    (low, best), (high, worst) = (pick(shares, key=lambda share: share[0]) for pick in (min, max))
    ms = _link_ms(best, shape)
    span = f"{100 * low:.0f} % of the load time {best.phrases[0]} at {best.where}"
    more = f" and {100 * high:.0f} % at {worst.where}" if worst is not best else ""
    yield (
        f"It is {shape.wire_bytes / 1000:,.0f} kB on the wire, which no saved handshake shortens: "
        f"{seconds(ms)} at {best.cell['down_mbps']:g} Mbit/s, {span}{more}."
    )


def _link_ms(case: Case, shape: PageDescription) -> float:
    return shape.wire_bytes * 8 / (1000 * known(case.cell["down_mbps"]))


def _chain(shape: PageDescription) -> str:
    return (
        f"Its longest chain of discovery is {plural(shape.depth, 'resource')} deep, of {shape.requests}; "
        "each step of it takes a round trip, and a handshake where no connection is free."
    )


def _handshakes(case: Case) -> str:
    assert case.explanation is not None
    path = case.explanation.loads["baseline"].path
    measured = f"; measured: {number(case.saved_ms)} ms" if case.counts else ""
    return (
        f"At {case.where} the critical path waits for {plural(len(path.handshakes), 'handshake')}, "
        f"{number(path.could_save_ms)} ms or {100 * _share(case):.1f} % of the load time{measured}."
    )


def _judgement(explained: Sequence[Case]) -> str:
    if not explained:
        return "What its critical path waits for is not known: the folder holds no profile of the page."
    best = max(explained, key=_share)
    gains = [case.point for case in explained if case.counts]
    most = max(gains, default=_share(best))
    word = (
        "lends itself"
        if most >= WELL
        else "hardly lends itself"
        if most <= LITTLE
        else "lends itself a little"
    )
    measured = f"; measured: {percent(most)} at most" if gains else ""
    bound = f"handshakes are up to {100 * _share(best):.1f} % of the load time, at {best.where}"
    return f"So the content {word} to TFO: {bound}{measured}."


def _share(case: Case) -> float:
    assert case.explanation is not None
    path = case.explanation.loads["baseline"].path
    return path.could_save_ms / path.plt_ms


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def in_short(found: Sequence[Case]) -> Iterator[str]:
    """Counts of verdicts, the median improvement, and what remains after the correction for many cells."""
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
    """The test, and the number of cells for which it was corrected."""
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


MOST_OUTLIERS = 5
"""More outliers of a page than this are counted and not listed."""

_APART = 0.05
"""From this difference on, as a share of the load time, handshakes do not explain a saving."""
_WORTH_MS = 5.0


def surprises(found: Sequence[Case]) -> Iterator[str]:
    """Regressions, smaller improvements at longer RTTs, savings far from the bound, outliers, failures."""
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
    """Savings far above or below the time of handshakes on the critical path."""
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
    """Events that the ledger has for one load and not for the others."""
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
    """Differences between the sides that saved handshakes do not explain; empty if none are seen."""
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
    """The components of the critical path, without handshakes, that differ most between the sides."""
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


ALL_PAGES = "All pages"
"""The name in place of a page's, for the last answers of a run with several pages."""

_QUESTIONS: dict[str, Callable[[Sequence[Case]], Iterator[str]]] = {
    "What {treatment} does to the load time": effect,
    "How the RTT changes it": by_rtt,
    "Does the content lend itself to it?": content,
    "What is surprising": surprises,
    "Summary": in_short,
    "Best and worst case": best_and_worst,
}


@dataclass(frozen=True)
class PageAnswers:
    """The answers for one page.

    Attributes:
        page: Its name, or `ALL_PAGES`.
        sections: A question's heading and the sentences of its answer, in order.
        url: Its URL; empty if no load got a response, and for all pages.
    """

    page: str
    sections: list[tuple[str, list[str]]]
    url: str = ""


def answers(results: Evidence) -> list[PageAnswers]:
    """The answers for every page; for a run with several pages, the last ones are for all pages.

    Args:
        results: The measurements.
    """
    by_page = cases(results.pairs, results.summary["cells"], results.explanations)
    found = [_answers(page, of_page) for page, of_page in by_page.items()]
    if len(found) < 2:
        return found
    everything = [case for of_page in by_page.values() for case in of_page]
    overall = {name: _QUESTIONS[name] for name in ("Summary", "Best and worst case")}
    return [*found, PageAnswers(ALL_PAGES, _sections(everything, overall))]


def _answers(page: str, of_page: Sequence[Case]) -> PageAnswers:
    url = next((case.cell["url"] for case in of_page if case.cell["url"]), "")
    return PageAnswers(page, _sections(of_page, _QUESTIONS), url)


def _sections(
    of_page: Sequence[Case], questions: Mapping[str, Callable[[Sequence[Case]], Iterator[str]]]
) -> list[tuple[str, list[str]]]:
    name = "TFO" if all(is_of_fast_open(case.cell) for case in of_page) else "the treatment"
    return [(heading.format(treatment=name), list(answer(of_page))) for heading, answer in questions.items()]


_TITLE = "What {treatment} does to these pages"
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


def render_answers(answers: Sequence[PageAnswers], treatment: str = "TCP Fast Open") -> str:
    """The contents of the file: a heading per page, below it one per question, a paragraph per answer.

    Args:
        answers: From `firstflight.course.answers.answers`.
        treatment: What the loads were compared for.
    """
    return (
        "\n\n".join(
            [
                "# " + _plain(_TITLE.format(treatment=treatment)),
                *(part for page in answers for part in _page(page)),
            ]
        )
        + "\n"
    )


def _page(answers: PageAnswers) -> Iterator[str]:
    yield f"## {_plain(answers.page)}"
    if answers.url:
        yield _plain(answers.url)
    for heading, sentences in answers.sections:
        yield f"### {heading}"
        yield "\n".join(map(_line, sentences))


def _line(text: str) -> str:
    """Escapes markup in text of a page; code spans of firstflight are kept."""
    parts = re.split(r"(`--[a-z0-9, -]+`)", text)
    return "".join(part if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", visible(text))
