"""Finds every reference in the HTML, style sheets and scripts of a recording: which body names which URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from firstflight.model.page import Kind, Via
from firstflight.pages.bodies import scannable
from firstflight.pages.exchange import Exchange
from firstflight.pages.scan import base_url, scan_css, scan_html
from firstflight.pages.urls import absolute_url

MOST_CACHED = 2_000


class Files(Protocol):
    """The references that a recording answers."""

    def find(self, url: str) -> Path | None:
        """The file with the body of `url`, or None."""
        ...

    def resolve(self, reference: str, base_url: str, base_file: Path | None = None) -> str:
        """The absolute URL of `reference` in `base_url`, without fragment; '' if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference in markup or a style sheet.

    Attributes:
        url: The URL that it names.
        kind: The kind of resource that the browser expects.
        parent: Index of the exchange whose body has the reference.
        via: How the browser finds it.
        at_byte: With `via` = `parser`, bytes of the parent's file that must have arrived.
    """

    url: str
    kind: Kind
    parent: int
    via: Via
    at_byte: int


@dataclass(frozen=True, slots=True)
class ScriptText:
    """Script source or data of exchange `parent`: its whole body, or inline text up to `at_byte`."""

    text: str
    parent: int
    via: Via
    at_byte: int


@dataclass(slots=True)
class Mentions:
    """All references of a recording.

    Attributes:
        by_url: References to each URL, in the order of discovery.
        scripts: All script text.
        cached: Bodies that exist but were never requested over the network: the browser had them in its
            cache.
    """

    by_url: dict[str, list[Mention]] = field(default_factory=dict)
    scripts: list[ScriptText] = field(default_factory=list)
    cached: set[Path] = field(default_factory=set)

    def add(self, mention: Mention) -> None:
        """Adds one reference."""
        self.by_url.setdefault(mention.url, []).append(mention)


def collect_mentions(exchanges: list[Exchange], files: Files) -> Mentions:
    """Scans every body of a recording, and bodies that the browser had cached."""
    mentions = Mentions()
    asked = {exchange.url for exchange in exchanges}
    for index, exchange in enumerate(exchanges):
        for mention in scan_exchange(index, exchange, files, mentions.scripts):
            mentions.add(mention)
            if mention.url not in asked:
                _look_through(mention, files, mentions)
    return mentions


def scan_exchange(
    index: int, exchange: Exchange, files: Files, scripts: list[ScriptText]
) -> Iterator[Mention]:
    """References in the body of one exchange; its script text is appended to `scripts`."""
    match exchange.text_as:
        case "script" | "data":
            scripts.append(ScriptText(_script_text(exchange.read()), index, "script", 0))
        case "style":
            for reference, kind in _style_references(exchange.read()):
                if url := files.resolve(reference, exchange.url, exchange.text):
                    yield Mention(url, kind, index, "style", 0)
        case "html":
            yield from _scan_document(index, exchange, files, scripts)


def _scan_document(
    index: int, exchange: Exchange, files: Files, scripts: list[ScriptText]
) -> Iterator[Mention]:
    body = exchange.read()
    scan = scan_html(body)
    base = base_url(scan, exchange.url)
    # Markup that is not a complete document is data: a script inserts it once all of it has arrived.
    via: Via = "parser" if index == 0 or is_document(body) else "script"
    if via == "script":
        scripts.append(ScriptText(_script_text(body), index, via, 0))
    for inline in scan.scripts:
        text = inline.text.replace("\\/", "/")
        scripts.append(ScriptText(text, index, via, inline.offset if via == "parser" else 0))
    for found in scan.references:
        url = files.resolve(found.reference, base, exchange.text)
        if url:
            yield Mention(url, found.kind, index, via, found.offset if via == "parser" else 0)


def is_document(body: bytes) -> bool:
    """Whether HTML is a complete document rather than a fragment of another."""
    return re.search(rb"<(!doctype|html|head|body|frameset|script)\b", body[:4096], re.IGNORECASE) is not None


def _look_through(first: Mention, files: Files, mentions: Mentions) -> None:
    """References of a cached body count as made where the cached body itself is referenced."""
    waiting = [first]
    while waiting and len(mentions.cached) < MOST_CACHED:
        mention = waiting.pop()
        path = files.find(mention.url)
        if path is None or path in mentions.cached:
            continue
        mentions.cached.add(path)
        if mention.kind == "script":
            text = _script_text(scannable(path))
            mentions.scripts.append(ScriptText(text, mention.parent, mention.via, mention.at_byte))
        elif mention.kind == "style":
            for reference, kind in _style_references(scannable(path)):
                if url := files.resolve(reference, mention.url, path):
                    found = Mention(url, kind, mention.parent, mention.via, mention.at_byte)
                    mentions.add(found)
                    waiting.append(found)


def _style_references(body: bytes) -> Iterable[tuple[str, Kind]]:
    text = body.decode("utf-8", errors="replace")
    return [(found.reference, found.kind) for found in scan_css(text)]


def _script_text(body: bytes) -> str:
    r"""The source of a script for string search, with `/` in place of `\/`."""
    return body.decode("utf-8", errors="replace").replace("\\/", "/")


@dataclass(frozen=True, slots=True)
class Needle:
    """A part of a URL to look for in scripts; `sure` if a script that contains it requests the URL."""

    text: str
    sure: bool


def needles(url: str) -> list[Needle]:
    """Parts of `url` that a script which requests it may contain, the most specific first."""
    parts = urlsplit(url)
    path, name = parts.path, parts.path.rsplit("/", maxsplit=1)[-1]
    query = f"?{parts.query}" if parts.query else ""
    found = [Needle(f"{parts.netloc}{path}{query}", True), Needle(f"{parts.netloc}{path}", True)]
    # Ad servers append parameters to the path: host/path;key=value
    found.append(Needle(f"{parts.netloc}{path.split(';')[0]}", True))
    if path.count("/") > 1:
        found += [Needle(f"{path}{query}", True), Needle(path, True)]
    if len(name) > 5 and "." in name:
        found.append(Needle(name, False))
    found.append(Needle(parts.netloc, False))
    return [
        needle for needle in dict.fromkeys(found) if needle.text.strip("/") != parts.netloc or not needle.sure
    ]


class RecordedFiles:
    """The references that an archive answers."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._texts: dict[str, Path | None] = {exchange.url: exchange.text for exchange in exchanges}

    def find(self, url: str) -> Path | None:
        """The decoded body of `url`, or None."""
        return self._texts.get(url)

    def resolve(self, reference: str, base_url: str, base_file: Path | None = None) -> str:
        """The absolute URL of `reference` in `base_url`, without fragment; '' if it has none."""
        return absolute_url(reference, base_url)
