"""Does what a page consists of lend itself to TFO? Its shape, and what its critical paths wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstflight.analysis.questions_case import Case
from firstflight.analysis.questions_effect import MOST_CASES
from firstflight.analysis.words import number, percent, seconds
from firstflight.pages.description import INITIAL_WINDOW_BYTES, ONE_SEGMENT_BYTES, PageDescription
from firstflight.plural import plural
from firstflight.results import LoadRecord

WELL, LITTLE = 0.10, 0.03
"""Improvements: from the one a page is said to lend itself to TFO, up to the other hardly."""


def content(found: Sequence[Case]) -> Iterator[str]:
    """Origins, connections, sizes, chains; then handshakes on the critical path against the load time."""
    pages = [case.explanation.page for case in found if case.explanation]
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
    opened = [int(record["load"]["connections"]) for record in loads]
    asked = [int(record["load"]["requests"]) for record in loads]
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
    """How much of the load time the link alone takes, where all share one."""
    shared = [case for case in found if case.counts and case.cell["topology"] == "access"]
    shared = [case for case in shared if case.cell["down_mbps"] is not None]
    if not shared:
        yield f"It is {shape.wire_bytes / 1000:,.0f} kB on the wire."
        return
    shares = [(_link_ms(case, shape) / case.cell["baseline_ms"]["median"], case) for case in shared]
    (low, best), (high, worst) = (pick(shares, key=lambda share: share[0]) for pick in (min, max))
    ms = _link_ms(best, shape)
    span = f"{100 * low:.0f} % of the load time {best.phrases[0]} at {best.where}"
    more = f" and {100 * high:.0f} % at {worst.where}" if worst is not best else ""
    yield (
        f"It is {shape.wire_bytes / 1000:,.0f} kB on the wire, which no saved handshake shortens: "
        f"{seconds(ms)} at {best.cell['down_mbps']:g} Mbit/s, {span}{more}."
    )


def _link_ms(case: Case, shape: PageDescription) -> float:
    return shape.wire_bytes * 8 / (1000 * float(case.cell["down_mbps"]))


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
