"""A run at a glance: how many cells came out how, the smallest and the largest effect, and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from firstflight.analysis import words
from firstflight.analysis.cells import SIDES
from firstflight.model.treatment import MODES, phrase
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
    """What a run compared, in a line: pages, RTTs and treatments.

    Args:
        cells: All cells of the summary.
    """
    pages = list(dict.fromkeys(cell["page"] for cell in cells))
    rtts = [words.rtt(rtt_ms) for rtt_ms in sorted({cell["rtt_ms"] for cell in cells})]
    where = words.listed(pages) if len(pages) <= _MOST_NAMED else plural(len(pages), "page")
    far = words.listed(rtts) if len(rtts) <= _MOST_NAMED else f"{rtts[0]} to {rtts[-1]}"
    return f"{where} at {far} ms RTT, {_treatments(cells)}"


def _treatments(cells: Sequence[Cell]) -> str:
    """How sentences name those that have loads: ``without and with TFO``, ``with a and with b``."""
    made = (cell[side] for side in SIDES for cell in cells if sum(cell[f"{side}_loads"].values()))
    phrases = [phrase(name) for name in dict.fromkeys(made)]
    (how, _, what), (_, _, last) = (phrases[place].rpartition(" ") for place in (0, -1))
    is_one = len(phrases) == 2 and what == last
    return f"{how} and {phrases[-1]}" if is_one else words.listed(phrases)


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
        yield Fact(name, point, f"{cell['page']} at {words.rtt(cell['rtt_ms'])} ms RTT{_compared(cell)}")


def _compared(cell: Cell) -> str:
    return "" if cell["treatment"] in ("", *MODES) else f", {cell['treatment']}"


def _proof(cells: Sequence[Cell]) -> Fact:
    accepted, connections = (
        sum(cell["proof"]["treatment"][name] for cell in cells) for name in ("accepted", "connections")
    )
    loads = words.listed(list(dict.fromkeys(cell["treatment"] for cell in cells if cell["treatment"])))
    return Fact(
        "proof",
        f"{len(words.proved(cells))} of {plural(len(cells), 'cell')}",
        f"{accepted} of {connections} connections of {loads} loads had the data of their SYN accepted",
    )
