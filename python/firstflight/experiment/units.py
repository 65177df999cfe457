"""Values with units as people write them: `4mbit`, `1000p`, `20`; and back.

Every `parse_*` takes what a flag (text) or a TOML file (text, number) may hold and raises `BadValueError`.
Every `write_*` gives the shortest text that parses to the same value, for plan files, load names and
tables.
"""

import math
import re

from firstflight.engines.task import Middlebox, Queue

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(bit|kbit|mbit|gbit)")
_BITS = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3, "bit": 1}
_QUEUE = re.compile(r"(\d+)\s*(p|b|kb|mb|ms)", re.ASCII)
_QUEUES = ("unlimited", "codel", "pie")
_BYTES = {"mb": 10**6, "kb": 10**3, "b": 1}


HABITS = (
    "drop-data",
    "drop-option",
    "strip-option",
    "strip-data",
    "reset",
    "black-hole",
    "duplicate-syn",
)
"""What a middlebox may do to a SYN; docs/lab.md says each."""

COOKIES = ("warm", "cold", "stale", "backup", "moved", "nat", "cookieless")
"""Cookie states, beside `warm:SHARE` and `pool:SERVERS`; docs/lab.md says each."""

_MOST_SERVERS = 16


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


def parse_queue(value: object) -> Queue:
    """Reads a queue: packets (`1000p`), bytes (`64kB`; k is 1,000), a wait (`100ms`), or a name."""
    if isinstance(value, Queue):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _QUEUES:
        return Queue(name=text)
    match = _QUEUE.fullmatch(text)
    if not match:
        hint = (
            "write packets such as 1000p, bytes such as 64kB, a wait such as 100ms, unlimited, codel or pie"
        )
        raise BadValueError(f"{quoted(value)} is not a queue", hint)
    queue = _drop_tail(int(match[1]), match[2])
    if not _holds_a_packet(queue):
        raise BadValueError(
            f"{quoted(value)} is out of range", "use 1p to 1000000p, 1500B to 1000MB, or 1ms to 60000ms"
        )
    return queue


def parse_middlebox(value: object) -> Middlebox | None:
    """Reads a middlebox: its habit, and the share of paths that it stands on; `None` is `off`.

    >>> parse_middlebox("strip-option:0.3")
    Middlebox(habit='strip-option', share=0.3)
    """
    if value in (None, "off") or isinstance(value, Middlebox):
        return value if isinstance(value, Middlebox) else None
    habit, colon, share = str(value).strip().partition(":")
    if habit not in HABITS:
        raise BadValueError(f"{quoted(value)} is not a middlebox", f"use off, {', '.join(HABITS)}")
    hint = f"write the share of paths behind it, above 0 and up to 1, such as {habit}:0.3"
    number = parse_number(share, "a share of paths", hint) if colon else 1.0
    if not 0 < number <= 1:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return Middlebox(habit, number)


def write_middlebox(middlebox: Middlebox | None) -> str:
    """The inverse of `parse_middlebox`."""
    return "off" if middlebox is None else str(middlebox)


def parse_cookies(value: object) -> str:
    """Reads a cookie state, and gives it as it is written shortest.

    >>> parse_cookies("warm:0.50")
    'warm:0.5'
    """
    text = value.strip() if isinstance(value, str) else ""
    if text in COOKIES:
        return text
    name, _, rest = text.partition(":")
    if name == "warm":
        hint = "write the share of origins with a cookie, above 0 and below 1, such as warm:0.6"
        share = parse_number(rest, "a share of origins", hint)
        if 0 < share < 1:
            return f"warm:{share!r}"
        raise BadValueError(f"{quoted(value)} is out of range", f"{hint}; or warm, or cold")
    if name == "pool":
        hint = f"write how many servers an address has, 2 to {_MOST_SERVERS}, such as pool:3"
        servers = parse_whole(rest, "a number of servers", hint)
        if 2 <= servers <= _MOST_SERVERS:
            return f"pool:{servers}"
        raise BadValueError(f"{quoted(value)} is out of range", f"{hint}; one server alone is warm")
    allowed = f"{', '.join(COOKIES)}, warm:SHARE or pool:SERVERS"
    raise BadValueError(f"{quoted(value)} is not a cookie state", f"use {allowed}")


def quoted(value: object) -> str:
    """`value` as it is named in a message, in double quotes, cut to 60 characters."""
    text = str(value)
    return f'"{text if len(text) <= 60 else text[:57] + "..."}"'


def _drop_tail(size: int, unit: str) -> Queue:
    if unit == "p":
        return Queue(packets=size)
    return Queue(ms=size) if unit == "ms" else Queue(bytes=size * _BYTES[unit])


def _holds_a_packet(queue: Queue) -> bool:
    if queue.packets is not None:
        return 1 <= queue.packets <= 10**6
    if queue.ms is not None:
        return 1 <= queue.ms <= 60_000
    return queue.bytes is not None and 1500 <= queue.bytes <= 10**9
