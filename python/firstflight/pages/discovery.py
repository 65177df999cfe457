"""Who discovered each exchange of a recording with times.

In this order:

1. A redirect leads to the next request of its target.
2. Markup names the URL, or a style sheet does and nothing but other sheets and scripts was waited for since
   it came.
3. A script, fetched or inline, names the URL and could run at most 50 ms before the request.
4. Otherwise the script that ended last before the request, or the document if none had: `inferred`.

A script that names the URL but could run longer before cannot have asked by itself: something that came later
made it ask, so rule 4 decides. Finding only the host or the file name in a script counts as naming, but is
`inferred` too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from firstflight.pages.exchanges import Exchange, kind_of_mime
from firstflight.pages.gaps import quiet_ms
from firstflight.pages.mentions import Files, Mention, Mentions, ScriptText, is_document, needles
from firstflight.pages.model import Initiator, Kind, Missing

# What asks for something does so while it runs; longer than this few tasks ran at once in 2013.
AT_ONCE_MS = 50.0
# A document cannot have been read before its answer began: of the course's four, amazon's did first, after
# 23 % of its transaction.
FIRST_BYTE_SHARE = 0.2

Found: TypeAlias = tuple[Initiator, Kind | None]


@dataclass(frozen=True, slots=True)
class Discovery:
    """Initiator and kind of each exchange, and the references that nothing answers.

    `at_byte` counts bytes of the initiator's file, not of the wire.
    """

    initiators: list[Initiator | None]
    kinds: list[Kind]
    missing: list[Missing]


def discover(exchanges: list[Exchange], mentions: Mentions, files: Files) -> Discovery:
    """Attributes every exchange but the first; `exchanges` are in order of their start."""
    finder = Finder(exchanges, mentions)
    initiators: list[Initiator | None] = [None]
    kinds: list[Kind] = ["document"]
    for index in range(1, len(exchanges)):
        initiator, kind = finder.find(index)
        initiators.append(initiator)
        kinds.append(kind or kind_alone(exchanges[index]))
    asked = {exchange.url for exchange in exchanges}
    return Discovery(initiators, through_redirects(initiators, kinds), missing(mentions, asked, files))


def missing(mentions: Mentions, asked: set[str], files: Files) -> list[Missing]:
    """References of markup and style sheets that neither a request nor a file answers."""
    return [
        Missing(url, f"{found[0].kind} named by resource {found[0].parent}, not in the recording")
        for url, found in mentions.by_url.items()
        if url not in asked and files.find(url) is None
    ]


def kind_alone(exchange: Exchange) -> Kind:
    """What the browser takes an exchange for, where no reference says."""
    if exchange.redirect:
        return "other"
    kind = kind_of_mime(exchange.mime, exchange.url)
    return "frame" if kind == "xhr" and exchange.is_html and is_document(exchange.read()) else kind


def with_wire_offset(initiator: Initiator, file_bytes: int, wire_bytes: int) -> Initiator:
    """`initiator` with `at_byte` counted on the wire, in proportion to the body's size there."""
    if not file_bytes:
        return replace(initiator, at_byte=0)
    return replace(initiator, at_byte=min(round(initiator.at_byte * wire_bytes / file_bytes), wire_bytes))


class Finder:
    """Finds who discovered an exchange, from its recording's bodies and times."""

    def __init__(self, exchanges: list[Exchange], mentions: Mentions) -> None:
        self._exchanges = exchanges
        self._mentions = mentions
        self._followed: set[int] = set()
        self._document = next((i for i, e in enumerate(exchanges) if not e.redirect), 0)

    def find(self, index: int) -> Found:
        """By rules 1 to 4 of this module; to be called for every index in order."""
        for rule in (self._redirect, self._mention, self._script):
            if (found := rule(index)) is not None:
                return found
        return self._latest(index), None

    def named(self, index: int) -> Found | None:
        """By rules 2 and 3: markup, a style sheet or a script names the URL."""
        return self._mention(index) or self._script(index)

    def _redirect(self, index: int) -> Found | None:
        for parent in range(index - 1, -1, -1):
            before = self._exchanges[parent]
            leads_here = before.redirect == self._exchanges[index].url and self._gap(parent, index) >= -1
            if leads_here and parent not in self._followed:
                self._followed.add(parent)
                return Initiator(parent, "redirect"), None
        return None

    def _mention(self, index: int) -> Found | None:
        for mention in self._mentions.by_url.get(self._exchanges[index].url, ()):
            if not self._was_there(mention, index):
                continue
            if mention.via == "style" and self._quiet(mention.parent, index) > AT_ONCE_MS:
                return self._latest(index), mention.kind
            return Initiator(mention.parent, mention.via, mention.at_byte), mention.kind
        return None

    def _script(self, index: int) -> Found | None:
        start = self._exchanges[index].start_ms
        for needle in needles(self._exchanges[index].url):
            naming = [
                s for s in self._mentions.scripts if needle.text in s.text and self._was_there(s, index)
            ]
            if not naming:
                continue
            latest = max(naming, key=self._ready_ms)
            if start - self._ready_ms(latest) > AT_ONCE_MS:
                return None
            return Initiator(latest.parent, latest.via, latest.at_byte, inferred=not needle.sure), None
        return None

    def _latest(self, index: int) -> Initiator:
        ended = [i for i in range(index) if self._exchanges[i].is_script and self._gap(i, index) >= 0]
        if ended:
            latest = max(ended, key=lambda i: self._exchanges[i].end_ms)
            return Initiator(latest, "script", inferred=True)
        return Initiator(self._document, "parser", self._arrived(index), inferred=True)

    def _arrived(self, index: int) -> int:
        """Bytes of the document that had arrived when `index` was asked for."""
        document = self._exchanges[self._document]
        first = self._exchanges[min(self._document + 1, index)].start_ms
        share = (self._exchanges[index].start_ms - first) / max(document.end_ms - first, 1.0)
        return round(document.body_bytes * min(max(share, 0.0), 1.0))

    def _was_there(self, source: Mention | ScriptText, index: int) -> bool:
        """Whether the source had begun to arrive (for a parser) or had arrived when `index` was asked for."""
        if source.parent >= index:
            return False
        parent = self._exchanges[source.parent]
        if source.via != "parser":
            return self._gap(source.parent, index) >= 0
        first_byte = parent.start_ms + FIRST_BYTE_SHARE * (parent.end_ms - parent.start_ms)
        return self._exchanges[index].start_ms >= first_byte

    def _ready_ms(self, script: ScriptText) -> float:
        """When the script could run; a document's bytes are taken to come evenly after its first byte."""
        parent = self._exchanges[script.parent]
        if script.via != "parser":
            return parent.end_ms
        share = FIRST_BYTE_SHARE + (1 - FIRST_BYTE_SHARE) * script.at_byte / max(parent.body_bytes, 1)
        return parent.start_ms + (parent.end_ms - parent.start_ms) * share

    def _gap(self, parent: int, index: int) -> float:
        return self._exchanges[index].start_ms - self._exchanges[parent].end_ms

    def _quiet(self, parent: int, index: int) -> float:
        return quiet_ms(self._exchanges, self._exchanges[parent].end_ms, self._exchanges[index].start_ms)


def through_redirects(initiators: list[Initiator | None], kinds: list[Kind]) -> list[Kind]:
    """A redirect and its target are one thing: what the first was named as, else what the last is."""
    kinds = list(kinds)
    redirected = [
        (i, found.resource) for i, found in enumerate(initiators) if found and found.via == "redirect"
    ]
    for child, parent in reversed(redirected):
        if kinds[parent] == "other":
            kinds[parent] = kinds[child]
    for child, parent in redirected:
        kinds[child] = kinds[parent]
    return kinds
