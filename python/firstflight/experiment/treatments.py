"""Treatments as flags and TOML write them: `initial_window=10,32`, and `[[treatment]]` tables."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from firstflight.experiment.units import BadValueError, quoted
from firstflight.model.treatment import DIFFER, MODES, Treatment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=:-]{0,39}")
_SWITCH = {"true": "true", "yes": "true", "false": "false", "no": "false"}
_ELSEWHERE = {
    "pages": "run each page for itself, then: firstflight compare",
    "engine": "run it with each engine, then: firstflight compare",
    "rtt": "cells are made of it: --rtt 20,100",
    "down": "cells are made of it: --down 4mbit,20mbit",
    "up": "cells are made of it: --up 256kbit,1mbit",
}
"""Keys in which treatments cannot differ, and what to do instead."""


def parse_compare(value: object) -> str:
    """Reads `KEY=A,B,...`, and gives it in one way of writing; or `off`.

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
    _names_differ([Treatment.of(f"{key}={part}", {}) for part in values])
    return f"{key}={','.join(values)}"


def compared(compare: str) -> tuple[Treatment, ...]:
    """The treatments of `compare`, as `parse_compare` gives it: one for each value, named after it."""
    if compare == "off":
        return ()
    key, _, values = compare.partition("=")
    switches: dict[str, bool] = {"true": True, "false": False}
    return tuple(
        Treatment.of(f"{key}={value}", {key: switches.get(value, value)}) for value in values.split(",")
    )


def parse_treatments(value: object) -> tuple[Treatment, ...]:
    """Reads `[[treatment]]` tables.

    >>> parse_treatments([{"name": "old", "initial_window": 3}])
    (Treatment(name='old', keys=(('initial_window', 3),)),)
    """
    if value in ("", None):
        return ()
    hint = 'write [[treatment]] tables, each with a name and keys: name = "old", initial_window = 3'
    if not isinstance(value, list | tuple):
        raise BadValueError(f"{quoted(value)} is no list of tables", hint)
    found = [one if isinstance(one, Treatment) else _treatment(one, hint) for one in value]
    _names_differ(found)
    return tuple(found)


def write_treatments(treatments: tuple[Treatment, ...]) -> list[dict[str, Any]]:
    """The inverse of `parse_treatments`."""
    return [treatment.to_toml() for treatment in treatments]


def _treatment(table: object, hint: str) -> Treatment:
    if not isinstance(table, Mapping):
        raise BadValueError(f"{quoted(table)} is no table", hint)
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
    return Treatment.of(name, keys)


def _check_key(key: str) -> None:
    if key in DIFFER:
        return
    if key in _ELSEWHERE:
        raise BadValueError(f"{key}: treatments cannot differ in it", _ELSEWHERE[key])
    near = difflib.get_close_matches(key, DIFFER, n=1)
    hint = f"did you mean {near[0]}?" if near else f"they can differ in {', '.join(DIFFER)}"
    raise BadValueError(f"{key[:60]}: treatments cannot differ in it", hint)


def _names_differ(treatments: list[Treatment]) -> None:
    ids = [treatment.id for treatment in treatments]
    if twice := [one.name for number, one in enumerate(treatments) if one.id in ids[:number]]:
        raise BadValueError(f"two treatments are called {twice[0]}", "give each a name and values of its own")
