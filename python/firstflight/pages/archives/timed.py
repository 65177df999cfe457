"""Who discovered each entry of an archive with times.

In this order:

1. A recorded redirect leads to the next request of its target.
2. The recorded initiator, if it was asked for before. Of a script's call stack the file that came last: all
   of them had to be there. Asked by markup or by a script in a document, it is discovered at a byte: where
   the markup names it if the body is known, else where the document had arrived to when it was asked for.
3. Nothing recorded, but bodies: the mirror importer's rules (markup, style sheet, script that names the
   URL).
4. A `Referer` that is a style sheet.
5. Otherwise by time, within the document that the `Referer` names: the document while it was still
   arriving, at the byte it had arrived to; after that what ended last and at most 50 ms before the request:
   a script, for images and fonts a style sheet; the document if there is none.

Rules 4 and 5, and 3 where the mirror importer says so, are `inferred`. How good rule 5 is, measured on
recordings whose initiators are known: `docs/archives.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from firstflight.pages.archives.entry import Entry
from firstflight.pages.discovery import (
    AT_ONCE_MS,
    Finder,
    Found,
    kind_alone,
    through_redirects,
    with_wire_offset,
)
from firstflight.pages.exchanges import Exchange, kind_of_mime
from firstflight.pages.mentions import Mentions
from firstflight.pages.model import Initiator, Kind

# Clocks of requests and responses differ a little, and HARs round to the millisecond.
SLACK_MS = 2.0


@dataclass(frozen=True, slots=True)
class Discovered:
    """Initiator and kind of each entry; `at_byte` counts bytes on the wire."""

    initiators: list[Initiator | None]
    kinds: list[Kind]


def discover_timed(entries: list[Entry], exchanges: list[Exchange], mentions: Mentions) -> Discovered:
    """Attributes every entry but the first; `entries` are in order of their start."""
    finder = _TimedFinder(entries, exchanges, mentions)
    initiators: list[Initiator | None] = [None]
    kinds: list[Kind] = ["document"]
    for index in range(1, len(entries)):
        initiator, kind = finder.find(index)
        initiators.append(initiator)
        kinds.append(entries[index].kind or kind or kind_without_name(entries[index], exchanges[index]))
    return Discovered(initiators, through_redirects(initiators, kinds))


def kind_without_name(entry: Entry, exchange: Exchange) -> Kind:
    """What an entry is taken for by its type, where neither the recording nor a reference says."""
    if entry.text is None and entry.is_html:
        return "frame"
    return kind_alone(exchange) if entry.text else kind_of_mime(entry.mime, entry.url)


class _TimedFinder:
    def __init__(self, entries: list[Entry], exchanges: list[Exchange], mentions: Mentions) -> None:
        self._entries = entries
        self._exchanges = exchanges
        self._by_body = Finder(exchanges, mentions)
        self._mentions = mentions
        self._redirects: dict[str, list[int]] = {}
        self._last: dict[str, int] = {}
        self._document = next((i for i, entry in enumerate(entries) if not entry.redirect), 0)
        self._has_text = any(entry.text for entry in entries)

    def find(self, index: int) -> Found:
        """Who discovered `index`; to be called for every index in order."""
        before = self._entries[index - 1]
        self._last[before.url] = index - 1
        if before.redirect:
            self._redirects.setdefault(before.redirect, []).append(index - 1)
        rules: list[Callable[[int], Found | None]] = [self._redirect, self._stated, self._named, self._style]
        for rule in rules:
            if (found := rule(index)) is not None:
                return found
        return self._latest(index), None

    def _redirect(self, index: int) -> Found | None:
        waiting = self._redirects.get(self._entries[index].url)
        return (Initiator(waiting.pop(), "redirect"), None) if waiting else None

    def _stated(self, index: int) -> Found | None:
        known = [self._last[url] for url in self._entries[index].stated.urls if url in self._last]
        usable = [parent for parent in known if self._entries[parent].has_content]
        if not usable:
            return None
        parent = max(usable, key=lambda i: self._entries[i].clock.end_ms)
        return self._by(parent, index), None

    def _by(self, parent: int, index: int, *, inferred: bool = False) -> Initiator:
        """The initiator `parent`, in the way that its type can be one."""
        entry = self._entries[parent]
        if entry.is_style:
            return Initiator(parent, "style", inferred=inferred)
        if not entry.is_html:
            return Initiator(parent, "script", inferred=inferred)
        at = self._named_at(parent, index)
        return Initiator(
            parent, "parser", self._arrived(parent, index) if at is None else at, inferred=inferred
        )

    def _named_at(self, parent: int, index: int) -> int | None:
        """The byte on the wire at which the markup of `parent` names `index`."""
        for mention in self._mentions.by_url.get(self._entries[index].url, ()):
            if mention.parent == parent and mention.via == "parser":
                return self._on_wire(Initiator(parent, "parser", mention.at_byte)).at_byte
        return None

    def _named(self, index: int) -> Found | None:
        found = self._by_body.named(index) if self._has_text else None
        return (self._on_wire(found[0]), found[1]) if found else None

    def _style(self, index: int) -> Found | None:
        parent = self._last.get(self._entries[index].referer)
        if parent is None or not self._entries[parent].is_style:
            return None
        return Initiator(parent, "style", inferred=True), None

    def _latest(self, index: int) -> Initiator:
        document = self._referring_document(index)
        start = self._entries[index].clock.start_ms
        if start < self._entries[document].clock.end_ms:
            return self._by(document, index, inferred=True)
        ended = [i for i in range(document + 1, index) if self._can_ask(i, index)]
        latest = max(ended, key=lambda i: self._entries[i].clock.end_ms, default=document)
        return self._by(latest, index, inferred=True)

    def _can_ask(self, parent: int, index: int) -> bool:
        before, entry = self._entries[parent], self._entries[index]
        shown = kind_of_mime(entry.mime, entry.url) in ("image", "font")
        since = entry.clock.start_ms - before.clock.end_ms
        return (before.is_style if shown else before.is_script) and -SLACK_MS <= since <= AT_ONCE_MS

    def _referring_document(self, index: int) -> int:
        parent = self._last.get(self._entries[index].referer)
        return parent if parent is not None and self._entries[parent].is_html else self._document

    def _arrived(self, parent: int, index: int) -> int:
        """Bytes of `parent`'s body that had arrived when `index` was asked for, if they came evenly."""
        entry, clock = self._entries[parent], self._entries[parent].clock
        length = clock.end_ms - clock.first_byte_ms
        since = self._entries[index].clock.start_ms - clock.first_byte_ms
        share = since / length if length > 0 else 1.0
        return round(entry.body_bytes * min(max(share, 0.0), 1.0))

    def _on_wire(self, initiator: Initiator) -> Initiator:
        if initiator.via != "parser":
            return replace(initiator, at_byte=0)
        parent = initiator.resource
        if initiator.inferred:
            return replace(initiator, at_byte=min(initiator.at_byte, self._entries[parent].body_bytes))
        file_bytes = self._exchanges[parent].body_bytes
        return with_wire_offset(initiator, file_bytes, self._entries[parent].body_bytes)
