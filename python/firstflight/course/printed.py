"""Reads tables that others printed, and checks whether their improvements follow from their times.

It reads the original's `observations.txt` (rows below a line with the page's name), tables with a header that
are separated by commas, tabs or two spaces, and Markdown tables. Numbers keep their printed digits: a time of
1.54 s means a value between 1.535 and 1.545.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from firstflight.analysis.words import percent
from firstflight.course.log_checks import Finding
from firstflight.errors import UsageError

_ORIGINAL = re.compile(r"page\s+rtt\s*\(ms\)\s+plt: no tfo \((?P<unit>m?s)\)", re.IGNORECASE)
_AGAIN, _NULL = "no TFO again", "TCP on TCP"
"""Column headings of firstflight's own `observations.txt` if the second time is also without TFO."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_RULE = re.compile(r"[\s|:=-]*")
_UNIT = re.compile(r"\((m?s)\)")
_COLUMNS = {
    "source": ("source",),
    "page": ("page", "url", "site", "website"),
    "rtt_ms": ("rtt",),
    "bandwidth": ("bandwidth",),
    "tcp": ("plt_tcp", "no tfo", "tcp", "non-tfo", "without"),
    "tfo": ("plt_tfo", "tfo", "with"),
    "percent": ("improv",),
    "unit": ("unit",),
}
_NEEDED = ("page", "rtt_ms", "tcp", "tfo", "percent")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as it was printed."""

    text: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def half(self) -> float:
        """Half a unit of its last digit: the largest rounding error."""
        _, _, digits = self.text.partition(".")
        return 0.5 * 10.0 ** -len(digits)


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One row of a published table.

    Attributes:
        file: The file of the table.
        line: Its line, from 1.
        source: The table's name, if a file has several.
        page: The page.
        path: RTT, and bandwidth if the table has one, for people.
        rtt_ms: Round-trip time, as printed.
        tcp: Page load time without TFO.
        tfo: Page load time with TFO.
        percent: The improvement.
        unit: `s`, `ms` or empty, as in the table.
    """

    file: Path
    line: int
    source: str
    page: str
    path: str
    rtt_ms: float
    tcp: Printed
    tfo: Printed
    percent: Printed
    unit: str

    @property
    def subject(self) -> str:
        """Page and path, for people."""
        return " ".join(filter(None, (self.source, self.page, self.path)))

    @property
    def improvement(self) -> float:
        """(without - with) / without, percent, signed."""
        return 100 * (self.tcp.value - self.tfo.value) / self.tcp.value


def read_printed(file: Path, text: str) -> list[PrintedCell]:
    """Reads every row of a printed table.

    Args:
        file: The file, for the places of findings.
        text: The whole text.

    Raises:
        UsageError: It contains no table, or a row is malformed.
    """
    lines = list(enumerate(text.splitlines(), start=1))
    original = any(_ORIGINAL.match(line) for _, line in lines)
    cells = list(_original(file, lines) if original else _table(file, lines))
    if not cells:
        raise UsageError(
            f"{file}: no table of page load times",
            "give an observations.txt, or a table headed page, RTT, no TFO, TFO, improvement",
        )
    return cells


def _original(file: Path, lines: list[tuple[int, str]]) -> Iterator[PrintedCell]:
    """The layout of the original's `plot.py`: the page on a separate line, rows indented."""
    table, page = {"unit": "", "source": ""}, ""
    for number, line in lines:
        fields = line.split()
        if header := _ORIGINAL.match(line):
            table = {"unit": header["unit"].lower(), "source": _NULL if _AGAIN in line else ""}
        elif fields and not line[0].isspace() and not _is_row(fields):
            page = line.strip()
        elif fields:
            row = dict(zip(("rtt_ms", "tcp", "tfo", "percent"), fields, strict=False))
            yield _cell(file, number, {**table, **row}, page, table["unit"])


def _is_row(fields: list[str]) -> bool:
    """Whether these fields must be a row whose leading space was lost by pasting."""
    return len(fields) == 4 and all(map(_number, fields))


def _table(file: Path, lines: list[tuple[int, str]]) -> Iterator[PrintedCell]:
    """A table with a header, separated by commas, tabs, bars or, if pasted from a page, two spaces."""
    columns: dict[str, int] = {}
    unit = page = ""
    for number, line in lines:
        fields = _fields(line)
        if found := _columns(fields):
            columns, unit = found, _unit(fields)
        elif columns and len(fields) > max(columns.values()) and not _RULE.fullmatch(line):
            row = {name: fields[index] for name, index in columns.items()}
            page = row["page"] or page
            yield _cell(file, number, row, page, row.get("unit", unit))


def _fields(line: str) -> list[str]:
    if "|" in line:
        return [field.strip() for field in line.strip().strip("|").split("|")]
    if "\t" in line:
        fields = line.split("\t")
    elif "," not in line:
        fields = re.split(r"\s{2,}", line.strip())
    else:
        fields = next(csv.reader([line]), [])
    return [field.strip() for field in fields]


def _columns(fields: list[str]) -> dict[str, int]:
    """The index of each column; empty if the line is not a header."""
    found: dict[str, int] = {}
    for index, field in enumerate(fields):
        name = field.lower()
        for column, words in _COLUMNS.items():
            if column not in found and any(name.startswith(word) or f": {word}" in name for word in words):
                found[column] = index
                break
    return found if all(column in found for column in _NEEDED) else {}


def _unit(fields: list[str]) -> str:
    times = (field for field in fields if "rtt" not in field.lower())
    return next((found[1] for field in times if (found := _UNIT.search(field))), "")


def _cell(file: Path, line: int, row: Mapping[str, str], page: str, unit: str) -> PrintedCell:
    numbers = {name: _number(row.get(name, "")) for name in ("rtt_ms", "tcp", "tfo", "percent")}
    wrong = next((name for name, text in numbers.items() if text is None), None)
    if wrong or float(numbers["tcp"] or 0) <= 0:
        shown = row.get(wrong or "tcp", "")
        raise UsageError(
            f"{file}:{line}: {wrong or 'tcp'} is not a {'number' if wrong else 'time'}: '{shown[:40]}'",
            "give a row per page and RTT: RTT, PLT without, PLT with, improvement in percent",
        )
    rtt, tcp, tfo, percent = (text or "" for text in numbers.values())
    bandwidth = row.get("bandwidth", "")
    path = f"{float(rtt):g} ms" + (f" {bandwidth}" if bandwidth else "")
    return PrintedCell(
        file=file,
        line=line,
        source=row.get("source", ""),
        page=page,
        path=path,
        rtt_ms=float(rtt),
        tcp=Printed(tcp),
        tfo=Printed(tfo),
        percent=Printed(percent),
        unit=unit,
    )


def _number(text: str) -> str | None:
    """The number in a field, with its digits; `None` if there is none, or more than one."""
    bare = text.strip().rstrip("%").strip().replace("\N{MINUS SIGN}", "-")
    return bare if _NUMBER.fullmatch(bare) else None


_LONGEST_S = 300.0
"""In a column with the unit seconds, a median above this is assumed to be milliseconds."""
_MOST = 0.5
"""A table is one of speed-ups if more than this share of its cells are."""


def check_printed(cells: Sequence[PrintedCell]) -> list[Finding]:
    """All errors of printed tables."""
    tables: dict[tuple[str, str], list[PrintedCell]] = defaultdict(list)
    for cell in cells:
        tables[cell.source, cell.unit].append(cell)
    return [finding for table in tables.values() for finding in _check_table(table)]


def follows(cell: PrintedCell) -> bool:
    """Whether the printed improvement is (without - with) / without."""
    return _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tcp - tfo) / tcp))


def lost_sign(cell: PrintedCell) -> bool:
    """Whether the printed improvement has the right size but lost its minus sign."""
    return not follows(cell) and _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tfo - tcp) / tcp))


def is_speed_up(cell: PrintedCell) -> bool:
    """Whether the printed improvement is without / with - 1 instead."""
    return not follows(cell) and _within(cell.percent, _range(cell, lambda tcp, tfo: 100 * (tcp / tfo - 1)))


def _check_table(cells: list[PrintedCell]) -> Iterator[Finding]:
    yield from _wrong_unit(cells)
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


def _wrong_unit(cells: list[PrintedCell]) -> Iterator[Finding]:
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
        f"printed {cell.percent.text}{_misprint(cell)}"
    )
    return Finding("arithmetic", cell.subject, message, cell.file, cell.line)


def _misprint(cell: PrintedCell) -> str:
    """The numbers that would make it right, if a change of one digit suffices."""
    fixes = [f"{text} without" for text in _misprints(cell.tcp) if _fits(cell, text, cell.tfo.text)]
    fixes += [f"{text} with" for text in _misprints(cell.tfo) if _fits(cell, cell.tcp.text, text)]
    return f" (one digit makes it right: {' or '.join(fixes[:3])})" if fixes else ""


def _misprints(time: Printed) -> Iterator[str]:
    """Every number that differs in one digit before the decimal point."""
    whole = len(time.text.partition(".")[0])
    for place, digit in product(range(whole), "0123456789"):
        text = time.text[:place] + digit + time.text[place + 1 :]
        if digit != time.text[place] and float(text) > 0:
            yield text


def _fits(cell: PrintedCell, tcp: str, tfo: str) -> bool:
    ends = (100 * (a - b) / a for a in _ends(Printed(tcp)) for b in _ends(Printed(tfo)) if a > 0)
    return _within(cell.percent, list(ends))


def _range(cell: PrintedCell, measure: Callable[[float, float], float]) -> list[float]:
    """The measure at the limits of what the printed times may stand for."""
    return [measure(tcp, tfo) for tcp in _ends(cell.tcp) for tfo in _ends(cell.tfo) if tcp > 0 and tfo > 0]


def _ends(time: Printed) -> tuple[float, float]:
    return time.value - time.half, time.value + time.half


def _within(percent: Printed, corners: list[float]) -> bool:
    return min(corners) - 2 * percent.half <= percent.value <= max(corners) + 2 * percent.half
