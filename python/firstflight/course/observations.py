"""``observations.txt``: the course's table, byte for byte, with correct numbers, then a table of noise.

The format is that of the course's ``plot.py``; its ``(s)`` is an error: values are milliseconds. Two things
differ. A value is the median over all paired blocks, not one load. The improvement keeps its sign.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstflight.analysis.records import Cell, Summary, known, value_of
from firstflight.analysis.words import CELL_FIELDS, is_of_fast_open

_Pages = Mapping[str, Sequence[Cell]]

HEADER = "Page\tRTT(ms)\tPLT: no TFO (s)\tPLT: TFO (s)\tImprov.\n"
"""First line of a table, as in the course."""

NULL_HEADER = "Page\tRTT(ms)\tPLT: no TFO (s)\tPLT: no TFO again (s)\tImprov.\n"
"""First line of the table of TCP against TCP from the same blocks, which shows the effect of noise alone."""

_SAFE = frozenset("-_.() " + string.ascii_letters + string.digits)


def observations(summary: Summary) -> str:
    """The contents of the file: a table per path and client, with pages in order and RTTs descending.

    Then as many tables of TCP against TCP, from the cells with repeats.

    Args:
        summary: From `firstflight.analysis.summary.summarize`. Cells without a pair of loads, without proof,
            or that compare anything but modes are left out.
    """
    tables: dict[tuple[Any, ...], dict[str, list[Cell]]] = {}
    for cell in summary["cells"]:
        if cell["n"] and cell["proof"]["ok"] and is_of_fast_open(cell):
            setting = tuple(value_of(cell, name) for name in CELL_FIELDS)
            page = sanitize_file(cell.get("url") or cell["page"])
            tables.setdefault(setting, {}).setdefault(page, []).append(cell)
    repeated = [_only(pages, lambda cell: cell["n"] > 1) for pages in tables.values()]
    nulls = (_table(NULL_HEADER, pages, _null_row) for pages in repeated if pages)
    return "\n".join([*(_table(HEADER, pages, _row) for pages in tables.values()), *nulls])


def sanitize_file(url: str) -> str:
    """A URL as the course's file names have it: only letters, digits and ``-_.() `` are kept."""
    return "".join(character for character in url if character in _SAFE)


def python2_str(number: float) -> str:
    """A float as Python 2's ``print`` writes it: 12 significant digits."""
    text = f"{number:.12g}"
    return text if set(text) & set(".en") else f"{text}.0"


def _only(pages: _Pages, wanted: Callable[[Cell], bool]) -> _Pages:
    kept = {page: list(filter(wanted, cells)) for page, cells in pages.items()}
    return {page: cells for page, cells in kept.items() if cells}


def _table(header: str, pages: _Pages, row: Callable[[Cell], str]) -> str:
    blocks = (
        f"{page}\n" + "".join(row(cell) for cell in _descending(cells)) for page, cells in pages.items()
    )
    return header + "".join(blocks)


def _descending(cells: Sequence[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: -float(cell["rtt_ms"]))


def _row(cell: Cell) -> str:
    return _printed(cell["rtt_ms"], cell["baseline_ms"]["median"], cell["treatment_ms"]["median"])


def _null_row(cell: Cell) -> str:
    return _printed(cell["rtt_ms"], *cell["null_ms"])


def _printed(rtt_ms: float, *medians_ms: float | None) -> str:
    """One row. The improvement is computed from the rounded times, so that readers can verify it."""
    without_ms, with_ms = (round(known(ms), 3) for ms in medians_ms)
    improvement = 100 * (without_ms - with_ms) / without_ms
    values = (f"{rtt_ms:.12g}", *map(python2_str, (without_ms, with_ms, improvement)))
    return "\t" + " \t".join(values) + "\n"
