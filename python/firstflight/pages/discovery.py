"""Finds the initiator of each exchange of a recording with times.

A mirror with the browser's log has bodies, starts and ends (`discover`). The first rule that applies counts:

1. A redirect leads to the next request of its target.
2. Markup names the URL. Or a style sheet names it, and since its arrival the browser waited for nothing but
   other sheets and scripts.
3. A script, fetched or inline, names the URL and could run at most 50 ms before the request.
4. Otherwise the script that ended last before the request, or the document if none had: `inferred`.

A script that names the URL but could run longer before cannot have requested it by itself. Something that
came later triggered the request, so rule 4 decides. If a script has only the host or the file name, it counts
as naming the URL, but is `inferred` too.

An archive with times records more (`discover_recorded`). The first rule that applies counts:

1. A recorded redirect leads to the next request of its target.
2. The recorded initiator, if it was requested earlier. Of a script's call stack it is the file that came
   last: all of its files had to be there. If markup or an inline script of a document is the initiator, the
   request is discovered at a byte. That is where the markup names the URL, if the body is known; else the
   byte up to which the document had arrived.
3. Rules 2 and 3 above, if nothing is recorded but there are bodies.
4. A `Referer` that is a style sheet.
5. Otherwise by time, within the document that the `Referer` names. While the document was still arriving, it
   is the document, at the byte up to which it had arrived. After that it is what ended last, at most 50 ms
   before the request: a script, for images and fonts a style sheet. If there is none, it is the document.

Rules 4 and 5 are `inferred`, and so is rule 3 if a name is not certain. `docs/archives.md` has the accuracy
of rule 5, measured on recordings whose initiators are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from firstflight.model.page import Initiator, Kind, Missing
from firstflight.pages.exchange import Exchange, kind_of_mime, quiet_ms
from firstflight.pages.mentions import Files, Mention, Mentions, ScriptText, is_document, needles

# An initiator makes its request while it runs. In 2013 few tasks ran longer than this at a time.
AT_ONCE_MS = 50.0
# A parser cannot have read a document before its response began. Of the course's four documents, amazon's
# response began first, after 23 % of its transaction.
FIRST_BYTE_SHARE = 0.2
# Clocks of requests and responses differ slightly, and HARs round to the millisecond.
SLACK_MS = 2.0

Found: TypeAlias = tuple[Initiator, Kind | None]


@dataclass(frozen=True, slots=True)
class Discovery:
    """Initiator and kind of each exchange, and the references that no response answers.

    `at_byte` counts bytes on the wire.
    """

    initiators: list[Initiator | None]
    kinds: list[Kind]
    missing: list[Missing]


def discover(exchanges: list[Exchange], mentions: Mentions, files: Files) -> Discovery:
    """Finds the initiator of every exchange but the first, for a mirror with a log.

    Args:
        exchanges: In order of their start; their bodies are not encoded, so sizes on the wire are those of
            texts.
        mentions: All references of the mirror.
        files: Finds the references that the mirror answers.
    """
    return _attribute(_Finder(exchanges, mentions), exchanges, mentions, files)


def discover_recorded(exchanges: list[Exchange], mentions: Mentions, files: Files) -> Discovery:
    """As `discover`, for an archive with times."""
    return _attribute(_RecordedFinder(exchanges, mentions), exchanges, mentions, files)


def missing(mentions: Mentions, asked: set[str], files: Files) -> list[Missing]:
    """References of markup and style sheets for which there is neither a request nor a file."""
    return [
        Missing(url, f"{found[0].kind} named by resource {found[0].parent}, not in the recording")
        for url, found in mentions.by_url.items()
        if url not in asked and files.find(url) is None
    ]


def kind_by_type(exchange: Exchange) -> Kind:
    """The kind of an archive's exchange if neither the recording nor a reference gives it."""
    if exchange.text is None:
        return "frame" if exchange.is_html else kind_of_mime(exchange.mime, exchange.url)
    return _kind_by_text(exchange)


def with_wire_offset(initiator: Initiator, text_bytes: int, wire_bytes: int) -> Initiator:
    """`initiator` with `at_byte` as bytes on the wire, in proportion to the body's size there."""
    if not text_bytes:
        return replace(initiator, at_byte=0)
    return replace(initiator, at_byte=min(round(initiator.at_byte * wire_bytes / text_bytes), wire_bytes))


def through_redirects(initiators: list[Initiator | None], kinds: list[Kind]) -> list[Kind]:
    """Gives redirects and targets one kind: that of the first reference, else of the last target."""
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


def _attribute(finder: _Finder, exchanges: list[Exchange], mentions: Mentions, files: Files) -> Discovery:
    initiators: list[Initiator | None] = [None]
    kinds: list[Kind] = ["document"]
    for index, exchange in enumerate(exchanges[1:], start=1):
        initiator, kind = finder.find(index)
        initiators.append(initiator)
        kinds.append(exchange.kind or kind or finder.kind_alone(exchange))
    asked = {exchange.url for exchange in exchanges}
    return Discovery(initiators, through_redirects(initiators, kinds), missing(mentions, asked, files))


def _kind_by_text(exchange: Exchange) -> Kind:
    if exchange.redirect:
        return "other"
    kind = kind_of_mime(exchange.mime, exchange.url)
    is_frame = kind == "xhr" and exchange.text_as == "html" and is_document(exchange.read())
    return "frame" if is_frame else kind


class _Finder:
    """Finds the initiator of an exchange from texts, starts and ends of the recording."""

    def __init__(self, exchanges: list[Exchange], mentions: Mentions) -> None:
        self._exchanges = exchanges
        self._mentions = mentions
        self._followed: set[int] = set()
        self._document = next((i for i, e in enumerate(exchanges) if not e.redirect), 0)

    def find(self, index: int) -> Found:
        """The initiator of `index`. Must be called for every index in order."""
        for rule in (self._redirect, self._mention, self._script):
            if (found := rule(index)) is not None:
                return found
        return self._last_script(index), None

    def kind_alone(self, exchange: Exchange) -> Kind:
        """The kind of an exchange that no reference gives."""
        return _kind_by_text(exchange)

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
                return self._last_script(index), mention.kind
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

    def _last_script(self, index: int) -> Initiator:
        scripts = (i for i in range(index) if self._exchanges[i].text_as == "script")
        ended = [i for i in scripts if self._gap(i, index) >= 0]
        if ended:
            latest = max(ended, key=lambda i: self._exchanges[i].end_ms)
            return Initiator(latest, "script", inferred=True)
        return Initiator(self._document, "parser", self._scanned(index), inferred=True)

    def _scanned(self, index: int) -> int:
        """Bytes of the document that had arrived when `index` was requested."""
        document = self._exchanges[self._document]
        first = self._exchanges[min(self._document + 1, index)].start_ms
        share = (self._exchanges[index].start_ms - first) / max(document.end_ms - first, 1.0)
        return round(document.text_bytes * min(max(share, 0.0), 1.0))

    def _was_there(self, source: Mention | ScriptText, index: int) -> bool:
        """Whether the source had begun to arrive (for a parser) or had arrived when `index` was requested."""
        if source.parent >= index:
            return False
        parent = self._exchanges[source.parent]
        if source.via != "parser":
            return self._gap(source.parent, index) >= 0
        first_byte = parent.start_ms + FIRST_BYTE_SHARE * (parent.end_ms - parent.start_ms)
        return self._exchanges[index].start_ms >= first_byte

    def _ready_ms(self, script: ScriptText) -> float:
        """When the script could run. A document's bytes are assumed to arrive evenly after its first byte."""
        parent = self._exchanges[script.parent]
        if script.via != "parser":
            return parent.end_ms
        share = FIRST_BYTE_SHARE + (1 - FIRST_BYTE_SHARE) * script.at_byte / max(parent.text_bytes, 1)
        return parent.start_ms + (parent.end_ms - parent.start_ms) * share

    def _gap(self, parent: int, index: int) -> float:
        return self._exchanges[index].start_ms - self._exchanges[parent].end_ms

    def _quiet(self, parent: int, index: int) -> float:
        return quiet_ms(self._exchanges, self._exchanges[parent].end_ms, self._exchanges[index].start_ms)


class _RecordedFinder(_Finder):
    """Uses the recorded initiators before texts and times."""

    def __init__(self, exchanges: list[Exchange], mentions: Mentions) -> None:
        super().__init__(exchanges, mentions)
        self._redirects: dict[str, list[int]] = {}
        self._last: dict[str, int] = {}
        self._has_text = any(exchange.text for exchange in exchanges)

    def find(self, index: int) -> Found:
        """The initiator of `index`. Must be called for every index in order."""
        before = self._exchanges[index - 1]
        self._last[before.url] = index - 1
        if before.redirect:
            self._redirects.setdefault(before.redirect, []).append(index - 1)
        for rule in (self._redirect, self._stated, self._named, self._style):
            if (found := rule(index)) is not None:
                return found
        return self._latest(index), None

    def kind_alone(self, exchange: Exchange) -> Kind:
        """The kind of an exchange that neither the recording nor a reference gives."""
        return kind_by_type(exchange)

    def _redirect(self, index: int) -> Found | None:
        waiting = self._redirects.get(self._exchanges[index].url)
        return (Initiator(waiting.pop(), "redirect"), None) if waiting else None

    def _stated(self, index: int) -> Found | None:
        known = [self._last[url] for url in self._exchanges[index].stated.urls if url in self._last]
        usable = [parent for parent in known if self._exchanges[parent].has_content]
        if not usable:
            return None
        parent = max(usable, key=lambda i: self._exchanges[i].end_ms)
        return self._by(parent, index), None

    def _named(self, index: int) -> Found | None:
        found = (self._mention(index) or self._script(index)) if self._has_text else None
        return (self._on_wire(found[0]), found[1]) if found else None

    def _style(self, index: int) -> Found | None:
        parent = self._last.get(self._exchanges[index].referer)
        if parent is None or not self._exchanges[parent].is_style:
            return None
        return Initiator(parent, "style", inferred=True), None

    def _latest(self, index: int) -> Initiator:
        document = self._referring_document(index)
        if self._gap(document, index) < 0:
            return self._by(document, index, inferred=True)
        ended = [i for i in range(document + 1, index) if self._can_ask(i, index)]
        latest = max(ended, key=lambda i: self._exchanges[i].end_ms, default=document)
        return self._by(latest, index, inferred=True)

    def _by(self, parent: int, index: int, *, inferred: bool = False) -> Initiator:
        """`parent` as initiator, in a way that suits its type."""
        exchange = self._exchanges[parent]
        if exchange.is_style:
            return Initiator(parent, "style", inferred=inferred)
        if not exchange.is_html:
            return Initiator(parent, "script", inferred=inferred)
        at = self._named_at(parent, index)
        return Initiator(
            parent, "parser", self._arrived(parent, index) if at is None else at, inferred=inferred
        )

    def _named_at(self, parent: int, index: int) -> int | None:
        """The byte on the wire at which the markup of `parent` names `index`; `None` if it does not."""
        for mention in self._mentions.by_url.get(self._exchanges[index].url, ()):
            if mention.parent == parent and mention.via == "parser":
                return self._on_wire(Initiator(parent, "parser", mention.at_byte)).at_byte
        return None

    def _can_ask(self, parent: int, index: int) -> bool:
        before, exchange = self._exchanges[parent], self._exchanges[index]
        shown = kind_of_mime(exchange.mime, exchange.url) in ("image", "font")
        asks = before.is_style if shown else before.is_script
        return asks and -SLACK_MS <= self._gap(parent, index) <= AT_ONCE_MS

    def _referring_document(self, index: int) -> int:
        parent = self._last.get(self._exchanges[index].referer)
        return parent if parent is not None and self._exchanges[parent].is_html else self._document

    def _arrived(self, parent: int, index: int) -> int:
        """Bytes of `parent`'s body that had arrived when `index` was requested, if they came evenly."""
        exchange, clock = self._exchanges[parent], self._exchanges[parent].clock
        length = clock.end_ms - clock.first_byte_ms
        since = self._exchanges[index].start_ms - clock.first_byte_ms
        share = since / length if length > 0 else 1.0
        return round(exchange.body_bytes * min(max(share, 0.0), 1.0))

    def _on_wire(self, initiator: Initiator) -> Initiator:
        if initiator.via != "parser":
            return replace(initiator, at_byte=0)
        parent = self._exchanges[initiator.resource]
        if initiator.inferred:
            return replace(initiator, at_byte=min(initiator.at_byte, parent.body_bytes))
        return with_wire_offset(initiator, parent.text_bytes, parent.body_bytes)
