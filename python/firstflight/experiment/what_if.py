"""The plan key `what_if` as people write it: `negative-cache,unproven=14600:200,syn-payload=4`."""

from collections.abc import Callable
from typing import Any

from firstflight.engines.what_if import TODAY, WhatIf
from firstflight.experiment.units import BadValueError, parse_whole, quoted


def parse_what_if(value: object) -> WhatIf:
    """Reads what is otherwise: `off`, or names with commas between, some with `=VALUE`; an array in TOML.

    >>> parse_what_if("negative-cache,syn-payload=4") == WhatIf(negative_cache="load", syn_payload=4)
    True
    """
    if isinstance(value, WhatIf):
        return value
    if value == "off":
        return TODAY
    parts = [str(part).strip() for part in (value if isinstance(value, list) else str(value).split(","))]
    fields: dict[str, Any] = {}
    for part in parts:
        name, _, text = part.partition("=")
        if name not in _PARSERS:
            raise BadValueError(f"{quoted(part)} is not a --what-if variant", f"use off, {_NAMES}")
        found = _PARSERS[name](part, text)
        if fields.keys() & found.keys():
            raise BadValueError(f"{quoted(name)} is given twice", "give each once")
        fields |= found
    return WhatIf(**fields)


def needs_fast_open(what_if: WhatIf) -> list[str]:
    """What of it plain TCP never meets."""
    return [name for name in what_if.names if not name.startswith("early-data")]


def _negative_cache(part: str, text: str) -> dict[str, Any]:
    if text not in ("", "load", "visit"):
        hint = "write negative-cache, or negative-cache=visit for what an earlier visit taught"
        raise BadValueError(f"{quoted(part)} is not a kind of negative-cache", hint)
    return {"negative_cache": text or "load"}


def _client_cookies(part: str, text: str) -> dict[str, Any]:
    if text or "=" in part:
        raise BadValueError(f"{quoted(part)} has a value", "write client-cookies")
    return {"client_cookies": True}


def _unproven(part: str, text: str) -> dict[str, Any]:
    hint = "write bytes, and ms if you like, such as unproven=14600 or unproven=14600:200"
    size, colon, limit = text.partition(":")
    found = {"unproven_bytes": _in_range(part, size, (0, 1_000_000), hint)}
    if colon:
        found["unproven_ms"] = _in_range(part, limit, (0, 60_000), hint)
    return found


def _number(
    field: str, low: int, high: int, *, default: int | None, hint: str
) -> Callable[[str, str], dict[str, Any]]:
    def parse(part: str, text: str) -> dict[str, Any]:
        if not text and default is not None and "=" not in part:
            return {field: default}
        return {field: _in_range(part, text, (low, high), hint)}

    return parse


def _in_range(part: str, text: str, bounds: tuple[int, int], hint: str) -> int:
    number = parse_whole(text, "a number", hint)
    if not bounds[0] <= number <= bounds[1]:
        raise BadValueError(f"{quoted(part)} is out of range, {bounds[0]} to {bounds[1]}", hint)
    return number


_PARSERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "negative-cache": _negative_cache,
    "one-time-cookies": _number(
        "one_time_cookies",
        1,
        1_000,
        default=1,
        hint="write one-time-cookies, or how many a client keeps of a host, such as one-time-cookies=6",
    ),
    "client-cookies": _client_cookies,
    "unproven": _unproven,
    "syn-payload": _number(
        "syn_payload", 2, 10, default=None, hint="write segments in all, 2 to 10, such as syn-payload=2"
    ),
    "early-data": _number(
        "early_data",
        0,
        1_000_000,
        default=16_384,
        hint="write early-data, or bytes such as early-data=4096; 0 only resumes",
    ),
}
_NAMES = ", ".join(_PARSERS)
