"""Writes all files of a report from a results folder alone; a browser prints ``report.pdf``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from firstflight.analysis import words
from firstflight.analysis.summary import Measured
from firstflight.course.answers import answers, render_answers
from firstflight.course.observations import observations
from firstflight.errors import UsageError
from firstflight.report.figures.draw import draw_figures
from firstflight.report.html import render_html
from firstflight.results import write_whole
from firstflight.results.tables import write_tables


def write_report(measured: Measured) -> list[Path]:
    """Writes tables, ``summary.json``, ``observations.txt``, ``analysis.md`` and ``report.html``.

    Args:
        measured: The results folder in memory; its plan and environment are read too.

    Returns:
        The files, in the order in which they were written.

    Raises:
        UsageError: The folder cannot be written to, or a page's profile cannot be read.
    """
    folder, evidence = measured.folder, measured.evidence
    told = render_answers(answers(evidence), words.subject(measured.summary["cells"]))
    summary = json.dumps(measured.summary, indent=2, ensure_ascii=False) + "\n"
    return [
        *write_tables(folder, measured.records),
        write_whole(folder / "summary.json", summary.encode()),
        write_whole(folder / "observations.txt", observations(measured.summary).encode()),
        write_whole(folder / "analysis.md", told.encode()),
        write_whole(folder / "report.html", render_html(folder, evidence).encode()),
    ]


def write_figures(
    measured: Measured, forms: Sequence[str], progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Draws every figure, including waterfalls, into ``figures/``.

    Args:
        measured: The results folder in memory.
        forms: File types: `svg`, `png`, `pdf`.
        progress: Called with the name of each figure before it is drawn.

    Raises:
        UsageError: The folder cannot be written to.
    """
    return draw_figures(measured.folder, measured.evidence, forms, progress)


_PRINTER = "firstflight.engines.clients.chromium.printer"
_LONGEST = 35
"""Longest temporary folder, bytes: a browser's socket path, limited to 108 (unix(7)), adds up to 70."""
_SHORT = "/tmp"


def write_pdf(folder: Path, browser: Path, *, sandbox: bool) -> Path:
    """Prints ``report.html`` of a results folder to ``report.pdf`` in the same folder.

    Args:
        folder: The results folder.
        browser: The Chromium to print with.
        sandbox: Whether the browser must have its own sandbox.

    Raises:
        UsageError: The browser cannot print it, or the folder cannot be written to.
    """
    file = folder / "report.html"
    parent = None if len(tempfile.gettempdir()) <= _LONGEST else _SHORT
    with tempfile.TemporaryDirectory(prefix="firstflight-", dir=parent, ignore_cleanup_errors=True) as home:
        # In a process of its own, since dropping rights is not possible in a process with threads.
        printed = Path(home) / "report.pdf"
        words = [str(file.resolve()), str(printed), str(browser), f"{sandbox:d}"]
        printer = subprocess.run(
            [sys.executable, "-P", "-m", _PRINTER, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": home},
            check=False,
        )
        if printer.returncode != 0:
            said = printer.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            reason = said[:200] or f"its driver ended with {printer.returncode}"
            hint = "name another browser: --browser PATH; or open report.html and print it"
            raise UsageError(f"{file}: {browser} cannot print it: {reason}", hint)
        return write_whole(folder / printed.name, printed.read_bytes())
