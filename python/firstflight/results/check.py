"""Is this a load record? The check of every journal line, on the way in and on the way out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from firstflight.results.schema import CONNECTIONS, LOADS, REQUESTS, STATUSES, Column, type_name


def check_record(record: object) -> str:
    """Say what is wrong with a journal record.

    Args:
        record: One decoded journal line.

    Returns:
        The first problem found, as one line; empty if the record is sound.
    """
    if not isinstance(record, dict):
        return "not a load record"
    return next(_problems(record), "")


def _problems(record: dict[str, object]) -> Iterator[str]:
    load = record.get("load")
    yield from _row_problems("load", LOADS.columns, load)
    if isinstance(load, dict):
        yield from _ending_problems(load)
    for table in (REQUESTS, CONNECTIONS):
        rows = record.get(table.name)
        if not isinstance(rows, list):
            yield f"{table.name}: expected a list"
            continue
        for number, row in enumerate(rows):
            yield from _row_problems(f"{table.name}[{number}]", table.columns[1:], row)
    yield from (
        f"{key}: expected an object" for key in ("proof", "relay") if not isinstance(record.get(key), dict)
    )


def _ending_problems(load: dict[str, object]) -> Iterator[str]:
    status, plt_ms = load.get("status"), load.get("plt_ms")
    if status not in STATUSES:
        yield f"load: status is {status!r}, expected one of {', '.join(STATUSES)}"
    if status == "ok" and not (isinstance(plt_ms, int | float) and plt_ms > 0):
        yield f"load: status is ok but plt_ms is {plt_ms!r}"


def _row_problems(where: str, columns: tuple[Column, ...], row: object) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{where}: expected an object"
        return
    for column in columns:
        if column.name not in row:
            yield f"{where}: no {column.name}"
        elif (value := row[column.name]) is None:
            if not column.null:
                yield f"{where}: {column.name} is null"
        elif not _fits(column.dtype, value):
            yield f"{where}: {column.name} is {value!r}, expected {type_name(column.dtype)}"


def _fits(dtype: pl.DataType, value: object) -> bool:
    match value:
        case bool():
            return dtype == pl.Boolean
        case int():
            low, high = (0, 2**64) if dtype == pl.UInt64 else (-(2**63), 2**63)
            return dtype.is_numeric() and low <= value < high
        case float():
            return dtype == pl.Float64 and math.isfinite(value)
        case str():
            return _is_instant(value) if dtype.is_temporal() else dtype == pl.String and _is_unicode(value)
    return False


def _is_instant(text: str) -> bool:
    try:
        instant = datetime.fromisoformat(text)
        return instant.tzinfo is not None and instant.astimezone(UTC) is not None
    except (ValueError, OverflowError):
        return False


def _is_unicode(text: str) -> bool:
    """Whether the text can be UTF-8: a lone surrogate cannot, and no Parquet file would take it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
