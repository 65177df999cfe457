"""Shows both sides of a cell pair side by side: measures, critical paths, changes of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from firstflight.analysis import SIDES, CellPair, words
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.critical_path.steps import Fate, Step
from firstflight.analysis.records import Cell, Effect, Measure
from firstflight.model.treatment import short_name
from firstflight.text import plural, visible

NAMES = {
    "plt_ms": "page load (PLT)",
    "first_byte_ms": "first byte",
    "first_paint_ms": "first paint",
    "first_contentful_paint_ms": "first contentful paint",
    "lcp_ms": "largest contentful paint",
    "requests": "requests",
    "connections": "connections",
    "bytes_down": "received",
}
"""Names of measures in views."""

_KB = {"bytes_down"}

_LEAST_MS = 1.0
"""Requests of the critical paths, and their parts, with a smaller difference are not shown."""

_MOST_SHOWN, _MOST_ROWS, _MOST_PARTS = 4, 12, 3
_URL, _NAME = 44, 24
_WHOLE_FROM_BYTES = 10_000


@dataclass(frozen=True)
class Row:
    """A measure, or a request of the critical paths, as text."""

    name: str
    baseline: str
    treatment: str
    difference: str
    note: str
    is_changed: bool = False
    title: str = ""


@dataclass(frozen=True)
class Beside:
    """Both sides of a cell pair as text.

    Attributes:
        heading: Page, RTT and verdict.
        names: Names of baseline and treatment.
        measures: The measured quantities; the note is the interval of the difference.
        steps: The critical paths, request by request; the note says what changed.
        changes: URL and change of each request that differs between versions of the page.
        is_open: Whether it is expanded at first.
    """

    heading: str
    names: tuple[str, str]
    measures: tuple[Row, ...]
    steps: tuple[Row, ...]
    changes: tuple[tuple[str, str], ...]
    is_open: bool


def beside(
    pairs: Sequence[CellPair], cells: Sequence[Cell], explanations: Sequence[Explanation]
) -> list[Beside]:
    """Both sides of each cell that has paired blocks.

    Args:
        pairs: The cell pairs.
        cells: Their entries in the summary, in the same order.
        explanations: For the critical paths, of those pairs that can be explained.
    """
    why = {id(found.pair): found for found in explanations}
    fields = [name for name in words.varying(cells) if name not in SIDES]
    shown = [(cell, why.get(id(pair))) for pair, cell in zip(pairs, cells, strict=True) if cell["measures"]]
    return [
        Beside(
            f"{_where(cell, words.variant(cell, fields))}: {words.plt_verdict(cell)}",
            (short_name(cell["baseline"]), short_name(cell["treatment"])),
            tuple(_measures(cell)),
            tuple(map(_step, explained.steps)) if explained else (),
            tuple(_changes(explained)) if explained else (),
            len(shown) <= _MOST_SHOWN and not words.is_of_fast_open(cell),
        )
        for cell, explained in shown
    ]


def _where(cell: Cell, variant: str) -> str:
    at = f"{cell['page']} at {words.rtt(cell['rtt_ms'])} ms RTT" + (f" ({variant})" if variant else "")
    return f"{at}: {words.comparison(cell)}"


def print_beside(several: Sequence[Beside], console: Console) -> None:
    """Prints a few pairs; if there are more, says where to find them."""
    for one in several[:_MOST_SHOWN]:
        console.print(Text(visible(one.heading), style="bold"))
        spread = "95 %" if any(row.note for row in one.measures) else ""
        console.print(_table(one.names, "", spread, one.measures))
        if one.steps:
            _print_steps(one, console)
        if one.changes:
            console.print(Text("Changed in the page:"))
        for url, what in one.changes[:_MOST_ROWS]:
            console.print(Text(visible(f"  {words.short_url(url, _URL)}: {what}")))
        if len(one.changes) > _MOST_ROWS:
            console.print(Text(f"  {len(one.changes) - _MOST_ROWS} more in the report", style="dim"))
        console.print()
    if len(several) > _MOST_SHOWN:
        console.print(f"side by side: {plural(len(several) - _MOST_SHOWN, 'more cell')} in the report")


def _print_steps(one: Beside, console: Console) -> None:
    told = [row for row in one.steps if row.difference]
    shown = told[:_MOST_ROWS]
    if shown:
        console.print(_table(one.names, "critical path: waited for", "what changed", shown))
    left, same = len(told) - len(shown), len(one.steps) - len(told)
    rest = [f"{left} more in the report"] if left else []
    rest += [f"{plural(same, 'request')} as before"] if same else []
    if rest:
        console.print(Text(f"{'  ' if shown else 'Critical path: '}{', '.join(rest)}", style="dim"))


def _table(names: tuple[str, str], name: str, note: str, rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(Text(name), overflow="fold", max_width=_URL)
    for side in names:
        table.add_column(Text(visible(side)), justify="right", overflow="fold", max_width=_NAME)
    table.add_column(Text("difference"), justify="right", no_wrap=True)
    table.add_column(Text(note), overflow="fold")
    for row in rows:
        cells = (row.name, row.baseline, row.treatment, row.difference, row.note)
        table.add_row(*(Text(visible(cell)) for cell in cells), style="bold" if row.is_changed else "")
    return table


def _measures(cell: Cell) -> Iterator[Row]:
    for name, measure in cell["measures"].items():
        yield Row(NAMES[name], *_medians(name, measure), *_difference(name, measure["difference"]))


def _medians(name: str, measure: Measure) -> tuple[str, str]:
    return _value(name, measure["baseline"]), _value(name, measure["treatment"])


def _value(name: str, value: float) -> str:
    if name.endswith("_ms"):
        return words.seconds(value)
    return f"{_kilobytes(value)} kB" if name in _KB else f"{value:,.10g}"


def _kilobytes(size: float) -> str:
    return words.number(size / 1000, 0 if size >= _WHOLE_FROM_BYTES else 1)


def _difference(name: str, found: Effect) -> tuple[str, str]:
    """A difference and its interval, with signs."""
    unit = " ms" if name.endswith("_ms") else " kB" if name in _KB else ""
    scale = 1 / 1000 if name in _KB else 1

    def signed(value: float | None) -> str:
        return "" if value is None else words.signed(value * scale)

    point, low, high = (found["point"], found["low"], found["high"])
    spread = f"{signed(low)} to {signed(high)}" if low is not None and high is not None else ""
    return f"{signed(point)}{unit}", spread


_FATES: dict[Fate, str] = {
    "added": "new request",
    "removed": "request gone",
    "joined": "now on the path",
    "left": "no longer on the path",
    "both": "",
}


def _step(step: Step) -> Row:
    baseline, treatment = (
        words.DASH if ms is None else words.milliseconds(ms) for ms in (step.base_ms, step.head_ms)
    )
    is_told = step.fate != "both" or abs(step.longer_ms) >= _LEAST_MS
    difference = f"{words.signed(step.longer_ms)} ms" if is_told else ""
    return Row(
        words.short_url(step.url, _URL),
        baseline,
        treatment,
        difference,
        _what(step) if is_told else "",
        step.is_changed,
        step.url,
    )


def _what(step: Step) -> str:
    largest = sorted(step.parts_ms.items(), key=lambda part: -abs(part[1]))[:_MOST_PARTS]
    parts = ", ".join(
        f"{words.COMPONENT_NAMES[part]} {words.signed(ms)}"
        for part, ms in largest
        if abs(ms) >= _LEAST_MS / 2
    )
    return ": ".join(filter(None, (_FATES[step.fate], parts)))


def _changes(found: Explanation) -> Iterator[tuple[str, str]]:
    if found.changes is not None:
        yield from ((change.url, change.words) for change in found.changes.found)
