"""Tables that others printed: page, RTT, time without TFO, time with, improvement in percent.

Read are the original's `observations.txt` (rows below a line with the page's name), tables with a header
separated by commas, tabs or two spaces, and Markdown tables. Numbers keep the digits they were printed with:
a time of 1.54 s was measured somewhere in 1.535 to 1.545.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import UsageError

_ORIGINAL = re.compile(r"page\s+rtt\s*\(ms\)\s+plt: no tfo \((?P<unit>m?s)\)", re.IGNORECASE)
_AGAIN, _NULL = "no TFO again", "TCP on TCP"
"""How our own `observations.txt` heads the times of the second column where they are of TCP too."""
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
        """Half a unit of its last digit: how far what was measured may be from it."""
        _, _, digits = self.text.partition(".")
        return 0.5 * 10.0 ** -len(digits)


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One row of somebody's table.

    Attributes:
        file: Where it stands.
        line: On which line, from 1.
        source: Which table, where a file has several.
        page: The page.
        path: RTT, and bandwidth where the table has one, for people.
        rtt_ms: Round-trip time, as printed.
        tcp: Page load time without TFO.
        tfo: With TFO.
        percent: The improvement.
        unit: `s`, `ms` or empty, as the table says.
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
        file: Named in places.
        text: The whole text.

    Raises:
        UsageError: There is no table in it, or a row is not a row.
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
    """The layout of the original's `plot.py`: the page on a line of its own, rows indented."""
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
    """Whether these can only be a row, though whoever pasted it lost the space before it."""
    return len(fields) == 4 and all(map(_number, fields))


def _table(file: Path, lines: list[tuple[int, str]]) -> Iterator[PrintedCell]:
    """A table with a header, separated by commas, tabs, bars, or, as pasted from a page, two spaces."""
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
    """Where each column is; empty if the line is no header."""
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
    """The number a field holds, with its digits; None if it holds none, or more than one."""
    bare = text.strip().rstrip("%").strip().replace("\N{MINUS SIGN}", "-")
    return bare if _NUMBER.fullmatch(bare) else None
