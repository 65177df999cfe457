"""Finds references in HTML documents, with the byte at which the parser reads each, and in style sheets.

HTML is parsed with the standard library's `html.parser` and not with lxml.html. lxml has only the line number
of an element, `html.parser` its position, which the page model needs for `at_byte`. The document is decoded
as Latin-1, in which a character is a byte, so positions are byte offsets in every encoding. Only the
references are decoded again. Style sheets (`url()` and `@import`) are parsed with tinycss2.

Not found is what only a layout engine knows: lazy loading, `media`, which `source` is chosen, whether a
selector matches. As in a browser that runs scripts, everything inside `noscript` is ignored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Literal, TypeAlias

import tinycss2  # type: ignore[import-untyped]

from firstflight.pages.urls import absolute_url

HtmlKind = Literal["style", "script", "image", "font", "frame", "other"]
Attributes = dict[str, str]

_SOURCES: dict[str, tuple[tuple[str, HtmlKind], ...]] = {
    "img": (("src", "image"), ("lowsrc", "image")),
    "script": (("src", "script"),),
    "iframe": (("src", "frame"),),
    "frame": (("src", "frame"),),
    "embed": (("src", "other"),),
    "object": (("data", "other"),),
    "video": (("src", "other"), ("poster", "image")),
    "audio": (("src", "other"),),
    "image": (("href", "image"), ("xlink:href", "image")),
}
# Tokens take a hundred times the memory of their text. No page has a style sheet of this length.
_MOST_CHARACTERS = 1 << 22
Token: TypeAlias = Any  # tinycss2 has no types


@dataclass(frozen=True, slots=True)
class HtmlReference:
    """A reference in a document, as written.

    Attributes:
        reference: The URL reference, relative to the document's base.
        kind: The kind of resource that the browser expects.
        offset: Bytes of the file that must have arrived: the end of the tag, or of the `style` element.
    """

    reference: str
    kind: HtmlKind
    offset: int


@dataclass(frozen=True, slots=True)
class InlineScript:
    """The text of a `script` element or an `on...` attribute, and the byte at which it ends."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class HtmlScan:
    """The references of one document. `base` is its `<base href>`, or empty."""

    references: tuple[HtmlReference, ...]
    scripts: tuple[InlineScript, ...]
    base: str


def scan_html(body: bytes) -> HtmlScan:
    """Scans a document. Like a browser, it accepts any input."""
    scanner = _Scanner(body.decode("latin-1"))
    return HtmlScan(tuple(scanner.references), tuple(scanner.scripts), scanner.base)


class _Scanner(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.references: list[HtmlReference] = []
        self.scripts: list[InlineScript] = []
        self.base = ""
        self._noscript = False
        self._inside = ""
        self._text: list[str] = []
        lines = (len(line) for line in text.split("\n"))
        self._line_starts = list(itertools.accumulate(lines, lambda at, length: at + length + 1, initial=0))
        # No tag ends after the last `>`; the base class would search for an end repeatedly.
        self.feed(text[: text.rfind(">") + 1])
        self.close()
        self._finish(len(text))

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Ends an unclosed comment at the end of the file, as the HTML Standard requires."""
        end = super().parse_comment(i, report)
        return len(self.rawdata) if end < 0 else end

    def parse_html_declaration(self, i: int) -> int:
        """Treats `<![if IE]>` as a comment, as the HTML Standard requires; the base class may raise."""
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "noscript":
            self._noscript = True
        if self._noscript:
            return
        attributes = {name: _decode(value) for name, value in attrs if value}
        end = self._offset() + len(self.get_starttag_text() or "")
        if tag == "base" and not self.base:
            self.base = attributes.get("href", "")
        for reference, kind in _references(tag, attributes):
            self.references.append(HtmlReference(reference, kind, end))
        for name, value in attributes.items():
            if name.startswith("on"):
                self.scripts.append(InlineScript(value, end))
        if tag in ("script", "style"):
            self._inside, self._text = tag, []

    def handle_data(self, data: str) -> None:
        if self._inside:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "noscript":
            self._noscript = False
        if tag == self._inside:
            self._finish(self._offset() + len(tag) + 3)

    def _finish(self, end: int) -> None:
        text, inside = _decode("".join(self._text)), self._inside
        self._inside, self._text = "", []
        if inside == "script" and text.strip():
            self.scripts.append(InlineScript(text, end))
        elif inside == "style":
            for found in scan_css(text):
                self.references.append(HtmlReference(found.reference, found.kind, end))

    def _offset(self) -> int:
        line, column = self.getpos()
        return self._line_starts[line - 1] + column


def _references(tag: str, attributes: Attributes) -> Iterator[tuple[str, HtmlKind]]:
    for name, kind in _SOURCES.get(tag, ()):
        if name in attributes:
            yield attributes[name], kind
    if tag == "link" and (linked := _link_kind(attributes)) and "href" in attributes:
        yield attributes["href"], linked
    if tag == "input" and attributes.get("type", "").lower() == "image" and "src" in attributes:
        yield attributes["src"], "image"
    if tag in ("img", "source") and "src" not in attributes and attributes.get("srcset", "").strip():
        yield attributes["srcset"].split()[0].rstrip(","), "image"
    if tag in ("body", "table", "tr", "td", "th") and "background" in attributes:
        yield attributes["background"], "image"
    for found in scan_css(attributes.get("style", "")):
        yield found.reference, found.kind


def _link_kind(attributes: Attributes) -> HtmlKind | None:
    """The kind of a `link`. Icons are left out: the browser's window requests them, not the page."""
    words = attributes.get("rel", "").lower().split()
    if "stylesheet" in words and "alternate" not in words:
        return "style"
    if "preload" in words:
        kinds: dict[str, HtmlKind] = {"style": "style", "script": "script", "image": "image", "font": "font"}
        return kinds.get(attributes.get("as", "").lower(), "other")
    return "script" if "modulepreload" in words else None


def _decode(latin: str) -> str:
    """Undoes the decoding as Latin-1 if the bytes are UTF-8."""
    try:
        return latin.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return latin


def base_url(scan: HtmlScan, url: str) -> str:
    """The URL to which references in the document at `url` are relative."""
    return absolute_url(scan.base, url) or url if scan.base else url


@dataclass(frozen=True, slots=True)
class StyleReference:
    """A reference in a style sheet, as written."""

    reference: str
    kind: Literal["style", "font", "image"]


def scan_css(text: str) -> list[StyleReference]:
    """References of a style sheet (or `style` attribute) in order, each once; empty if it is too long."""
    if len(text) > _MOST_CHARACTERS:
        return []
    tokens = tinycss2.parse_component_value_list(text, skip_comments=True)
    return list(dict.fromkeys(_walk(tokens)))


def _walk(tokens: list[Token]) -> Iterator[StyleReference]:
    """Visits tokens depth first without recursion, so that no nesting exhausts the stack."""
    stack = [_Level(iter(tokens))]
    while stack:
        level = stack[-1]
        token = next(level.tokens, None)
        if token is None:
            stack.pop()
            continue
        if token.type == "at-keyword":
            level.rule = token.lower_value
        elif (reference := _reference(token, level.rule)) is not None:
            yield StyleReference(reference, "style" if level.rule == "import" else level.kind)
        elif token.type == "{} block":
            kind: Literal["font", "image"] = "font" if level.rule == "font-face" else level.kind
            stack.append(_Level(iter(token.content), kind))
            level.rule = ""
        elif token.type == "literal" and token.value == ";":
            level.rule = ""
        elif token.type in ("function", "() block", "[] block"):
            inside = token.arguments if token.type == "function" else token.content
            stack.append(_Level(iter(inside), level.kind, level.rule))


@dataclass(slots=True)
class _Level:
    tokens: Iterator[Token]
    kind: Literal["font", "image"] = "image"
    rule: str = ""


def _reference(token: Token, rule: str) -> str | None:
    if token.type == "url":
        return str(token.value)
    if token.type == "string" and rule == "import":
        return str(token.value)
    if token.type == "function" and token.lower_name == "url":
        return next((str(part.value) for part in token.arguments if part.type == "string"), None)
    return None
