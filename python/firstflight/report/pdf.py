"""``report.pdf``: the page printed by a browser, every fold of it open."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from firstflight.engines.clients.chromium.printer import PRINTED
from firstflight.errors import UsageError
from firstflight.results import write_whole

_PRINTER = "firstflight.engines.clients.chromium.printer"
_LONGEST = 35
"""Of a folder, bytes: a browser's socket lies up to 70 below it, and its name may have 108 (unix(7))."""
_SHORT = "/tmp"


def write_pdf(folder: Path, browser: Path, *, sandbox: bool) -> Path:
    """Prints ``report.html`` of a results folder to ``report.pdf`` beside it.

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
        words = [str(file.resolve()), home, str(browser), f"{sandbox:d}"]
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
        return write_whole(folder / "report.pdf", (Path(home) / PRINTED).read_bytes())
