"""Explanations in words: what a PLT was spent on, the path's requests, and what TFO could save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding

from firstflight.analysis import words
from firstflight.analysis.critical_path import COMPONENTS, CriticalPath
from firstflight.analysis.explanation import Explanation
from firstflight.plural import plural
from firstflight.report.plain import plain

_LEAST_MS = 0.5
"""Less than this is not worth a word."""


def print_explanations(explanations: Sequence[Explanation], console: Console) -> None:
    """Print explanations, a block each."""
    for found in explanations:
        console.print(plain(heading(found), "bold"))
        for line in lines(found):
            console.print(Padding(plain(line), (0, 0, 0, 2), expand=False))
        console.print()


def heading(found: Explanation) -> str:
    """Page and path."""
    rtt = words.rtt(found.pair.key.rtt_ms)
    return f"{found.page.name} at {rtt} ms RTT, {words.setting(found.pair.setting)}"


def lines(found: Explanation) -> Iterator[str]:
    """A block: for each side what its PLT was spent on and by which requests; then what was saved."""
    phrases = found.pair.phrases
    width = max(map(len, phrases.values()))
    for side, load in found.loads.items():
        yield f"{phrases[side]:{width}} {words.seconds(load.path.plt_ms)} = {composition(load.path)}"
        yield f"{'path':{width}} {requests(found, load.path)}"
    if saving := savings(found):
        yield saving


def composition(path: CriticalPath) -> str:
    """What a PLT was spent on: ``TCP handshake 371 ms (4 of them) + ...``."""
    spent = path.spent_ms()
    parts = [
        f"{words.COMPONENT_NAMES[name]} {spent[name]:.0f} ms{_count(path) if name == 'tcp' else ''}"
        for name in COMPONENTS
        if spent.get(name, 0.0) >= _LEAST_MS
    ]
    return " + ".join(parts)


def requests(found: Explanation, path: CriticalPath) -> str:
    """The requests of a path with the time that each has of it."""
    resources = found.page.resources
    parts = []
    for index in path.requests:
        name = words.short_url(resources[index].url, 36) if index < len(resources) else "not of the page"
        parts.append(f"{index} {name} ({sum(path.spent_ms(index).values()):.0f} ms)")
    return " > ".join(parts)


def savings(found: Explanation) -> str:
    """What the treatment saved; of Fast Open also what it could save at most. Empty without the baseline."""
    if found.could_save_ms is None:
        return ""
    if not found.bounds_the_saving:
        return "" if found.saved_ms is None else f"Measured: {_saved(found.saved_ms, found)}."
    handshakes = found.loads["baseline"].path.handshakes
    hidden = sum(handshake.inside_wait for handshake in handshakes)
    inside = f", {hidden} of them while it waited for a connection" if hidden else ""
    bound = (
        f"If nothing else changed, TFO could save {found.could_save_ms:.0f} ms at most: the path waited for "
        f"{plural(len(handshakes), 'handshake')}{inside}"
    )
    if found.saved_ms is None:
        return f"{bound}."
    return f"{bound}; measured: {found.saved_ms:.0f} ms{_beyond(found.saved_ms, found.could_save_ms)}."


def _saved(saved_ms: float, found: Explanation) -> str:
    return f"{abs(saved_ms):.0f} ms {'less' if saved_ms >= 0 else 'more'} {found.pair.phrases['treatment']}"


def _beyond(saved_ms: float, could_save_ms: float) -> str:
    if saved_ms <= could_save_ms + _LEAST_MS:
        return ""
    return ", more: requests that left sooner found shorter queues, or the critical path changed"


def _count(path: CriticalPath) -> str:
    count = sum(not handshake.inside_wait for handshake in path.handshakes)
    return f" ({count} of them)" if count > 1 else ""
