"""Values as flags (text) and TOML (text, numbers, arrays) hold them, with their units; and back.

Every `parse_*` raises `BadValueError`. Every `write_*` gives the shortest text that parses to the same value,
for plan files, load names and tables.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BeforeValidator, PlainSerializer

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(bit|kbit|mbit|gbit)")

_BITS = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}


class BadValueError(ValueError):
    """A value that does not mean what its key asks for.

    Args:
        problem: What is wrong with it, fit to follow `key: `.
        hint: What would be right.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def parse_number(value: object, kind: str, hint: str) -> float:
    """Reads a finite number; `kind` names what it should have been, such as `a time in ms`."""
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise BadValueError(f"{quoted(value)} is not {kind}", hint)


def parse_whole(value: object, kind: str, hint: str) -> int:
    """Reads a whole number, exactly."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,20}\s*", value, re.ASCII):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadValueError(f"{quoted(value)} is not {kind}", hint)


def parse_rate(value: object) -> int | None:
    """Reads a rate; `None` is unlimited, a number is bit/s.

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
    """`value` as it is named in a message, in double quotes, cut to 60 characters."""
    text = str(value)
    return f'"{text if len(text) <= 60 else text[:57] + "..."}"'


MAX_RTT_MS = 10_000.0


def each(parse: Callable[[Any], Any]) -> BeforeValidator:
    """A list: from TOML an array or one value, from a flag text with commas."""

    def parse_all(value: object) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        parts = list(value) if isinstance(value, list | tuple) else [value]
        return _distinct(parse(part) for part in parts)

    return BeforeValidator(parse_all)


def choice(*allowed: str) -> Callable[[object], str]:
    """One word out of `allowed`."""

    def parse(value: object) -> str:
        if value in allowed:
            return str(value)
        hint = f"use {' or '.join(allowed)}"
        raise BadValueError(f"{quoted(value)} is not one of {', '.join(allowed)}", hint)

    return parse


def whole(kind: str, low: int, high: int) -> Callable[[object], int]:
    """A whole number in a range; `kind` names what it is, such as `a seed`."""
    hint = f"write a whole number, {low} to {high}"

    def parse(value: object) -> int:
        number = parse_whole(value, kind, hint)
        if not low <= number <= high:
            raise BadValueError(f"{quoted(value)} is out of range", hint)
        return number

    return parse


def parse_pages(value: object) -> tuple[str, ...]:
    """Page names; not split at commas, file names may hold them."""
    return _distinct(_page(part) for part in (value if isinstance(value, list | tuple) else [value]))


def parse_rtt(value: object) -> float:
    """A round-trip time, ms; to the nanosecond. 0: the path adds no propagation delay."""
    text = value.strip().removesuffix("ms") if isinstance(value, str) else value
    hint = "write ms from 0 to 10000, such as 20,100,200"
    try:
        rtt_ms = parse_number(text, "a time in ms", hint)
    except BadValueError:
        raise BadValueError(f"{quoted(value)} is not a time in ms", hint) from None
    if not 0 <= rtt_ms <= MAX_RTT_MS:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return round(rtt_ms, 6)


def parse_loss(value: object) -> float:
    """The share of packets lost."""
    hint = "write the share of packets lost, 0 to 0.5"
    return _between(0, 0.5, value, "a share of packets", hint)


def parse_burst(value: object) -> float | str:
    """The mean length of a burst of losses, packets; or `off`."""
    if value == "off":
        return "off"
    hint = "write a mean number of packets, 1 to 1000, or off"
    return _between(1, 1000, value, "a number of packets", hint)


def write_burst(packets: float | str) -> float | int | str:
    """The inverse of `parse_burst`."""
    return packets if isinstance(packets, str) else write_plain(packets)


def parse_loss_in_burst(value: object) -> float:
    """The share of packets lost in a burst."""
    hint = "write the share of packets lost in a burst, above that of loss and up to 1"
    share = parse_number(value, "a share of packets", hint)
    if not 0 < share <= 1:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return share


def parse_jitter(value: object) -> float:
    """The longest additional delay, ms."""
    hint = "write ms from 0 to 1000, such as 10"
    return _between(0, 1000, value, "a time in ms", hint)


def parse_duplicate(value: object) -> float:
    """The share of packets that arrive twice."""
    hint = "write a share of packets from 0 to 1, such as 0.01 for 1 %"
    return _between(0, 1, value, "a share of packets", hint)


def parse_width(value: object) -> float | str:
    """How wide an interval of the improvement may be, a fraction; or `off`."""
    if value == "off":
        return "off"
    hint = "write percentage points above 0 and up to 100, such as 2%; or off"
    text = value.strip().removesuffix("%") if isinstance(value, str) else value
    try:
        percent = parse_number(text, "a width in percent", hint)
    except BadValueError:
        raise BadValueError(f"{quoted(value)} is not a width in percent, nor off", hint) from None
    if not 0.01 <= percent <= 100:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return round(percent / 100, 9)


def write_width(width: float | str) -> str:
    """The inverse of `parse_width`."""
    return width if isinstance(width, str) else f"{100 * width:.7g}%"


def parse_processing(value: object) -> float:
    """A factor on processing times."""
    hint = "write a factor, 0 to 10, such as 2 for half as fast"
    return _between(0, 10, value, "a factor", hint)


def parse_jobs(value: object) -> int | str:
    """Loads at a time, or `auto`."""
    return "auto" if value == "auto" else whole("a number of loads at a time, nor auto", 1, 256)(value)


def parse_switch(value: object) -> bool:
    """Yes or no; a flag has no value to parse."""
    if isinstance(value, bool):
        return value
    raise BadValueError(f"{quoted(value)} is neither true nor false", "write true or false")


def parse_text(value: object) -> str:
    """Any text, such as a path."""
    if isinstance(value, str):
        return value
    raise BadValueError(f"{quoted(value)} is not a text", "write it in quotes")


def write_plain(number: float) -> float | int:
    """20 rather than 20.0."""
    return int(number) if number.is_integer() else number


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


def _between(low: float, high: float, value: object, kind: str, hint: str) -> float:
    number = parse_number(value, kind, hint)
    if not low <= number <= high:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return number
