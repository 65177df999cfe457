"""Checks the built site: `site_links.py FOLDER` lists every link, picture and anchor without a target.

Zensical checks the links between pages. This reads its output, as a browser that opens the folder would, and
so also checks menus, figures and headings. It does not check addresses outside the site.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The link targets of an HTML page, and the anchors that it defines."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps the targets and anchors of one element."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


def main() -> int:
    """Prints each dead link with its page. The exit code is 1 if there are any."""
    site = Path(sys.argv[1])
    pages = sorted(file for file in site.rglob("*.html") if file.name != "404.html")
    dead = [(page, link) for page in pages for link in sorted(_page(page).links) if not _leads(page, link)]
    for page, link in dead:
        sys.stderr.write(f"{page}: {link} leads nowhere\n")
    links = sum(len(_page(page).links) for page in pages)
    sys.stdout.write(f"{site}/index.html: {len(pages)} pages, {links} links, {len(dead)} of them dead\n")
    return 1 if dead or not links else 0


@cache
def _page(file: Path) -> Page:
    return Page(file)


def _leads(page: Path, link: str) -> bool:
    address, anchor = urldefrag(link)
    if urlsplit(address).scheme or address.startswith("//"):
        return True
    file = (page.parent / unquote(address)).resolve() if address else page.resolve()
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return False
    return not anchor or file.suffix != ".html" or unquote(anchor) in _page(file).names


if __name__ == "__main__":
    sys.exit(main())
