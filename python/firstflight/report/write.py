"""Everything a report consists of, from a results folder alone; ``report.pdf`` is printed by a browser."""

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
    """Write tables, ``summary.json``, ``observations.txt``, ``analysis.md`` and ``report.html``.

    Args:
        measured: What was measured; its folder's plan and environment are read too.

    Returns:
        The files written, in the order they were made.

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
    """Draw every figure, the waterfalls too, into ``figures/``.

    Args:
        measured: What was measured.
        forms: Of `svg`, `png` and `pdf`.
        progress: Told what is drawn next.

    Raises:
        UsageError: The folder cannot be written to.
    """
    return draw_figures(measured.folder, measured.evidence, forms, progress)


_PRINTER = "firstflight.engines.clients.chromium.printer"
_LONGEST = 35
"""Of a folder, bytes: a browser's socket lies up to 70 below it, and its name may have 108 (unix(7))."""
_SHORT = "/tmp"


def write_pdf(folder: Path, browser: Path, *, sandbox: bool) -> Path:
    """Prints ``report.html`` of a results folder to ``report.pdf`` in the same folder.

    Args:
        folder: The results folder.
        browser: The Chromium to print with.
        sandbox: Whether it must have its own sandbox.

    Raises:
        UsageError: The browser cannot print it, or the folder cannot be written to.
    """
    file = folder / "report.html"
    parent = None if len(tempfile.gettempdir()) <= _LONGEST else _SHORT
    with tempfile.TemporaryDirectory(prefix="firstflight-", dir=parent, ignore_cleanup_errors=True) as home:
        # A process of its own: it may have to give up rights, which a process with threads cannot.
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
