"""Tests the built site in Chromium: `site_in_chromium.py SITE FOLDER` (after `make docs`).

It searches for a word, with the site opened as a file and served over HTTP. It writes screenshots of some
pages to FOLDER: narrow and wide, light and dark. It fails if the search finds nothing, a page requests an
address outside the site, a script reports an error, or a page is wider than the screen.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal, get_args

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as NotFoundError

from firstflight.engines.clients import installed_clients

PAGES = ("index", "gallery", "tutorial", "reference/cli", "results", "studies/paper/index")
WIDTHS = (400, 1400)
WORD = "pcapng"
Scheme = Literal["light", "dark"]


def main() -> int:
    """Prints the number of search results, and the problems."""
    site, shots = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    shots.mkdir(parents=True, exist_ok=True)
    chromium = next(client.program for client in installed_clients() if client.name == "chromium")
    with sync_playwright() as playwright, served(site) as http:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        visits = [Visit(browser, site.as_uri()), Visit(browser, http)]
        for visit in visits:
            sys.stdout.write(f"{visit.address}: {visit.search(WORD)} results for {WORD}\n")
        for name in PAGES:
            visits[0].photograph(name, shots)
        browser.close()
    wrong = [line for visit in visits for line in visit.wrong]
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serves the site over HTTP on this machine."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Visit:
    """The site at one address, and the problems found there."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.wrong: list[str] = []
        self._browser = browser

    def search(self, word: str) -> int:
        """Types the word into the search as a reader does; returns the number of pages in the result."""
        page = self._open("index", "light", 1400)
        page.locator(".md-search__button").click()
        page.locator("[role=combobox]:focus, input:focus").wait_for()
        page.keyboard.type(word)
        results = page.get_by_role("option").filter(has_text=word)
        try:
            results.first.wait_for(timeout=10_000)
        except NotFoundError:
            self.wrong.append(f"{self.address}: the search does not find {word}")
        found = results.count()
        page.context.close()
        return found

    def photograph(self, name: str, shots: Path) -> None:
        """Takes a screenshot of a page on each screen."""
        for scheme in get_args(Scheme):
            for width in WIDTHS:
                page = self._open(name, scheme, width)
                page.screenshot(path=shots / f"{name.replace('/', '_')}-{scheme}-{width}.png")
                if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    self.wrong.append(f"{name} is wider than {width} pixels")
                page.context.close()

    def _open(self, name: str, scheme: Scheme, width: int) -> Page:
        screen = self._browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = screen.new_page()
        page.on("pageerror", lambda error: self.wrong.append(f"{name}: {error}"))
        page.on("request", lambda request: self._ask(name, request.url))
        page.goto(f"{self.address}/{name}.html")
        return page

    def _ask(self, name: str, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:", "about:")):
            self.wrong.append(f"{name} asks for {url}")


if __name__ == "__main__":
    sys.exit(main())
