"""How a run was made, from the files beside its journal: machine, calibration, plan. Says what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from firstflight.analysis import words
from firstflight.results.files import PLAN
from firstflight.visible import visible, visible_lines


@dataclass(frozen=True)
class Grid:
    """A table: names of its columns, and rows of text in them."""

    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Provenance:
    """How a run was made.

    Attributes:
        environment: Names and values: kernel, CPU, versions.
        measured: What was asked of each path and measured on it.
        calibration: Everything that the calibration recorded.
        plan: ``plan.toml`` as it is.
    """

    environment: list[tuple[str, str]]
    measured: Grid
    calibration: Grid
    plan: str


_MEASURED = (
    ("path.topology", "topology"),
    ("path.rtt_ms", "RTT asked, ms"),
    ("rtt_ms.expected", "expected"),
    ("rtt_ms.p50", "median"),
    ("rtt_ms.p99", "99 %"),
    ("bias_ms", "relay adds, ms"),
    ("relay.taken_out_ms", "taken out"),
    ("down_mbps.asked", "down asked, Mbit/s"),
    ("down_mbps.expected", "expected"),
    ("down_mbps.measured", "measured"),
    ("up_mbps.asked", "up asked, Mbit/s"),
    ("up_mbps.expected", "expected"),
    ("up_mbps.measured", "measured"),
    ("relay.late_p99_ms", "relay late, 99 %, ms"),
    ("relay.late_max_ms", "at most"),
)
"""Columns of the calibration and what they are called."""


def read_provenance(folder: Path) -> Provenance:
    """Reads ``environment.json`` and ``plan.toml`` of a results folder; neither has to be there."""
    machine = _environment(folder)
    calibration = _records(machine.pop("calibration", None))
    if not machine.get("earlier"):
        machine.pop("earlier", None)
    return Provenance(list(_flat(machine)), _measured(calibration), calibration, _plan(folder))


def _environment(folder: Path) -> dict[str, object]:
    try:
        found = json.loads((folder / "environment.json").read_bytes())
    except FileNotFoundError:
        return {"environment.json": "missing: the machine and the calibration are not known"}
    except (OSError, ValueError, RecursionError) as error:
        return {"environment.json": f"cannot be read: {error}"}
    return found if isinstance(found, dict) else {"environment.json": found}


def _plan(folder: Path) -> str:
    try:
        return visible_lines((folder / PLAN).read_text("utf-8", "replace"))
    except OSError as error:
        return f"# plan.toml: {error.strerror}"


def _records(found: object) -> Grid:
    """A list of records as a table: columns in order of appearance, then rows."""
    records = [dict(_flat(record)) for record in found] if isinstance(found, list) else []
    columns = list(dict.fromkeys(name for record in records for name in record))
    return Grid(columns, [[record.get(name, "") for name in columns] for record in records])


def _measured(calibration: Grid) -> Grid:
    """The columns that say whether the path was as asked, under names for people."""
    places = [(calibration.columns.index(key), name) for key, name in _MEASURED if key in calibration.columns]
    return Grid([name for _, name in places], [[row[at] for at, _ in places] for row in calibration.rows])


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested data as dotted names and text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{number}")
    elif isinstance(value, list):
        yield visible(name), ", ".join(map(_scalar, value))
    else:
        yield visible(name), _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return words.DASH if value is None else visible(str(value))
