"""Reads a mirror that has no log: from the start page along the references that its files answer.

Without a browser's word, what a style sheet refers to counts as used, and a script asks for the files whose
URL it names in full (`inferred`). Links to other pages are not followed. Times are zero.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path

from firstflight.pages.discovery import Discovery, missing
from firstflight.pages.exchanges import Exchange, kind_of_mime
from firstflight.pages.mentions import Mention, Mentions, ScriptText, needles, scan_exchange
from firstflight.pages.mirror_files import MirrorFiles
from firstflight.pages.model import Initiator, Kind
from firstflight.pages.recording import Recording
from firstflight.pages.times import Times

_MIME_OF_KIND: dict[Kind, str] = {"style": "text/css", "script": "text/javascript", "frame": "text/html"}
_MAGIC = {b"\x89PNG": "image/png", b"GIF8": "image/gif", b"\xff\xd8\xff": "image/jpeg", b"wOFF": "font/woff"}
_PAGES = ("text/html", "application/xhtml+xml")


def crawl(files: MirrorFiles, url: str, path: Path) -> Recording:
    """Reads the page at `url`, whose document is the file `path`."""
    crawler = _Crawler(files)
    crawler.add(url, path, "document", None)
    crawler.run()
    found = len(crawler.exchanges)
    return Recording(
        crawler.exchanges,
        Discovery(crawler.initiators, crawler.kinds, missing(crawler.mentions, set(crawler.known), files)),
        Times([0.0] * found, [0.0] * found, [0.0] * found, [True] * found),
    )


class _Crawler:
    def __init__(self, files: MirrorFiles) -> None:
        self._files = files
        self._urls = {url: path for url, path in files.urls().items() if _is_asset(path)}
        self.exchanges: list[Exchange] = []
        self.initiators: list[Initiator | None] = []
        self.kinds: list[Kind] = []
        self.known: set[str] = set()
        self.mentions = Mentions()

    def add(self, url: str, path: Path, kind: Kind, initiator: Initiator | None) -> None:
        mime = "text/html" if initiator is None else mime_of(path, kind)
        self.exchanges.append(Exchange(url, 0.0, 0.0, 200, mime, "", path))
        self.initiators.append(initiator)
        self.kinds.append(kind)
        self.known.add(url)

    def run(self) -> None:
        scanned = searched = 0
        while scanned < len(self.exchanges) or searched < len(self.mentions.scripts):
            if scanned < len(self.exchanges):
                self._scan(scanned)
                scanned += 1
            else:
                self._search(self.mentions.scripts[searched])
                searched += 1

    def _scan(self, index: int) -> None:
        for mention in scan_exchange(index, self.exchanges[index], self._files, self.mentions.scripts):
            self.mentions.add(mention)
            self._follow(mention)

    def _follow(self, mention: Mention) -> None:
        path = self._files.find(mention.url)
        if path is not None and mention.url not in self.known:
            self.add(mention.url, path, mention.kind, Initiator(mention.parent, mention.via, mention.at_byte))

    def _search(self, script: ScriptText) -> None:
        known_files = {exchange.file for exchange in self.exchanges}
        for url, path in self._urls.items():
            named = path not in known_files and any(n.sure and n.text in script.text for n in needles(url))
            if named:
                initiator = Initiator(script.parent, script.via, script.at_byte, inferred=True)
                mime = mimetypes.guess_type(path.name)[0] or ""
                self.add(url, path, kind_of_mime(mime, url), initiator)


def _is_asset(path: Path) -> bool:
    """Whether a script may fetch the file: no other page of a mirrored site, and of a type its name tells."""
    mime = mimetypes.guess_type(path.name)[0]
    return mime is not None and mime not in _PAGES


def mime_of(path: Path, kind: Kind) -> str:
    """The type of a file that is loaded as `kind`: by its first bytes, else by its name."""
    if kind in _MIME_OF_KIND:
        return _MIME_OF_KIND[kind]
    with path.open("rb") as file:
        start = file.read(4)
    for magic, mime in _MAGIC.items():
        if start.startswith(magic):
            return mime
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
