"""Who discovered each entry of an archive without times, and so in which order the page asked for them.

Starting from the document, what an entry that is reached refers to is reached in turn. The strongest of these
rules that reaches anything goes first:

1. A recorded redirect leads to its target.
2. Markup or a style sheet names the URL.
3. A script names the URL in full (`inferred`).
4. A script names its file, or its host (`inferred`).
5. The request's `Referer` is a style sheet or a document that is reached (`inferred`; a document: at its
   end).
6. What is left and is no document of its own: at the end of the page's document (`inferred`).

A document that nothing reached asks for is another page of the archive: it is left out, with what only it
asks for. All times are zero: the archive has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.recorded_files import RecordedFiles
from firstflight.pages.archives.timed import Discovered, kind_without_name
from firstflight.pages.discovery import missing, through_redirects, with_wire_offset
from firstflight.pages.exchanges import Exchange
from firstflight.pages.mentions import Mention, Mentions, Needle, ScriptText, needles, scan_exchange
from firstflight.pages.model import Initiator, Kind, Missing


@dataclass(frozen=True, slots=True)
class Ordered:
    """The entries of one page in the order of their discovery, and how many entries are not of it."""

    entries: list[Entry]
    discovered: Discovered
    missing: list[Missing]
    left_out: int


def discover_untimed(entries: list[Entry], start: int) -> Ordered:
    """Follows the page whose first request is `entries[start]`."""
    walk = _Walk(entries)
    walk.reach(start, None, "document")
    walk.run()
    found = [entries[index] for index in walk.order]
    kinds = [
        entry.kind or kind or kind_without_name(entry, entry.exchange())
        for entry, kind in zip(found, walk.kinds, strict=True)
    ]
    kinds[0] = "document"
    discovered = Discovered(walk.initiators, through_redirects(walk.initiators, kinds))
    asked = {entry.url for entry in entries}
    unanswered = missing(walk.mentions, asked, walk.files)
    return Ordered(found, discovered, unanswered, len(entries) - len(found))


class _Walk:
    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._waiting: dict[str, list[int]] = {}
        for index, entry in enumerate(entries):
            self._waiting.setdefault(entry.url, []).append(index)
        self.files = RecordedFiles(entries)
        self.mentions = Mentions()
        self.order: list[int] = []
        self.initiators: list[Initiator | None] = []
        self.kinds: list[Kind | None] = []
        self._places: dict[str, int] = {}
        self._scanned = 0
        self._searched: dict[bool, int] = {True: 0, False: 0}

    def reach(self, index: int, initiator: Initiator | None, kind: Kind | None = None) -> None:
        """Adds one entry of the page."""
        entry = self._entries[index]
        self._waiting[entry.url].remove(index)
        self._places.setdefault(entry.url, len(self.order))
        self.order.append(index)
        self.initiators.append(initiator)
        self.kinds.append(kind)

    def run(self) -> None:
        """Reaches all that can be, the strongest rule first."""
        while (
            self._scan()
            or self._search(sure=True)
            or self._search(sure=False)
            or self._refer()
            or self._rest()
        ):
            pass

    def _scan(self) -> bool:
        """Rules 1 and 2 on the next entry that is reached."""
        if self._scanned == len(self.order):
            return False
        place = self._scanned
        self._scanned += 1
        entry = self._entries[self.order[place]]
        if entry.redirect:
            self._reach_all(entry.redirect, Initiator(place, "redirect"), None, first_only=True)
        for mention in self._mentions_of(place, entry.exchange()):
            self.mentions.add(mention)
            found = Initiator(place, mention.via, mention.at_byte)
            self._reach_all(mention.url, self._on_wire(found), mention.kind)
        return True

    def _mentions_of(self, place: int, exchange: Exchange) -> Iterator[Mention]:
        return scan_exchange(place, exchange, self.files, self.mentions.scripts)

    def _search(self, *, sure: bool) -> bool:
        """Rules 3 and 4 on the next script that is not searched."""
        at = self._searched[sure]
        if at == len(self.mentions.scripts):
            return False
        self._searched[sure] += 1
        script = self.mentions.scripts[at]
        for url in [url for url, indices in self._waiting.items() if indices]:
            if _names(script, needles(url), sure=sure):
                initiator = Initiator(script.parent, script.via, script.at_byte, inferred=True)
                self._reach_all(url, self._on_wire(initiator), None)
        return True

    def _refer(self) -> bool:
        """Rule 5 on the first entry that it reaches."""
        for index in self._unreached():
            place = self._places.get(self._entries[index].referer)
            if place is not None:
                self.reach(index, self._at_end(place))
                return True
        return False

    def _rest(self) -> bool:
        """Rule 6 on the first entry that it reaches."""
        pages = {self._entries[index].url for index in self._unreached() if self._is_page(index)}
        for index in self._unreached():
            if not self._is_page(index) and self._entries[index].referer not in pages:
                self.reach(index, self._at_end(self._document()))
                return True
        return False

    def _unreached(self) -> list[int]:
        return sorted(index for indices in self._waiting.values() for index in indices)

    def _is_page(self, index: int) -> bool:
        entry = self._entries[index]
        return (entry.is_html and entry.kind != "xhr") or bool(entry.redirect)

    def _document(self) -> int:
        """The place of the page's document, after its redirects."""
        places = (p for p, index in enumerate(self.order) if not self._entries[index].redirect)
        return next(places, 0)

    def _at_end(self, place: int) -> Initiator:
        entry = self._entries[self.order[place]]
        if entry.is_style:
            return Initiator(place, "style", inferred=True)
        if entry.is_html:
            return Initiator(place, "parser", entry.body_bytes, inferred=True)
        return Initiator(place, "script", inferred=True)

    def _reach_all(
        self, url: str, initiator: Initiator, kind: Kind | None, *, first_only: bool = False
    ) -> None:
        waiting = list(self._waiting.get(url, ()))
        for index in waiting[:1] if first_only else waiting:
            self.reach(index, initiator, kind)

    def _on_wire(self, initiator: Initiator) -> Initiator:
        entry = self._entries[self.order[initiator.resource]]
        if initiator.via != "parser":
            return initiator
        return with_wire_offset(initiator, entry.exchange().body_bytes, entry.body_bytes)


def _names(script: ScriptText, parts: list[Needle], *, sure: bool) -> bool:
    return any(needle.sure is sure and needle.text in script.text for needle in parts)
