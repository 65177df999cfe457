"""`firstflight audit`: what a published run hides."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.console import data_console
from firstflight.cli.talk import show_json
from firstflight.course.audit import Audit, audit, audit_table, print_audit
from firstflight.course.client_logs import CourseCell
from firstflight.course.log_checks import Finding
from firstflight.course.printed import PrintedCell


def command(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A folder with client/, or a table (observations.txt); - for stdin."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Check the arithmetic and the design of a published run."""
    found = audit_table(Path("stdin"), sys.stdin.read()) if path == "-" else audit(Path(path))
    if as_json:
        show_json(_document(found))
    else:
        print_audit(found, data_console())
    return 0


def _document(found: Audit) -> dict[str, object]:
    return {
        "cells": [_cell(cell) for cell in found.cells],
        "printed": [_row(cell) for cell in found.printed],
        "findings": [_finding(finding) for finding in found.findings],
    }


def _cell(cell: CourseCell) -> dict[str, object]:
    return {
        "page": cell.page,
        "label_ms": cell.label_ms,
        "rtt_ms": cell.loads()[0].rtt_ms,
        "loads": [{"run": load.run, "tfo": load.tfo, "plt_ms": load.plt_ms} for load in cell.loads()],
        "printed_percent": cell.printed,
        "matched_percent": cell.matched,
        "null_percent": cell.null,
    }


def _row(cell: PrintedCell) -> dict[str, object]:
    numbers = {"tcp": cell.tcp.value, "tfo": cell.tfo.value, "printed_percent": cell.percent.value}
    return {
        "line": cell.line,
        "source": cell.source,
        "page": cell.page,
        "rtt_ms": cell.rtt_ms,
        "unit": cell.unit,
        **numbers,
        "improvement_percent": cell.improvement,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {**asdict(finding), "file": str(finding.file)}
