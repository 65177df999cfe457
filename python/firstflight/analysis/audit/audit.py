"""Reads what somebody published and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firstflight.analysis.audit.arithmetic import check_printed
from firstflight.analysis.audit.course_checks import check_course_run
from firstflight.analysis.audit.course_run import CourseCell, is_course_run, read_course_run
from firstflight.analysis.audit.finding import KINDS, Finding
from firstflight.analysis.audit.printed import PrintedCell, read_printed
from firstflight.errors import UsageError
from firstflight.results.files import JOURNAL

_TABLE = "observations.txt"
_TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".md")
_LARGEST_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of an audit.

    Attributes:
        cells: Cells of an original run, all its loads side by side; empty where only a table was read.
        printed: Rows of the table that was read; empty where there was none.
        findings: What is wrong, by kind in the order of `KINDS`.
    """

    cells: list[CourseCell]
    printed: list[PrintedCell]
    findings: list[Finding]


def audit(path: Path) -> Audit:
    """Audits a folder of the original experiment (with its table, where one lies beside it), or a table.

    A folder without logs stands for the one table in it.

    Raises:
        UsageError: It is neither, or cannot be read.
    """
    if path.is_dir() and is_course_run(path):
        return _audit_run(path)
    table = _only_table(path) if path.is_dir() else path
    return audit_table(table, _text(table))


def audit_table(file: Path, text: str) -> Audit:
    """Audits a printed table; `file` is named in places.

    Raises:
        UsageError: It is not one.
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
    """The folder's `observations.txt`, or the one file in it that is named as a table."""
    tables = sorted(file for file in folder.iterdir() if file.suffix in _TABLE_SUFFIXES and file.is_file())
    own = [file for file in tables if file.name == _TABLE] or tables
    if len(own) == 1 and not (folder / JOURNAL).is_file():
        return own[0]
    raise UsageError(
        f"{folder}: no logs of page loads, and {len(tables) or 'no'} tables",
        "give the folder that has client/, or a table; a results folder of ours is for firstflight report",
    )


def _with_line(finding: Finding, printed: Sequence[PrintedCell]) -> Finding:
    """What the table makes of the logs shows in a line of the table, where there is a table."""
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
