"""Parses and writes values with units, from flags (text) and TOML (text, numbers, arrays).

Every `parse_*` raises `BadValueError`. Every `write_*` returns the shortest text that parses to the same
value, for plan files, load names and tables.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from pydantic import BeforeValidator, PlainSerializer, ValidationError

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(bit|kbit|mbit|gbit)")

_BITS = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}


class BadValueError(ValueError):
    """A value that is not valid for its key.

    Args:
        problem: What is wrong with it; the message has it after `key: `.
        hint: What would be valid.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def parse_number(value: object, kind: str, hint: str, unit: str = "") -> float:
    """Parses a finite number; `kind` describes it, such as `a time in ms`."""
    text = value.strip().removesuffix(unit) if isinstance(value, str) else value
    if not isinstance(text, bool) and isinstance(text, int | float | str):
        with suppress(ValueError, OverflowError):
            if math.isfinite(found := float(text)):
                return found
    raise BadValueError(f"{quoted(value)} is not {kind}", hint)


def number(
    kind: str, low: float, high: float, hint: str, *, unit: str = "", or_word: str = "", above: bool = False
) -> Callable[[object], Any]:
    """A parser of finite numbers in a range.

    Args:
        kind: Description of the value, such as `a time in ms`.
        low: The smallest value.
        high: The largest value.
        hint: What would be valid.
        unit: A unit that a text may end in.
        or_word: A word that is also valid; it is returned unchanged.
        above: Whether `low` itself is invalid.
    """

    def parse(value: object) -> float | str:
        if or_word and value == or_word:
            return or_word
        found = parse_number(value, kind, hint, unit)
        if not low <= found <= high or (above and found == low):
            raise BadValueError(f"{quoted(value)} is out of range", hint)
        return found

    return parse


def parse_rtt(value: object) -> float:
    """Parses a round-trip time, ms, rounded to the nanosecond. 0: the path adds no propagation delay."""
    return float(round(_rtt(value), 6))


def parse_width(value: object) -> float | str:
    """Parses the width of an interval of the improvement, a fraction; or `off`."""
    percent = _width(value)
    return percent if isinstance(percent, str) else round(percent / 100, 9)


def write_plain(value: float | str) -> float | int | str:
    """Writes 20 rather than 20.0; a word is unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def explain(error: ValidationError, keys: Iterable[str]) -> tuple[str, str, str]:
    """The first error: its key (empty if it concerns several), the problem, and the fix.

    Args:
        error: The error of a model.
        keys: The keys of the model.
    """
    details = error.errors()[0]
    key, value = str(details["loc"][0]) if details["loc"] else "", quoted(details["input"])
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, BadValueError):
        return key, cause.problem, cause.hint
    match details["type"]:
        case "extra_forbidden":
            return key, "unknown key", nearest(key, keys)
        case "literal_error":
            allowed = re.findall(r"'([^']*)'", details["ctx"]["expected"])
            return key, f"{value} is not one of {', '.join(allowed)}", f"use {' or '.join(allowed)}"
        case "bool_type":
            return key, f"{value} is neither true nor false", "write true or false"
        case "string_type":
            return key, f"{value} is not a text", "write it in quotes"
    return key, details["msg"], "see docs/plan.md"


def nearest(key: str, keys: Iterable[str]) -> str:
    """A hint with the key that was probably meant, or with all keys."""
    near = difflib.get_close_matches(key.replace("-", "_"), keys, n=1)
    return f"did you mean {near[0]}?" if near else f"keys are {', '.join(keys)}"


def parse_whole(value: object, kind: str, hint: str) -> int:
    """Parses an integer."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,20}\s*", value, re.ASCII):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadValueError(f"{quoted(value)} is not {kind}", hint)


def parse_rate(value: object) -> int | None:
    """Parses a rate; `None` is unlimited, a number is bit/s.

    >>> parse_rate("256kbit")
    256000
    """
    hint = "write a rate such as 4mbit, 256kbit, 1gbit, or unlimited"
    if value is None or value == "unlimited":
        return None
    match = _RATE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match:
        rate = round(float(match[1]) * _BITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool):
        rate = value
    else:
        raise BadValueError(f"{quoted(value)} is not a rate", hint)
    if not 1000 <= rate <= 100 * 10**9:
        raise BadValueError(
            f"{quoted(value)} is out of range", "rates run from 1kbit to 100gbit; or write unlimited"
        )
    return rate


def write_rate(rate_bps: int | None) -> str:
    """The inverse of `parse_rate`.

    >>> write_rate(2_500_000)
    '2500kbit'
    """
    if rate_bps is None:
        return "unlimited"
    unit = next(name for name, bits in _BITS.items() if rate_bps % bits == 0)
    return f"{rate_bps // _BITS[unit]}{unit}"


def quoted(value: object) -> str:
    """`value` in double quotes for a message, cut to 60 characters."""
    text = str(value)
    return f'"{text if len(text) <= 60 else text[:57] + "..."}"'


def each(parse: Callable[[Any], Any] = lambda value: value) -> BeforeValidator:
    """A validator of lists: from TOML an array or one value, from a flag text with commas."""

    def parse_all(value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        parts = list(value) if isinstance(value, list | tuple) else [value]
        return _distinct(parse(part) for part in parts)

    return BeforeValidator(parse_all)


def whole(kind: str, low: int, high: int, or_word: str = "") -> Callable[[object], Any]:
    """A parser of integers in a range; as `number`."""
    hint = f"write a whole number, {low} to {high}"

    def parse(value: object) -> int | str:
        if or_word and value == or_word:
            return or_word
        found = parse_whole(value, kind, hint)
        if not low <= found <= high:
            raise BadValueError(f"{quoted(value)} is out of range", hint)
        return found

    return parse


def parse_pages(value: object) -> tuple[str, ...]:
    """Parses page names. Commas do not split them: file names may have some. Empty: treatments name them."""
    several = value if isinstance(value, list | tuple) else [value]
    return _distinct(_page(part) for part in several) if several else ()


def write_width(width: float | str) -> str:
    """The inverse of `parse_width`."""
    return width if isinstance(width, str) else f"{100 * width:.7g}%"


def write_each(write: Callable[[Any], Any]) -> PlainSerializer:
    """The inverse of `each`."""
    return PlainSerializer(lambda values: [write(value) for value in values])


def _distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    seen = tuple(values)
    if not seen:
        raise BadValueError("is empty", "give at least one value, or leave the key out")
    for position, value in enumerate(seen):
        if value in seen[:position]:
            raise BadValueError(
                f"{quoted(value)} is given twice",
                "give each value once; use repeats for more loads",
            )
    return seen


def _page(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise BadValueError(
        f"{quoted(value)} is not a page", "name an embedded page, an archive, a mirror or a profile"
    )


_rtt = number("a time in ms", 0, 10_000, "write ms from 0 to 10000, such as 20,100,200", unit="ms")
_width = number(
    "a width in percent, nor off",
    0.01,
    100,
    "write percentage points above 0 and up to 100, such as 2%; or off",
    unit="%",
    or_word="off",
)
