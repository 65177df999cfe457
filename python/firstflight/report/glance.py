"""A run at a glance: how many cells came out how, the smallest and the largest effect, and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firstflight.analysis import words
from firstflight.plural import plural

Cell = Mapping[str, Any]

_MOST_NAMED = 5
"""More pages, or RTTs, than these are not named one by one."""


class Fact(NamedTuple):
    """One fact: its name, its value, and what goes with it in small print."""

    name: str
    value: str
    note: str


def at_a_glance(cells: Sequence[Cell]) -> list[Fact]:
    """The facts of a run, those first that are looked for first.

    Args:
        cells: All cells of the summary.
    """
    return [*_verdicts(cells), *_range(words.proved([cell for cell in cells if cell["n"]])), _proof(cells)]


def compared(cells: Sequence[Cell]) -> str:
    """What a run compared, in a line: pages, RTTs and modes.

    Args:
        cells: All cells of the summary.
    """
    pages = list(dict.fromkeys(cell["page"] for cell in cells))
    rtts = [words.rtt(rtt_ms) for rtt_ms in sorted({cell["rtt_ms"] for cell in cells})]
    where = words.listed(pages) if len(pages) <= _MOST_NAMED else plural(len(pages), "page")
    far = words.listed(rtts) if len(rtts) <= _MOST_NAMED else f"{rtts[0]} to {rtts[-1]}"
    modes = [mode for mode in words.MODE_NAMES if any(sum(cell[f"{mode}_loads"].values()) for cell in cells)]
    how = words.MODE_NAMES[modes[0]] if len(modes) == 1 else "without and with TFO"
    return f"{where} at {far} ms RTT, {how}"


def _verdicts(cells: Sequence[Cell]) -> Iterator[Fact]:
    counts = Counter(words.verdict(cell) for cell in cells)
    (verdict, count), *rest = counts.most_common()
    others = ", ".join(f"{plural(count, 'cell')}: {verdict}" for verdict, count in rest)
    yield Fact(
        "verdict",
        verdict,
        f"{count} of {plural(len(cells), 'cell')}" + (f"; {others}" if others else ""),
    )


def _range(cells: Sequence[Cell]) -> Iterator[Fact]:
    if not cells:
        return
    ordered = sorted(cells, key=lambda cell: float(cell["improvement"]["point"]))
    named = {"smallest improvement": ordered[0], "largest improvement": ordered[-1]}
    for name, cell in named.items():
        point = words.percent(cell["improvement"]["point"])
        yield Fact(name, point, f"{cell['page']} at {words.rtt(cell['rtt_ms'])} ms RTT")


def _proof(cells: Sequence[Cell]) -> Fact:
    names = ("tfo_accepted", "tfo_connections")
    accepted, connections = (sum(cell["proof"][name] for cell in cells) for name in names)
    proved = len(words.proved(cells))
    return Fact(
        "proof",
        f"{proved} of {plural(len(cells), 'cell')}",
        f"{accepted} of {connections} connections of tfo loads had the data of their SYN accepted",
    )
