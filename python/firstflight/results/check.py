"""Checks whether a value is a load record. Every journal line is checked when it is written and when read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from firstflight.results.schema import CONNECTIONS, LOAD_COLUMNS, LOADS, REQUESTS, STATUSES, Column, Type


def check_record(record: object) -> str:
    """Finds out what is wrong with a journal record.

    Args:
        record: One decoded journal line.

    Returns:
        The first problem found, as one line; empty if the record is valid.
    """
    if not isinstance(record, dict):
        return "not a load record"
    return next(_problems(record), "")


def fits(column: Column, value: object) -> bool:
    """Whether a decoded JSON value is valid in a column."""
    return bool(column.null) if value is None else _FITS[column.type](value)


def _problems(record: dict[str, object]) -> Iterator[str]:
    load = record.get("load")
    yield from _row_problems("load", _LOAD_RULES, load)
    if isinstance(load, dict):
        yield from _ending_problems(load)
    for table, rules in _ROW_RULES.items():
        rows = record.get(table)
        if not isinstance(rows, list):
            yield f"{table}: expected a list"
            continue
        for number, row in enumerate(rows):
            yield from _row_problems(f"{table}[{number}]", rules, row)
    for key in ("proof", "relay"):
        if not isinstance(record.get(key), dict):
            yield f"{key}: expected an object"
    for column, rule in _PLACED_RULES:
        if (value := column.of(record)) is not None and not rule.fits(value):
            yield f"{'.'.join(column.place)} is {value!r}, expected {rule.expected}"


def _ending_problems(load: dict[str, object]) -> Iterator[str]:
    status, plt_ms = load.get("status"), load.get("plt_ms")
    if status not in STATUSES:
        yield f"load: status is {status!r}, expected one of {', '.join(STATUSES)}"
    if status == "ok" and not (isinstance(plt_ms, int | float) and plt_ms > 0):
        yield f"load: status is ok but plt_ms is {plt_ms!r}"


class _Rule(NamedTuple):
    """The requirements of a column, looked up once for millions of rows."""

    name: str
    is_nullable: bool
    fits: Callable[[Any], bool]
    expected: str


def _row_problems(where: str, rules: Sequence[_Rule], row: object) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{where}: expected an object"
        return
    for name, is_nullable, fits, expected in rules:
        if name not in row:
            yield f"{where}: no {name}"
        elif (value := row[name]) is None:
            if not is_nullable:
                yield f"{where}: {name} is null"
        elif not fits(value):
            yield f"{where}: {name} is {value!r}, expected {expected}"


def _is_number(value: object) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int and -(2**63) <= value < 2**63


def _is_instant(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        instant = datetime.fromisoformat(text)
        return instant.tzinfo is not None and instant.astimezone(UTC) is not None
    except (ValueError, OverflowError):
        return False


def _is_unicode(text: object) -> bool:
    """Whether it is text that UTF-8 can encode. Parquet files cannot store a lone surrogate."""
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_whole(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and low <= value < high


_FITS: dict[Type, Callable[[Any], bool]] = {
    "text": _is_unicode,
    "integer": _is_whole(-(2**63), 2**63),
    "unsigned integer": _is_whole(0, 2**64),
    "number": _is_number,
    "true or false": lambda value: isinstance(value, bool),
    "time with offset": _is_instant,
}
"""Whether a decoded JSON value that is not null is valid in a column of a type."""


def _rules(columns: Sequence[Column]) -> list[_Rule]:
    return [_Rule(column.name, bool(column.null), _FITS[column.type], column.type) for column in columns]


_LOAD_RULES = _rules(LOAD_COLUMNS)
_PLACED_RULES = list(zip(LOADS.placed, _rules(LOADS.placed), strict=True))
_ROW_RULES = {table.name: _rules(table.columns[1:]) for table in (REQUESTS, CONNECTIONS)}
