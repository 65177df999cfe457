"""What is compared: treatments, the first of which is the baseline, and the modes of transport.

A treatment is a name and the plan keys in which it differs. `mode`, `compare` and `[[treatment]]` of a plan
define treatments; nothing but `MODES` knows the modes by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

ModeName = Literal["tcp", "tfo"]
"""A mode of transport, as plans name it; `MODES` says what each is."""


@dataclass(frozen=True)
class Mode:
    """A mode of transport: what rides in the first flight of a repeat visit.

    Attributes:
        name: As in plans and tables.
        phrase: As sentences name it, after a page load time.
        fast_open: Whether the SYN carries data, so that cookies matter.
    """

    name: str
    phrase: str
    fast_open: bool


PLAIN: Final = "tcp"
"""The mode in which nothing rides in the first flight: the baseline of results that do not name theirs."""

FAST_OPEN: Final = "tfo"
"""The mode with TCP Fast Open."""

MODES = {
    mode.name: mode
    for mode in (
        Mode(PLAIN, "without TFO", fast_open=False),
        Mode(FAST_OPEN, "with TFO", fast_open=True),
    )
}
"""All modes by name, in the order in which tables and choices have them."""

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
    "cookies",
    "client",
    "scheme",
    "http",
    "post_quantum",
    "keep_alive",
    "initial_window",
    "congestion_control",
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
"""Keys that change nothing, or little, for loads without Fast Open."""

_ROLE_FROM = 9
"""Names of so many characters are too long to head a column."""


@dataclass(frozen=True)
class Treatment:
    """A name and the plan keys in which a treatment differs.

    Attributes:
        name: As in tables; unique in its plan.
        keys: Plan keys with values as TOML holds them.
    """

    name: str
    keys: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, name: str, keys: Mapping[str, Any]) -> Treatment:
        """A treatment of these keys."""
        return cls(name, tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in keys.items()))

    @property
    def id(self) -> str:
        """The name as load ids have it."""
        return self.name.replace(":", "")

    def to_keys(self) -> dict[str, Any]:
        """Its keys and values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self.keys}

    def to_toml(self) -> dict[str, Any]:
        """As a `[[treatment]]` table."""
        return {"name": self.name, **self.to_keys()}


def mode_of(treatments: tuple[Treatment, ...]) -> str:
    """The mode of treatments of a plan that names none: with Fast Open where they differ in what needs it."""
    needs_fast_open = any(key in _OF_FAST_OPEN for treatment in treatments for key, _ in treatment.keys)
    return FAST_OPEN if needs_fast_open else PLAIN


def phrase(name: str) -> str:
    """A treatment after a page load time: ``without TFO``, ``with initial_window=32``."""
    if name in MODES:
        return MODES[name].phrase
    return f"with {name}" if name else ""


def column_name(name: str, role: str) -> str:
    """The treatment at the head of a column: its name, or what it is in the comparison if that is long."""
    return name if 0 < len(name) < _ROLE_FROM else role
