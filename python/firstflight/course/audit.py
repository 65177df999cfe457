"""Audits published runs: finds errors that tables hide, with file and line; as data or on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firstflight.course.client_logs import CourseCell, is_course_run, read_course_run
from firstflight.course.log_checks import KINDS, Finding, check_course_run
from firstflight.course.printed import PrintedCell, check_printed, read_printed
from firstflight.errors import UsageError
from firstflight.results.files import JOURNAL
from firstflight.text import visible_lines

_TABLE = "observations.txt"
_TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".md")
_LARGEST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit.

    Attributes:
        cells: Cells of an original run, with all their loads; empty if only a table was read.
        printed: Rows of the table; empty if there was none.
        findings: The errors, by kind in the order of `KINDS`.
    """

    cells: list[CourseCell]
    printed: list[PrintedCell]
    findings: list[Finding]


def audit(path: Path) -> Audit:
    """Audits a table, or a folder of the original experiment, with its table if that is in the same folder.

    For a folder without logs, the only table in it is audited.

    Raises:
        UsageError: It is neither, or cannot be read.
    """
    if path.is_dir() and is_course_run(path):
        return _audit_run(path)
    table = _only_table(path) if path.is_dir() else path
    return audit_table(table, _text(table))


def audit_table(file: Path, text: str) -> Audit:
    """Audits a printed table; findings name `file`.

    Raises:
        UsageError: It is not a table.
    """
    printed = read_printed(file, text)
    return Audit([], printed, _in_order(check_printed(printed)))


def _audit_run(folder: Path) -> Audit:
    cells = read_course_run(folder)
    table = next((file for place in (folder, folder.parent) if (file := place / _TABLE).is_file()), None)
    printed = read_printed(table, _text(table)) if table else []
    logged = [_with_line(finding, printed) for finding in check_course_run(cells)]
    findings = [*check_printed(printed), *logged, *_unlogged(cells, printed)]
    return Audit(cells, printed, _in_order(findings))


def _only_table(folder: Path) -> Path:
    """The folder's `observations.txt`, or the only file in it with the name of a table."""
    tables = sorted(file for file in folder.iterdir() if file.suffix in _TABLE_SUFFIXES and file.is_file())
    own = [file for file in tables if file.name == _TABLE] or tables
    if len(own) == 1 and not (folder / JOURNAL).is_file():
        return own[0]
    raise UsageError(
        f"{folder}: no logs of page loads, and {len(tables) or 'no'} tables",
        "give the folder that has client/, or a table; a results folder of ours is for firstflight report",
    )


def _with_line(finding: Finding, printed: Sequence[PrintedCell]) -> Finding:
    """Adds the line of the table to a finding about numbers that the table makes of the logs."""
    row = next((cell for cell in printed if cell.subject == finding.subject), None)
    if row is None or finding.kind != "unmatched runs":
        return finding
    return replace(finding, file=row.file, line=row.line)


def _unlogged(cells: Sequence[CourseCell], printed: Sequence[PrintedCell]) -> Iterator[Finding]:
    known = {cell.subject for cell in cells}
    orphans = [cell for cell in printed if cell.subject not in known]
    if orphans:
        pages = ", ".join(dict.fromkeys(cell.page for cell in orphans))
        message = f"no logs for {len(orphans)} rows of the table ({pages}): they are of another run"
        yield Finding("missing logs", "", message, orphans[0].file, orphans[0].line)


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    order = list(KINDS)
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_BYTES + 1)
        if len(data) > _LARGEST_BYTES:
            raise UsageError(f"{file}: larger than {_LARGEST_BYTES / 1e6:g} MB", "give the table alone")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}", "check the path") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is not UTF-8", "give a text file") from None


_RUNS = (0, 1)


def print_audit(audit: Audit, console: Console) -> None:
    """Prints an audit.

    Args:
        audit: Its result.
        console: The terminal; its width and colour settings apply.
    """
    if audit.cells:
        console.print(_runs(audit.cells))
    elif audit.printed:
        console.print(_printed(audit))
    for line in _findings(audit.findings):
        console.print(line)


def _runs(cells: list[CourseCell]) -> Table:
    """The run, with all its loads side by side."""
    table = Table(box=box.SIMPLE_HEAD, title="page load times, ms", title_justify="left", pad_edge=False)
    table.add_column("page\nRTT really", no_wrap=True)
    for mode in ("tcp", "tfo"):
        for run in _RUNS:
            table.add_column(f"{mode}\nrun {run}", justify="right", no_wrap=True)
    for name in ("tcp 0 - tfo 1\nas printed", "matched\nruns", "tcp 0 - tcp 1\nno TFO at all"):
        table.add_column(name, justify="right", no_wrap=True)
    for page in dict.fromkeys(cell.page for cell in cells):
        table.add_row(_plain(page, "bold"))
        rows = [cell for cell in cells if cell.page == page]
        for cell in rows:
            times = (_ms(cell.plt(tfo=tfo, run=run)) for tfo in (False, True) for run in _RUNS)
            changes = map(_signed, (cell.printed, cell.matched, cell.null))
            table.add_row(f"  {cell.loads()[0].rtt_ms:g} ms", *times, *changes, end_section=cell is rows[-1])
    return table


def _printed(audit: Audit) -> Table:
    """The table that was read, with the improvement computed from its times."""
    wrong = {finding.line for finding in audit.findings}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("line", "page", "path"):
        table.add_column(name, no_wrap=True)
    for name in ("PLT tcp", "PLT tfo", "printed", "improvement"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in audit.printed:
        page = " ".join(filter(None, (cell.source, cell.page)))
        times = (cell.tcp.text, cell.tfo.text, f"{cell.percent.text} %", _signed(cell.improvement))
        style = "bold red" if cell.line in wrong else ""
        table.add_row(str(cell.line), *(_plain(field) for field in (page, cell.path, *times)), style=style)
    return table


def _findings(findings: list[Finding]) -> Iterator[RenderableType]:
    if not findings:
        yield Text("No findings.")
    for kind in KINDS:
        found = [finding for finding in findings if finding.kind == kind]
        if found:
            yield Text.assemble((kind, "bold yellow"), f": {KINDS[kind]}")
        for finding in found:
            subject = f"{finding.subject}: " if finding.subject else ""
            yield Padding(_plain(f"{subject}{finding.message}"), (0, 0, 0, 2))
            yield Padding(_plain(finding.place, "dim"), (0, 0, 0, 4))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f} %"


def _plain(content: str, style: str = "") -> Text:
    """Foreign text without markup and control characters."""
    return Text(visible_lines(content), style=style)
