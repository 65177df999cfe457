"""Does a printed improvement follow from the printed times? Digits are taken as they were printed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from firstflight.analysis.audit.finding import Finding
from firstflight.analysis.audit.printed import Printed, PrintedCell
from firstflight.analysis.words import percent

_LONGEST_S = 300.0
"""Under seconds, a median above this is taken for milliseconds."""
_MOST = 0.5
"""Share of a table's cells that must be a speed-up for the table to be one of speed-ups."""


def check_printed(cells: Sequence[PrintedCell]) -> list[Finding]:
    """Everything that is wrong with printed tables as they stand."""
    tables: dict[tuple[str, str], list[PrintedCell]] = defaultdict(list)
    for cell in cells:
        tables[cell.source, cell.unit].append(cell)
    return [finding for table in tables.values() for finding in _check_table(table)]


def follows(cell: PrintedCell) -> bool:
    """Whether the printed improvement is (without - with) / without."""
    return _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tcp - tfo) / tcp))


def lost_sign(cell: PrintedCell) -> bool:
    """Whether it is the same without its sign."""
    return not follows(cell) and _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tfo - tcp) / tcp))


def is_speed_up(cell: PrintedCell) -> bool:
    """Whether it is without / with - 1 instead."""
    return not follows(cell) and _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tcp / tfo - 1)))


def _check_table(cells: list[PrintedCell]) -> Iterator[Finding]:
    yield from _unit(cells)
    speed_ups = [cell for cell in cells if is_speed_up(cell)]
    if len(speed_ups) > _MOST * len(cells):
        yield _another_measure(cells, speed_ups)
    else:
        speed_ups = []
    for cell in cells:
        if lost_sign(cell):
            yield _lost_sign(cell)
        elif not follows(cell) and cell not in speed_ups:
            yield _arithmetic(cell)


def _unit(cells: list[PrintedCell]) -> Iterator[Finding]:
    times = sorted(time.value for cell in cells for time in (cell.tcp, cell.tfo))
    if cells[0].unit == "s" and times[len(times) // 2] > _LONGEST_S:
        message = f"times of {times[0]:g} to {times[-1]:g} stand under (s); they are milliseconds"
        yield Finding("unit", cells[0].source, message, cells[0].file, cells[0].line)


def _another_measure(cells: list[PrintedCell], speed_ups: list[PrintedCell]) -> Finding:
    example = max(speed_ups, key=lambda cell: cell.percent.value)
    message = (
        f"{len(speed_ups)} of {len(cells)} cells are a speed-up, without / with - 1: {example.percent.text} "
        f"for {example.page} {example.path} is an improvement of {percent(example.improvement / 100)}"
    )
    return Finding("another measure", cells[0].source, message, example.file, example.line)


def _lost_sign(cell: PrintedCell) -> Finding:
    message = (
        f"{cell.tcp.text} without, {cell.tfo.text} with: slower, {percent(cell.improvement / 100)}; "
        f"printed {cell.percent.text}"
    )
    return Finding("lost sign", cell.subject, message, cell.file, cell.line)


def _arithmetic(cell: PrintedCell) -> Finding:
    message = (
        f"{cell.tcp.text} without, {cell.tfo.text} with make {percent(cell.improvement / 100)}; "
        f"printed {cell.percent.text}{_mend(cell)}"
    )
    return Finding("arithmetic", cell.subject, message, cell.file, cell.line)


def _mend(cell: PrintedCell) -> str:
    """The one digit that would make it right, if a single one does."""
    mends = [f"{text} without" for text in _misprints(cell.tcp) if _fits(cell, text, cell.tfo.text)]
    mends += [f"{text} with" for text in _misprints(cell.tfo) if _fits(cell, cell.tcp.text, text)]
    return f" (one digit makes it right: {' or '.join(mends[:3])})" if mends else ""


def _misprints(time: Printed) -> Iterator[str]:
    """Every number that differs in one digit before the point."""
    whole = len(time.text.partition(".")[0])
    for place, digit in product(range(whole), "0123456789"):
        text = time.text[:place] + digit + time.text[place + 1 :]
        if digit != time.text[place] and float(text) > 0:
            yield text


def _fits(cell: PrintedCell, tcp: str, tfo: str) -> bool:
    ends = (100 * (a - b) / a for a in _ends(Printed(tcp)) for b in _ends(Printed(tfo)) if a > 0)
    return _within(cell.percent, list(ends))


def _range(cell: PrintedCell, measure: Callable[[float, float], float]) -> list[float]:
    """The measure at the corners of what the printed times may have been."""
    return [measure(tcp, tfo) for tcp in _ends(cell.tcp) for tfo in _ends(cell.tfo) if tcp > 0 and tfo > 0]


def _ends(time: Printed) -> tuple[float, float]:
    return time.value - time.half, time.value + time.half


def _within(percent: Printed, corners: list[float]) -> bool:
    return min(corners) - 2 * percent.half <= percent.value <= max(corners) + 2 * percent.half
