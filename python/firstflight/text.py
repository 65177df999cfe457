"""Text for people: plurals, and untrusted text without control, invisible and bidirectional characters."""

from __future__ import annotations

import re
from collections.abc import Callable

_CONTROLS = (*range(32), *range(127, 160))
_DIRECTION = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that change the direction of the text after them (Unicode Standard Annex 9, section 2)."""
_HIDDEN = (0x00AD, 0x200B, 0x200C, 0x200D, 0x2028, 0x2029, 0x2060, 0xFEFF)
_SURROGATES = range(0xD800, 0xE000)
"""Surrogates: halves of a pair, which no encoding accepts."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SEEN = dict.fromkeys((*_CONTROLS, *_DIRECTION, *_HIDDEN, *_SURROGATES), _REPLACEMENT)
_INVISIBLE = re.compile(
    "["
    + "".join(re.escape(chr(code)) for code in (*_CONTROLS, *_DIRECTION, *_HIDDEN) if code != ord("\n"))
    + f"{chr(_SURROGATES[0])}-{chr(_SURROGATES[-1])}]"
)


def visible(content: str) -> str:
    """The text on one line, with a visible character in place of each invisible one."""
    return content.translate(_SEEN)


def visible_lines(content: str) -> str:
    """As `visible`, but keeps line ends."""
    return "\n".join(map(visible, content.rstrip("\n").split("\n")))


def without_invisible(content: str, written: Callable[[str], str] = lambda _: _REPLACEMENT) -> str:
    """The text with its line ends, and `written(c)` in place of each other invisible character `c`."""
    return _INVISIBLE.sub(lambda found: written(found[0]), content)


def plural(count: int, noun: str) -> str:
    """``1 load``, ``2 loads``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
