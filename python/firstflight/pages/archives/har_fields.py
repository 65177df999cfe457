"""Reading a HAR's JSON without trusting it: what is not of the expected type counts as absent."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, TypeAlias

Node: TypeAlias = dict[str, Any]

_MOST = 1e15


def node(parent: Node, key: str) -> Node:
    """The object at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def nodes(parent: Node, key: str) -> list[Node]:
    """The objects in the list at `key`."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(parent: Node, key: str) -> str:
    """The string at `key`, empty if there is none."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def number(parent: Node, key: str) -> float | None:
    """The number at `key`, also where it is written as a string; None if there is none or it is absurd."""
    value = parent.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and abs(found) < _MOST else None


def positive(parent: Node, key: str) -> float | None:
    """The number at `key` if it is above 0: HAR writes -1, and many tools 0, for 'not known'."""
    value = number(parent, key)
    return value if value is not None and value > 0 else None


def moment_ms(parent: Node, key: str) -> float | None:
    """The ISO 8601 time at `key` in ms since 1970; without a zone it counts as UTC."""
    try:
        moment = datetime.fromisoformat(text(parent, key).strip())
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return zoned.timestamp() * 1000
    except (ValueError, OverflowError):
        return None


def pairs(parent: Node, key: str) -> list[tuple[str, str]]:
    """The `name` and `value` of each object in the list at `key`."""
    return [(text(item, "name"), text(item, "value")) for item in nodes(parent, key)]
