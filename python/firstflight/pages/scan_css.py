"""References in a style sheet: `url()` and `@import`, with tinycss2.

Leaves out what a selector decides: whether a rule matches the document is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import tinycss2  # type: ignore[import-untyped]

# Tokens take a hundred times the memory of their text; no page has a style sheet of this length.
_MOST_CHARACTERS = 1 << 22

Token: TypeAlias = Any  # tinycss2 has no types


@dataclass(frozen=True, slots=True)
class StyleReference:
    """A reference in a style sheet, as written."""

    reference: str
    kind: Literal["style", "font", "image"]


def scan_css(text: str) -> list[StyleReference]:
    """References of a style sheet (or of a `style` attribute) in order, each once; none of one too long."""
    if len(text) > _MOST_CHARACTERS:
        return []
    tokens = tinycss2.parse_component_value_list(text, skip_comments=True)
    return list(dict.fromkeys(_walk(tokens)))


def _walk(tokens: list[Token]) -> Iterator[StyleReference]:
    """Depth first without recursion, so that no nesting can exhaust the stack."""
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
