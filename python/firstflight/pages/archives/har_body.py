"""The body of a HAR's entry. A HAR holds it decoded: for the wire it is encoded again, as its header says."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from firstflight.pages.archives.coding import CodingError, codings_of, encoded
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.fields import value_of, without
from firstflight.pages.archives.har_fields import Node, node, pairs, positive, text
from firstflight.pages.loaded import Headers

# How far a text may be from its recorded size and still be that body: tools count bytes before or after
# decoding the character set.
_LIKE = 0.05
_SLACK_BYTES = 16
# Of the names that Python knows, those of https://encoding.spec.whatwg.org/#names-and-labels
_OF_THE_WEB = re.compile(r"utf-|iso-8859|windows-125|euc-|gb|big5|shift_jis|koi8", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class ServedBody:
    """A body, decoded and as it is served, and the header fields that fit it."""

    decoded: bytes
    served: bytes
    headers: Headers


def served_body(read: Entry, entry: Node) -> ServedBody | None:
    """The body of an entry, or None if the HAR holds none or something else in its place.

    Something else: a text that is not of the size recorded for it ("removed", cut short).
    """
    response = node(entry, "response")
    content = node(response, "content")
    body = _decoded(content, _charset(pairs(response, "headers"), text(content, "mimeType")))
    if body is None or not _is_of_size(len(body), entry):
        return None
    names = codings_of(value_of(read.headers, "content-encoding"))
    try:
        served = encoded(body, names, read.body_bytes)
    except CodingError:
        return ServedBody(body, body, without(read.headers, "content-encoding"))
    return ServedBody(body, served, read.headers)


def _decoded(content: Node, charset: str) -> bytes | None:
    written = text(content, "text")
    if not written:
        return None
    if text(content, "encoding").lower() == "base64":
        try:
            return base64.b64decode(written)
        except (binascii.Error, ValueError):
            return None
    try:
        return written.encode(charset)
    except (UnicodeError, LookupError):
        return written.encode(errors="replace")


def _is_of_size(size: int, entry: Node) -> bool:
    content = node(node(entry, "response"), "content")
    recorded = [positive(content, "size"), positive(entry, "_objectSizeUncompressed")]
    sizes = [expected for expected in recorded if expected is not None]
    return not sizes or any(abs(size - expected) <= expected * _LIKE + _SLACK_BYTES for expected in sizes)


def _charset(headers: list[tuple[str, str]], mime: str) -> str:
    """The character set a browser decoded the text from, UTF-8 if the header does not say."""
    found = _CHARSET.search(value_of(headers, "content-type") or mime)
    return found[1] if found and _OF_THE_WEB.match(found[1]) else "utf-8"
