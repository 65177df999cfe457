"""``observations.txt``: the course's table to the byte, with honest numbers in it.

The format is that of the course's ``plot.py`` (its ``(s)`` is its own mistake: values are milliseconds). Two
things differ: a value is the median over all paired blocks, not one load; and the improvement keeps its sign.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

HEADER = "Page\tRTT(ms)\tPLT: no TFO (s)\tPLT: TFO (s)\tImprov.\n"
"""First line of a table, as the course prints it."""

_SAFE = frozenset("-_.() " + string.ascii_letters + string.digits)


def observations(summary: Mapping[str, Any]) -> str:
    """The whole file: a table per path and client, with pages in order and RTTs descending.

    Args:
        summary: As `firstflight.analysis.summarize` gives it. Cells
            without a pair of loads or without proof are left out.
    """
    tables: dict[tuple[Any, ...], dict[str, list[Mapping[str, Any]]]] = {}
    for cell in summary["cells"]:
        if cell["n"] and cell["proof"]["ok"]:
            setting = tuple(cell[name] for name in _SETTING)
            page = sanitize_file(cell["url"] or cell["page"])
            tables.setdefault(setting, {}).setdefault(page, []).append(cell)
    return "\n".join(map(_table, tables.values()))


def sanitize_file(url: str) -> str:
    """A URL as the course names files: letters, digits and ``-_.() `` stay, the rest goes."""
    return "".join(character for character in url if character in _SAFE)


def python2_str(number: float) -> str:
    """A float as Python 2's ``print`` shows it: 12 significant digits."""
    text = f"{number:.12g}"
    return text if set(text) & set(".en") else f"{text}.0"


_SETTING = ("down_mbps", "up_mbps", "loss", "topology", "client", "engine", "cookies")


def _table(pages: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    blocks = (
        f"{page}\n" + "".join(_row(cell) for cell in _descending(cells)) for page, cells in pages.items()
    )
    return HEADER + "".join(blocks)


def _descending(cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(cells, key=lambda cell: -float(cell["rtt_ms"]))


def _row(cell: Mapping[str, Any]) -> str:
    """One row. The improvement is that of the rounded times: who checks it by hand gets the same digits."""
    tcp_ms, tfo_ms = (round(float(cell[mode]["median"]), 3) for mode in ("tcp_ms", "tfo_ms"))
    improvement = 100 * (tcp_ms - tfo_ms) / tcp_ms
    values = (f"{cell['rtt_ms']:.12g}", *map(python2_str, (tcp_ms, tfo_ms, improvement)))
    return "\t" + " \t".join(values) + "\n"
