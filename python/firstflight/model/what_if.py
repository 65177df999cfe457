"""Variants of TCP Fast Open and TLS that no stack of the laboratory has and only the simulator models.

A plan writes them as `negative-cache,unproven=14600:200,syn-payload=4`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from firstflight.model.units import BadValueError, parse_whole, quoted


@dataclass(frozen=True)
class WhatIf:
    """The differences from today's protocols; by default there are none. docs/what-if.md explains each.

    Attributes:
        negative_cache: The client remembers where Fast Open failed: in this `load`, or on an earlier `visit`.
        one_time_cookies: A cookie is valid for one connection, and the client keeps this many per host.
        client_cookies: A cookie is bound to a secret of the client, not to its address.
        unproven_bytes: The most bytes that a server sends before the handshake has proved the client's
            address; `None`: none, as today.
        unproven_ms: How long after the SYN it may send them, ms; `None`: until the handshake ends.
        syn_payload: Segments of data that may be sent with the SYN, including its own.
        early_data: TLS sessions are resumed, with at most this many bytes of early data; 0: none.
    """

    negative_cache: str | None = None
    one_time_cookies: int | None = None
    client_cookies: bool = False
    unproven_bytes: int | None = None
    unproven_ms: int | None = None
    syn_payload: int = 1
    early_data: int | None = None

    @property
    def names(self) -> list[str]:
        """The differences, one text each, in the form of a plan."""
        found = []
        if self.negative_cache:
            found.append("negative-cache" + ("=visit" if self.negative_cache == "visit" else ""))
        if self.one_time_cookies:
            found.append(f"one-time-cookies={self.one_time_cookies}")
        if self.client_cookies:
            found.append("client-cookies")
        if self.unproven_bytes is not None:
            limit = "" if self.unproven_ms is None else f":{self.unproven_ms}"
            found.append(f"unproven={self.unproven_bytes}{limit}")
        if self.syn_payload > 1:
            found.append(f"syn-payload={self.syn_payload}")
        if self.early_data is not None:
            found.append(f"early-data={self.early_data}")
        return found

    def __str__(self) -> str:
        """In the form of a plan: `negative-cache,syn-payload=4`; `off` if there are no differences."""
        return ",".join(self.names) or "off"

    def to_json(self) -> dict[str, object]:
        """The JSON form for the simulator."""
        unproven = None
        if self.unproven_bytes is not None:
            unproven = {"bytes": self.unproven_bytes, "ms": self.unproven_ms}
        return {
            "negative_cache": self.negative_cache,
            "one_time_cookies": self.one_time_cookies,
            "client_cookies": self.client_cookies,
            "unproven": unproven,
            "more_syn_segments": self.syn_payload - 1,
            "early_data": self.early_data,
        }


TODAY = WhatIf()
"""No differences."""


def parse_what_if(value: object) -> WhatIf:
    """Parses the differences: `off`, or names separated by commas, some with `=VALUE`; an array in TOML.

    >>> parse_what_if("negative-cache,syn-payload=4") == WhatIf(negative_cache="load", syn_payload=4)
    True
    """
    if isinstance(value, WhatIf):
        return value
    if value == "off":
        return TODAY
    found, names = TODAY, set()
    for part in value if isinstance(value, list) else str(value).split(","):
        text = str(part).strip()
        name, _, rest = text.partition("=")
        if name not in _PARSERS:
            raise BadValueError(f"{quoted(text)} is not a --what-if variant", f"use off, {_NAMES}")
        if name in names:
            raise BadValueError(f"{quoted(name)} is given twice", "give each once")
        found = _PARSERS[name](found, text, rest)
        names.add(name)
    return found


def needs_fast_open(what_if: WhatIf) -> list[str]:
    """The differences that have no effect on plain TCP."""
    return [name for name in what_if.names if not name.startswith("early-data")]


_Parser = Callable[[WhatIf, str, str], WhatIf]
"""Takes the differences so far, a part as written, and the text after its `=`; returns the differences."""


def _negative_cache(so_far: WhatIf, part: str, text: str) -> WhatIf:
    if text not in ("", "load", "visit"):
        hint = "write negative-cache, or negative-cache=visit for what an earlier visit taught"
        raise BadValueError(f"{quoted(part)} is not a kind of negative-cache", hint)
    return replace(so_far, negative_cache=text or "load")


def _client_cookies(so_far: WhatIf, part: str, text: str) -> WhatIf:
    if text or "=" in part:
        raise BadValueError(f"{quoted(part)} has a value", "write client-cookies")
    return replace(so_far, client_cookies=True)


def _unproven(so_far: WhatIf, part: str, text: str) -> WhatIf:
    hint = "write bytes, and ms if you like, such as unproven=14600 or unproven=14600:200"
    size, colon, limit = text.partition(":")
    limit_ms = _in_range(part, limit, (0, 60_000), hint) if colon else None
    return replace(so_far, unproven_bytes=_in_range(part, size, (0, 1_000_000), hint), unproven_ms=limit_ms)


def _number(
    put: Callable[[WhatIf, int], WhatIf], low: int, high: int, *, default: int | None, hint: str
) -> _Parser:
    def parse(so_far: WhatIf, part: str, text: str) -> WhatIf:
        if not text and default is not None and "=" not in part:
            return put(so_far, default)
        return put(so_far, _in_range(part, text, (low, high), hint))

    return parse


def _in_range(part: str, text: str, bounds: tuple[int, int], hint: str) -> int:
    number = parse_whole(text, "a number", hint)
    if not bounds[0] <= number <= bounds[1]:
        raise BadValueError(f"{quoted(part)} is out of range, {bounds[0]} to {bounds[1]}", hint)
    return number


_PARSERS: dict[str, _Parser] = {
    "negative-cache": _negative_cache,
    "one-time-cookies": _number(
        lambda so_far, kept: replace(so_far, one_time_cookies=kept),
        1,
        1_000,
        default=1,
        hint="write one-time-cookies, or how many a client keeps of a host, such as one-time-cookies=6",
    ),
    "client-cookies": _client_cookies,
    "unproven": _unproven,
    "syn-payload": _number(
        lambda so_far, segments: replace(so_far, syn_payload=segments),
        2,
        10,
        default=None,
        hint="write segments in all, 2 to 10, such as syn-payload=2",
    ),
    "early-data": _number(
        lambda so_far, most: replace(so_far, early_data=most),
        0,
        1_000_000,
        default=16_384,
        hint="write early-data, or bytes such as early-data=4096; 0 only resumes",
    ),
}
_NAMES = ", ".join(_PARSERS)
