"""Prints a file to a PDF.

`python -m firstflight.engines.clients.chromium.printer FILE.html FILE.pdf BROWSER SANDBOX`.

The browser's profile is made in the PDF's folder. SANDBOX is 1 or 0. With 1 root's rights are dropped first,
because Chromium has no sandbox as root. An error is one line on standard error.
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from firstflight.engines.clients.chromium.browser import NO_SANDBOX, become_ordinary

LIMIT_MS = 120_000
"""Limit for drawing and for printing, each."""

_FOOTER = """<div style="font: 7px sans-serif; width: 100%; padding: 0 13mm; text-align: right">
<span class="pageNumber"></span> / <span class="totalPages"></span></div>"""


def main(arguments: list[str]) -> int:
    """Prints the file; on an error returns a message, which becomes the exit status."""
    file, pdf, browser, sandbox = arguments
    folder = Path(pdf).parent
    wanted = sandbox == "1"
    if wanted and os.geteuid() == 0 and not become_ordinary([folder]):
        sys.exit(NO_SANDBOX)
    try:
        content = _print(Path(file), Path(browser), folder, sandbox=wanted)
    except Error as error:
        sys.exit(error.message.strip().partition("\n")[0])
    Path(pdf).write_bytes(content)
    return 0


def _print(file: Path, browser: Path, folder: Path, *, sandbox: bool) -> bytes:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=browser,
            chromium_sandbox=sandbox,
            env={**os.environ, "HOME": str(folder)},
            offline=True,
            accept_downloads=False,
        )
        try:
            return _printed(context.pages[0], file)
        finally:
            context.close()


def _printed(page: Page, file: Path) -> bytes:
    page.set_default_timeout(LIMIT_MS)
    page.goto(file.as_uri())
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
