"""Recorded bodies and header fields of an https page, made those of the same page over http.

References lose the `s` of their scheme and nothing else changes, so a body stays as long as it was but for
one byte per reference. What would keep a browser from loading the result is taken out: hashes of scripts that
are no longer the same, and the wish to have everything upgraded. URLs that a script puts together are left:
what it then asks for with https fails.
"""

from __future__ import annotations

import re

from firstflight.pages.archives.bodies import MOST_TEXT_BYTES
from firstflight.pages.archives.coding import CodingError, codings_of, decoded, encoded
from firstflight.pages.loaded import Headers

# A URL from its scheme to its end: one inside another, in a query, is part of what was recorded.
_URL = re.compile(rb"https(:(?://|\\/\\/)(?:(?!&quot;|&#34;)[^\s\"'<>()])*)")
_INTEGRITY = re.compile(rb"(?<=[\s\"'])integrity(?=\s*=)")
_UPGRADE = "upgrade-insecure-requests"
_TEXT = re.compile(r"text/|.*(?:javascript|ecmascript|json|xml|html)")
_COOKIE_OF_TLS = re.compile(r"\s*;\s*(?:secure|samesite=none)(?=\s*;|\s*$)", re.IGNORECASE)


def is_text(mime: str) -> bool:
    """Whether a body of this type can refer to others."""
    return bool(_TEXT.match(mime.lower()))


def clear_text(text: bytes) -> bytes:
    """A decoded body with its references in the clear."""
    text = _URL.sub(rb"http\1", text)
    return _INTEGRITY.sub(b"data-integrity", text).replace(_UPGRADE.encode(), b"")


def clear_body(body: bytes, content_encoding: str) -> bytes:
    """A body as it is served, in the same coding as before; unchanged where it cannot be decoded.

    Args:
        body: The body in its coding.
        content_encoding: That coding, as its header field says it; empty without one.
    """
    codings = codings_of(content_encoding)
    try:
        text = _whole(body, codings)
        if text is None or (clear := clear_text(text)) == text:
            return body
        return encoded(clear, codings, len(body))
    except CodingError:
        return body


def clear_headers(headers: Headers) -> Headers:
    """Header fields of the same response over http."""
    return tuple(
        (name, _value(name.lower(), value))
        for name, value in headers
        if name.lower() != "strict-transport-security"
    )


def _value(name: str, value: str) -> str:
    if name == "set-cookie":
        return _COOKIE_OF_TLS.sub("", value)
    return value.replace("https:", "http:").replace(_UPGRADE, "")


def _whole(body: bytes, codings: list[str]) -> bytes | None:
    """The decoded body; `None`: too much."""
    text = bytearray()
    for piece in decoded([body], codings):
        text += piece
        if len(text) > MOST_TEXT_BYTES:
            return None
    return bytes(text)
