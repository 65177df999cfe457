"""What servers answer from a mirror: its files, with references that lead from host to host.

`wget -k` makes paths between folders of references to other hosts (`../static.example/a.css`). To a browser
that has every host at an address of its own they lead nowhere, so they name the host again
(`//static.example/a.css`), behind blanks that keep the body as long as it was: URLs lose blanks in front.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.pages.archives.bodies import MOST_TEXT_BYTES
from firstflight.pages.archives.store import BodyStore
from firstflight.pages.archives.urls import normal_url, usable_url
from firstflight.pages.clear import is_text
from firstflight.pages.crawl import mime_of
from firstflight.pages.exchanges import Exchange
from firstflight.pages.loaded import Spare
from firstflight.pages.mirror_files import MirrorFiles, host_folders

MOST_SPARE = 2_000
# Where browsers look for a document's own word (HTML Standard, prescan a byte stream).
_DECLARED_WITHIN = 1_024
_DECLARED = re.compile(rb"<meta[^>]+charset\s*=|^\xef\xbb\xbf", re.IGNORECASE)
# A value that servers let differ (crates/lab, origin/answers): a time, a random number, an identifier.
_CHANCE = re.compile(r"(?<=[?&;=])(?:(?:[-.:_TZ+]*\d){8,}[-.:_TZ+]*|(?=[^&;]*\d)[0-9A-Fa-f-]{16,})(?=[&;]|$)")
_URL = re.compile(rb"https?:(?:\\?/){2}[^\s\"'<>()\x7f-\xff]{1,2000}")


def unspoken_charset(exchange: Exchange) -> str:
    """`utf-8` for a document in it that does not say so itself: its header did, which no mirror keeps."""
    text = exchange.read() if exchange.is_html else b""
    if text.isascii() or _DECLARED.search(text[:_DECLARED_WITHIN]):
        return ""
    try:
        text.decode()
    except UnicodeDecodeError:
        return ""
    return "utf-8"


class MirrorBodies:
    """The files of a mirror as they are served.

    Args:
        root: The mirror directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hosts = [host for host in host_folders(root) if "." in host]
        self._store = BodyStore(str(root))

    def serve(self, file: Path, mime: str) -> Path:
        """The file to be served for `file`: another one if its references lead nowhere."""
        if not is_text(mime) or file.stat().st_size > MOST_TEXT_BYTES:
            return file.absolute()
        body = file.read_bytes()
        served = name_hosts(body, self._hosts)
        return file.absolute() if served == body else self._store.add([served], str(file))

    def spare(self, files: MirrorFiles, known: set[str]) -> tuple[Spare, ...]:
        """The files that none of the URLs in `known` means: by their names, and by what texts call them.

        Not those of other pages' visits to the same URL: with two answers the servers would give none.
        """
        urls = {url: path for url in self._written(files) if (path := files.find(url))} | files.urls()
        urls |= {f"{url}index.html": path for url, path in urls.items() if path.name == "index.html"}
        visited = {_without_chance(url) for url in known}
        spare = sorted(url for url in urls if usable_url(url) and _without_chance(url) not in visited)
        return tuple(self._spare(url, urls[url]) for url in spare[:MOST_SPARE])

    def _written(self, files: MirrorFiles) -> set[str]:
        """Every absolute URL in a text of the mirror, as HTML, style sheets and scripts write it."""
        small = (file for file in set(files.urls().values()) if file.stat().st_size <= MOST_TEXT_BYTES)
        written = (found for file in small for found in _URL.findall(file.read_bytes()))
        return {normal_url(url.decode().replace("\\", "").replace("&amp;", "&")) for url in written}

    def _spare(self, url: str, path: Path) -> Spare:
        mime = mimetypes.guess_type(urlsplit(url).path)[0] or mime_of(path, "other")
        return Spare(url, mime, self.serve(path, mime))


def _without_chance(url: str) -> str:
    path, mark, query = url.partition("?")
    return path + _CHANCE.sub("", mark + query)


def name_hosts(body: bytes, hosts: Iterable[str]) -> bytes:
    """`body` with `//host/` for each path that climbs to the folder of one of `hosts`."""
    names = b"|".join(re.escape(host.encode()) for host in hosts)
    pattern = rb"(?<![\w./%%-])(?:\.\./)+(?=(?:%s)/)" % names
    return re.sub(pattern, lambda climb: b"//".rjust(len(climb[0])), body) if names else body
