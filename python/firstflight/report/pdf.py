"""``report.pdf``: the page printed by a browser, every fold of it open."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from firstflight.errors import UsageError
from firstflight.results import write_whole

PATIENCE_MS = 120_000
"""How long drawing and printing may take each."""

_FOOTER = """<div style="font: 7px sans-serif; width: 100%; padding: 0 13mm; text-align: right">
<span class="pageNumber"></span> / <span class="totalPages"></span></div>"""


def write_pdf(folder: Path, browser: Path, *, sandbox: bool) -> Path:
    """Prints ``report.html`` of a results folder to ``report.pdf`` beside it.

    Args:
        folder: The results folder.
        browser: The Chromium to print with.
        sandbox: Whether its sandbox works here.

    Raises:
        UsageError: The browser cannot print it, or the folder cannot be written to.
    """
    with tempfile.TemporaryDirectory(prefix="firstflight-", ignore_cleanup_errors=True) as home:
        try:
            return write_whole(
                folder / "report.pdf", _print(folder / "report.html", browser, home, sandbox=sandbox)
            )
        except Error as error:
            reason = error.message.strip().partition("\n")[0]
            hint = "name another browser: --browser PATH; or open report.html and print it"
            raise UsageError(
                f"{folder / 'report.html'}: {browser} cannot print it: {reason}", hint
            ) from error


def _print(file: Path, browser: Path, home: str, *, sandbox: bool) -> bytes:
    """In a thread of its own: Playwright refuses to wait where an event loop runs, as in a notebook."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(_print_here, file, browser, home, sandbox=sandbox).result()


def _print_here(file: Path, browser: Path, home: str, *, sandbox: bool) -> bytes:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            home, executable_path=browser, chromium_sandbox=sandbox, offline=True, accept_downloads=False
        )
        try:
            return _printed(context.pages[0], file)
        finally:
            context.close()


def _printed(page: Page, file: Path) -> bytes:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(file.resolve().as_uri())
    page.evaluate("window.firstflight?.print()")
    return page.pdf(
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=_FOOTER,
        tagged=True,
        outline=True,
    )
