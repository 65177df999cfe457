"""An audit on a terminal: the run or table reprinted with its signs, then every finding with its line."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firstflight.analysis.audit import KINDS, Audit, CourseCell, Finding
from firstflight.report.plain import plain

_RUNS = (0, 1)


def print_audit(audit: Audit, console: Console) -> None:
    """Prints an audit.

    Args:
        audit: What came of it.
        console: Where to; its width and colour are honoured.
    """
    if audit.cells:
        console.print(_runs(audit.cells))
    elif audit.printed:
        console.print(_printed(audit))
    for line in _findings(audit.findings):
        console.print(line)


def _runs(cells: list[CourseCell]) -> Table:
    """The run, all its loads side by side."""
    table = Table(box=box.SIMPLE_HEAD, title="page load times, ms", title_justify="left", pad_edge=False)
    table.add_column("page\nRTT really", no_wrap=True)
    for mode in ("tcp", "tfo"):
        for run in _RUNS:
            table.add_column(f"{mode}\nrun {run}", justify="right", no_wrap=True)
    for name in ("tcp 0 - tfo 1\nas printed", "matched\nruns", "tcp 0 - tcp 1\nno TFO at all"):
        table.add_column(name, justify="right", no_wrap=True)
    for page in dict.fromkeys(cell.page for cell in cells):
        table.add_row(plain(page, "bold"))
        rows = [cell for cell in cells if cell.page == page]
        for cell in rows:
            times = (_ms(cell.plt(tfo=tfo, run=run)) for tfo in (False, True) for run in _RUNS)
            changes = map(_signed, (cell.printed, cell.matched, cell.null))
            table.add_row(f"  {cell.loads()[0].rtt_ms:g} ms", *times, *changes, end_section=cell is rows[-1])
    return table


def _printed(audit: Audit) -> Table:
    """The table that was read, with the improvement its times make."""
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
        table.add_row(str(cell.line), *(plain(field) for field in (page, cell.path, *times)), style=style)
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
            yield Padding(plain(f"{subject}{finding.message}"), (0, 0, 0, 2))
            yield Padding(plain(finding.place, "dim"), (0, 0, 0, 4))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f} %"
