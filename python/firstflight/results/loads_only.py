"""Journals of loads alone, as a sweep leaves them: read in columns, five times as fast as line by line.

Nothing is judged here: where a line is damaged, or has requests or connections, the journal is left to be
read line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import polars as pl

from firstflight.results.journal import is_json
from firstflight.results.polars_schema import POLARS_TYPES, polars_schema
from firstflight.results.schema import JOURNAL_FORMAT, LOAD_COLUMNS, LOADS, STATUSES, Column

_PIECE_BYTES = 1 << 26
_NOTHING_ELSE = b'"requests": [], "connections": []'
"""As `journal.encode` writes it; inside a JSON text its quotes would be escaped."""

_JSON_TYPES = {**POLARS_TYPES, "time with offset": pl.String()}
_PLACED = [column for column in LOADS.columns if column.place]


def _line() -> pl.Schema:
    """A journal line: its load, and what of the tables stands elsewhere in it."""
    found: dict[str, pl.DataType] = {
        "format": pl.String(),
        "load": pl.Struct({column.name: _JSON_TYPES[column.type] for column in LOAD_COLUMNS}),
        "instrument_failure": pl.Boolean(),
    }
    parts: dict[str, dict[str, pl.DataType]] = {}
    for column in _PLACED:
        if len(column.place) == 1:
            found[column.place[0]] = POLARS_TYPES[column.type]
        else:
            parts.setdefault(column.place[0], {})[column.place[1]] = POLARS_TYPES[column.type]
    return pl.Schema({**found, **{part: pl.Struct(fields) for part, fields in parts.items()}})


def _elsewhere(column: Column) -> pl.Expr:
    first, *rest = column.place
    return reduce(lambda found, step: found.struct.field(step), rest, pl.col(first)).alias(column.name)


_LINE = _line()


def scan_loads(journal: Path, parts: Path) -> pl.LazyFrame | None:
    """The loads table of a journal, in the order of the run.

    Args:
        journal: The journal file.
        parts: A folder to work in.

    Returns:
        `None` where the journal holds more than loads, or what is not a load record.
    """
    files = []
    for number, lines in enumerate(_pieces(journal)):
        frame = _frame(lines)
        if frame is None:
            return None
        files.append(parts / f"piece-{number:08d}.parquet")
        frame.write_parquet(files[-1])
    if not files:
        return None
    found = pl.scan_parquet(files).sort("order", "load_id", maintain_order=True)
    return found.unique("load_id", keep="last", maintain_order=True)


def _pieces(journal: Path) -> Iterator[list[bytes]]:
    """Lines, some 64 MB at a time, without one that was cut short at the end."""
    with journal.open("rb") as file:
        while lines := file.readlines(_PIECE_BYTES):
            if not lines[-1].endswith(b"\n") and not is_json(lines[-1]):
                lines.pop()
            if lines:
                yield lines


def _frame(lines: Sequence[bytes]) -> pl.DataFrame | None:
    if not all(_NOTHING_ELSE in line for line in lines):
        return None
    try:
        found = pl.read_ndjson(b"".join(lines), schema=_LINE)
        placed = found.select(_elsewhere(column) for column in _PLACED)
        loads = found.select("format", "instrument_failure", "load").unnest("load").hstack(placed)
        loads = loads.with_columns(_instants(loads["started_at"]))
    except (pl.exceptions.PolarsError, ValueError, OverflowError):
        return None
    if loads.height != len(lines) or not _is_sound(loads):
        return None
    return loads.filter(~pl.col("instrument_failure").fill_null(value=False)).select(LOADS.names)


def _instants(texts: pl.Series) -> pl.Series:
    instants = [text and datetime.fromisoformat(text).astimezone(UTC) for text in texts]
    return pl.Series("started_at", instants, dtype=polars_schema(LOADS)["started_at"])


def _is_sound(loads: pl.DataFrame) -> bool:
    """As `check.check_record` has it."""
    floats = [column.name for column in LOADS.columns if column.type == "number"]
    is_ok = pl.col("status") == "ok"
    sound = [
        pl.col("format").fill_null(JOURNAL_FORMAT) == JOURNAL_FORMAT,
        pl.col("status").is_in(STATUSES),
        (pl.col("plt_ms").fill_null(0) > 0) | ~is_ok,
        *(pl.col(column.name).is_not_null() for column in LOADS.columns if not column.null),
        *(pl.col(name).is_finite().fill_null(value=True) for name in floats),
    ]
    return bool(loads.select(pl.all_horizontal(sound).all()).item())
