"""What is compared: treatments, of which the first is the baseline; modes of transport; cookie states.

A treatment is a name and the plan keys in which it differs. `mode`, `compare` and `[[treatment]]` of a plan
define treatments. Only `MODES` knows the modes by name. Flags write treatments as `initial_window=10,32`,
TOML as tables.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from firstflight.model.units import BadValueError, parse_number, parse_whole, quoted

PAGE = "page"
"""The plan key with which treatments load versions of one page, each from its own PAGE."""

ModeName = Literal["tcp", "tfo", "tls12", "resumption", "early-data", "tfo+early-data", "quic", "quic-0rtt"]
"""A mode of transport, as plans name it; `MODES` describes each."""


@dataclass(frozen=True)
class Mode:
    """A mode of transport: what the first flight of a repeat visit carries.

    Attributes:
        name: Its name in plans and tables.
        phrase: Its name in sentences, after a page load time.
        fast_open: Whether the SYN carries data, so that cookies matter.
        secure: Whether it is a way to use TLS, so that it needs https origins.
        sessions: Whether the client has a TLS 1.3 session to resume for every origin; cookie states then
            apply to sessions too.
        early_data: Whether safe requests are sent as early data.
        quic: Whether https origins are requested over QUIC and HTTP/3.
    """

    name: str
    phrase: str
    fast_open: bool = False
    secure: bool = False
    sessions: bool = False
    early_data: bool = False
    quic: bool = False


PLAIN: Final = "tcp"
"""The mode whose first flight carries nothing: the baseline of results that do not name theirs."""

FAST_OPEN: Final = "tfo"
"""The mode with TCP Fast Open."""

MODES = {
    mode.name: mode
    for mode in (
        Mode(PLAIN, "without TFO"),
        Mode(FAST_OPEN, "with TFO", fast_open=True),
        Mode("tls12", "with TLS 1.2", secure=True),
        Mode("resumption", "with resumed TLS", secure=True, sessions=True),
        Mode("early-data", "with early data", secure=True, sessions=True, early_data=True),
        Mode(
            "tfo+early-data",
            "with TFO and early data",
            fast_open=True,
            secure=True,
            sessions=True,
            early_data=True,
        ),
        Mode("quic", "with QUIC", secure=True, quic=True),
        Mode("quic-0rtt", "with 0-RTT", secure=True, sessions=True, early_data=True, quic=True),
    )
}
"""All modes by name, in the order of tables and choices."""

SAFE_METHODS = frozenset({"GET", "HEAD"})
"""The methods of requests that clients send as early data (RFC 8470, section 4)."""

IMPAIRMENTS = (
    "loss",
    "loss_burst",
    "loss_in_burst",
    "jitter",
    "reorder",
    "duplicate",
    "queue",
    "ecn",
    "middlebox",
)
"""The plan keys of a path other than its RTT, rates and topology."""

DIFFER = (
    "mode",
    PAGE,
    "cookies",
    "client",
    "scheme",
    "http",
    "priorities",
    "post_quantum",
    "certificate_bytes",
    "keep_alive",
    "initial_window",
    "congestion_control",
    "ip",
    "origin_rtt",
    "lookups",
    "server_time",
    "processing",
    "determinism",
    "what_if",
    *IMPAIRMENTS,
)
"""The plan keys in which treatments may differ."""

_OF_FAST_OPEN = {"cookies", "middlebox", "what_if"}
"""Keys that change little or nothing for loads without Fast Open."""

_ROLE_FROM = 9
"""Names of this many characters are too long for a column heading."""


@dataclass(frozen=True)
class Treatment:
    """A name and the plan keys in which a treatment differs.

    Attributes:
        name: Its name in tables; unique in its plan.
        keys: Plan keys with values as in TOML.
    """

    name: str
    keys: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, name: str, keys: Mapping[str, object]) -> Treatment:
        """A treatment with these keys."""
        return cls(name, tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in keys.items()))

    @property
    def id(self) -> str:
        """The name as used in load ids."""
        return self.name.replace(":", "")

    def to_keys(self) -> dict[str, object]:
        """Its keys and values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self.keys}

    def to_toml(self) -> dict[str, object]:
        """The treatment as a `[[treatment]]` table."""
        return {"name": self.name, **self.to_keys()}


def mode_of(treatments: tuple[Treatment, ...]) -> str:
    """The mode of treatments if the plan names none: with Fast Open if they differ in keys that need it."""
    needs_fast_open = any(key in _OF_FAST_OPEN for treatment in treatments for key, _ in treatment.keys)
    return FAST_OPEN if needs_fast_open else PLAIN


def phrase(name: str) -> str:
    """A treatment after a page load time: ``without TFO``, ``with initial_window=32``, ``from b.har``."""
    if name in MODES:
        return MODES[name].phrase
    if name.startswith(_OF_PAGE):
        return f"from {name.removeprefix(_OF_PAGE)}"
    return f"with {name}" if name else ""


def column_name(name: str, role: str) -> str:
    """The treatment as a column heading: its name or, if that is long, its role in the comparison."""
    name = short_name(name)
    return name if 0 < len(name) < _ROLE_FROM else role


def short_name(name: str) -> str:
    """A treatment's name; for a version of a page, only the version's name."""
    return name.removeprefix(_OF_PAGE)


_OF_PAGE = f"{PAGE}="
"""Prefix of the names of treatments that `compare` makes of versions of a page."""

_LONGEST_VERSION = 40


def version_names(pages: Sequence[str]) -> dict[str, str]:
    """A short name for each version of a page: its file's name, with as many folders as distinguish it.

    Args:
        pages: PAGEs, distinct.

    >>> version_names(["old/site.har", "new/site.har"])
    {'old/site.har': 'old-site.har', 'new/site.har': 'new-site.har'}
    """
    parts = {page: [part for part in _BETWEEN.split(page) if part not in _NO_PART] for page in pages}
    for depth in range(1, 1 + max(map(len, parts.values()), default=0)):
        names = {page: _version_name(several[-depth:]) for page, several in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {page: _version_name([str(number), *parts[page][-1:]]) for number, page in enumerate(pages, 1)}


_BETWEEN = re.compile(r"[/#]+")
_NO_PART = ("", ".", "http:", "https:")


def _version_name(parts: Sequence[str]) -> str:
    """A name of characters that are also valid in the name of a page."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(parts))[:_LONGEST_VERSION]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=:-]{0,39}")

_SWITCH = {"true": "true", "yes": "true", "false": "false", "no": "false"}

_ELSEWHERE = {
    "pages": "versions of a page are compared by the key page: page=before.har,after.har",
    "engine": "run it with each engine, then: firstflight compare",
    "rtt": "cells are made of it: --rtt 20,100",
    "down": "cells are made of it: --down 4mbit,20mbit",
    "up": "cells are made of it: --up 256kbit,1mbit",
}
"""Keys in which treatments cannot differ, and what to do instead."""


def parse_compare(value: object) -> str:
    """Parses `KEY=A,B,...` into its normal form; or `off`.

    >>> parse_compare("keep-alive = yes, no")
    'keep_alive=true,false'
    """
    if value in ("off", None):
        return "off"
    hint = "write a key and two values or more, the baseline first, such as initial_window=10,32; or off"
    key, equals, rest = str(value).partition("=")
    if not isinstance(value, str) or not equals:
        raise BadValueError(f"{quoted(value)} is not KEY=A,B", hint)
    key = key.strip().replace("-", "_")
    _check_key(key)
    if key == "mode":
        raise BadValueError("modes are compared by a flag of their own", f"write --mode {rest.strip()}")
    values = [_SWITCH.get(part.strip(), part.strip()) for part in rest.split(",")]
    if len(values) < 2 or not all(values):
        raise BadValueError(f"{quoted(value)} has fewer than two values", hint)
    if key == PAGE:
        _pages_differ(values)
    else:
        _names_differ([Treatment.of(f"{key}={part}", {}) for part in values])
    return f"{key}={','.join(values)}"


def compared(compare: str) -> tuple[Treatment, ...]:
    """The treatments of `compare`, from `parse_compare`: one for each value, named after it."""
    if compare == "off":
        return ()
    key, _, values = compare.partition("=")
    if key == PAGE:
        named = version_names(values.split(","))
        return tuple(Treatment.of(f"{_OF_PAGE}{name}", {PAGE: page}) for page, name in named.items())
    switches: dict[str, bool] = {"true": True, "false": False}
    return tuple(
        Treatment.of(f"{key}={value}", {key: switches.get(value, value)}) for value in values.split(",")
    )


def parse_treatments(value: object) -> tuple[Treatment, ...]:
    """Parses `[[treatment]]` tables.

    >>> parse_treatments([{"name": "old", "initial_window": 3}])
    (Treatment(name='old', keys=(('initial_window', 3),)),)
    """
    if value in ("", None):
        return ()
    hint = 'write [[treatment]] tables, each with a name and keys: name = "old", initial_window = 3'
    if not isinstance(value, list | tuple):
        raise BadValueError(f"{quoted(value)} is not a list of tables", hint)
    found = [one if isinstance(one, Treatment) else _treatment(one, hint) for one in value]
    _names_differ(found)
    return tuple(found)


def write_treatments(treatments: tuple[Treatment, ...]) -> list[dict[str, object]]:
    """The inverse of `parse_treatments`."""
    return [treatment.to_toml() for treatment in treatments]


def _treatment(table: object, hint: str) -> Treatment:
    if not isinstance(table, Mapping):
        raise BadValueError(f"{quoted(table)} is not a table", hint)
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadValueError(
            "a table has no name" if name is None else f"{quoted(name)} is no name",
            "name it with letters, digits and . _ + = : -, at most 40 of them",
        )
    keys = {key: value for key, value in table.items() if key != "name"}
    if name in MODES and keys != {"mode": name}:
        raise BadValueError(f"{name}: is the name of a mode", f"name it otherwise, such as {name}-other")
    for key in keys:
        _check_key(str(key))
    if not isinstance(keys.get(PAGE, ""), str):
        raise BadValueError(
            f"{name}: {quoted(keys[PAGE])} is not a page", 'name one file: page = "after.har"'
        )
    return Treatment.of(name, keys)


def pages_named(compare: object, tables: object) -> list[str]:
    """The PAGEs of the versions that treatments load; empty if `compare` and tables cannot be parsed."""
    try:
        treatments = parse_treatments(tables) or compared(parse_compare(compare))
    except BadValueError:
        return []
    return list(dict.fromkeys(str(page) for one in treatments for key, page in one.keys if key == PAGE))


def _check_key(key: str) -> None:
    if key in DIFFER:
        return
    if key in _ELSEWHERE:
        raise BadValueError(f"{key}: treatments cannot differ in it", _ELSEWHERE[key])
    near = difflib.get_close_matches(key, DIFFER, n=1)
    hint = f"did you mean {near[0]}?" if near else f"they can differ in {', '.join(DIFFER)}"
    raise BadValueError(f"{key[:60]}: treatments cannot differ in it", hint)


def _pages_differ(pages: Sequence[str]) -> None:
    known = [posixpath.normpath(page) for page in pages]
    if twice := [page for number, page in enumerate(pages) if known[number] in known[:number]]:
        raise BadValueError(
            f"page: {quoted(twice[0])} is given twice",
            "give two recordings of the page, before and after a change",
        )


def _names_differ(treatments: list[Treatment]) -> None:
    ids = [treatment.id for treatment in treatments]
    if twice := [one.name for number, one in enumerate(treatments) if one.id in ids[:number]]:
        raise BadValueError(f"two treatments are called {twice[0]}", "give each a name and values of its own")


OF_TICKETS = ("expired", "no-early-data", "too-early")
"""States of TLS tickets alone; with them cookies are warm."""

COOKIES = ("warm", "cold", "stale", "backup", "moved", "nat", "cookieless", *OF_TICKETS)
"""Cookie states, in addition to `warm:SHARE` and `pool:SERVERS`; docs/lab.md explains each."""

_MOST_SERVERS = 16


def parse_cookies(value: object) -> str:
    """Parses a cookie state into its shortest form.

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
