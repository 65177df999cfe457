"""Converts the journal to Parquet tables: loads, requests and connections, in the order of the run.

The journal is read in pieces. Each becomes a part file, and the parts are streamed into one table. So memory
grows by only 24 bytes per load, for the offset of its line. A journal without requests and connections, as a
sweep writes it, is read in columns, five times as fast. If a line is damaged, or has requests or connections,
the journal is read line by line.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, reduce
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from firstflight.deferred import numpy as np
from firstflight.deferred import polars as pl
from firstflight.errors import UsageError
from firstflight.results.files import journal_path
from firstflight.results.journal import Journal, is_json
from firstflight.results.records import LoadRecord
from firstflight.results.schema import (
    CONNECTIONS,
    JOURNAL_FORMAT,
    LOAD_COLUMNS,
    LOADS,
    REQUESTS,
    STATUSES,
    Column,
    Table,
    Type,
)

_LOADS_AT_ONCE = 256
_ROW_GROUP = 100_000


def _polars_type(kind: Type) -> pl.DataType:
    """The data type for values of this type."""
    match kind:
        case "text":
            return pl.String()
        case "integer":
            return pl.Int64()
        case "unsigned integer":
            return pl.UInt64()
        case "number":
            return pl.Float64()
        case "true or false":
            return pl.Boolean()
        case "time with offset":
            return pl.Datetime("us", "UTC")


def polars_schema(table: Table) -> pl.Schema:
    """The types of the table's columns, in order."""
    return pl.Schema({column.name: _polars_type(column.type) for column in table.columns})


def load_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The loads table of `records`, a row each."""
    return _frame(LOADS, [load_row(record) for record in records])


def load_row(record: LoadRecord) -> dict[str, object]:
    """The row of a load in the loads table."""
    row = {column.name: column.of(record) for column in LOADS.columns}
    return {**row, "started_at": _instant(row["started_at"])}


def request_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The requests table of `records`; the requests of a load are ordered by index."""
    return _rows_of(REQUESTS, records, "index")


def connection_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The connections table of `records`; the connections of a load are ordered by number."""
    return _rows_of(CONNECTIONS, records, "connection")


_FRAMES = {LOADS.name: load_frame, REQUESTS.name: request_frame, CONNECTIONS.name: connection_frame}


def write_tables(folder: Path, records: Iterable[LoadRecord] | None = None) -> list[Path]:
    """Writes ``loads.parquet``, ``requests.parquet`` and ``connections.parquet`` from the journal.

    The same loads give the same bytes, in whatever order they were made: rows are in the order of the run
    (`order`). A reader never sees a partial file.

    Args:
        folder: The results folder.
        records: All loads, if `Journal.records` was called already: the journal is then not read.

    Returns:
        The paths written.

    Raises:
        UsageError: The folder has no readable journal, or cannot be written to.
    """
    journal = Journal(journal_path(folder))
    try:
        with tempfile.TemporaryDirectory(prefix=".tables.", dir=folder) as name:
            parts = Path(name)
            loads = scan_loads(journal.path, parts) if records is None else None
            if loads is None:
                _write_parts(_pieces(journal) if records is None else _ordered_pieces(records), parts)
                loads = _joined(parts, LOADS)
            rows = {LOADS: loads, **{table: _joined(parts, table) for table in (REQUESTS, CONNECTIONS)}}
            return [_sink(found, parts, folder, table) for table, found in rows.items()]
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written: {error.strerror or error}",
            "make the results folder writable, free some space, or copy it to a place that is",
        ) from error


def _write_parts(pieces: Iterable[list[LoadRecord]], parts: Path) -> None:
    for number, records in enumerate(pieces):
        for name, frame in _FRAMES.items():
            frame(records).write_parquet(parts / f"{name}-{number:08d}.parquet")


def _places(journal: Journal) -> array[int]:
    """Offset of the line of each load that counts, bytes, in the order of the run."""
    orders, names, places = array("q"), array("q"), array("q")
    for place, record in journal.placed():
        orders.append(record["load"]["order"])
        names.append(_digest(record["load"]["load_id"]))
        places.append(place)
    order, name, at = (np.frombuffer(numbers, dtype=np.int64) for numbers in (orders, names, places))
    ranks = np.lexsort((at, name, order))
    order, name, at = order[ranks], name[ranks], at[ranks]
    last = np.ones(len(at), dtype=bool)
    last[:-1] = (order[1:] != order[:-1]) | (name[1:] != name[:-1])
    return array("q", at[last].tobytes())


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def _pieces(journal: Journal) -> Iterator[list[LoadRecord]]:
    places = _places(journal)
    with journal.path.open("rb") as file:
        yield from _several(journal.read_again(file, place) for place in places)


def _ordered_pieces(records: Iterable[LoadRecord]) -> Iterator[list[LoadRecord]]:
    ordered = sorted(
        records, key=lambda record: (record["load"]["order"], _digest(record["load"]["load_id"]))
    )
    yield from _several(iter(ordered))


def _several(records: Iterator[LoadRecord]) -> Iterator[list[LoadRecord]]:
    while several := list(islice(records, _LOADS_AT_ONCE)):
        yield several


def _joined(parts: Path, table: Table) -> pl.LazyFrame:
    files = sorted(parts.glob(f"{table.name}-*.parquet"))
    return pl.scan_parquet(files) if files else pl.LazyFrame(schema=polars_schema(table))


def _sink(rows: pl.LazyFrame, parts: Path, folder: Path, table: Table) -> Path:
    whole = parts / f"{table.name}.parquet"
    rows.sink_parquet(whole, row_group_size=_ROW_GROUP)
    return whole.replace(folder / whole.name)


def _rows_of(table: Table, records: Iterable[LoadRecord], key: str) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for record in records:
        load_id = record["load"]["load_id"]
        found = sorted(record[table.name], key=lambda row: row[key])  # type: ignore[literal-required]
        rows.extend({**row, "load_id": load_id} for row in found)
    return _frame(table, rows)


def _frame(table: Table, rows: list[dict[str, object]]) -> pl.DataFrame:
    columns = {column.name: [row[column.name] for row in rows] for column in table.columns}
    return pl.DataFrame(columns, schema=polars_schema(table), strict=False)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


_PIECE_BYTES = 1 << 26
_NOTHING_ELSE = b'"requests": [], "connections": []'
"""The text that `journal.encode` writes. Within a JSON string its quotes would be escaped."""


def _json_type(kind: Type) -> pl.DataType:
    """The data type for values of this type in JSON, where times are text."""
    return pl.String() if kind == "time with offset" else _polars_type(kind)


@cache
def _line() -> pl.Schema:
    """The type of a journal line: its load, and the columns that are elsewhere in it."""
    found: dict[str, pl.DataType] = {
        "format": pl.String(),
        "load": pl.Struct({column.name: _json_type(column.type) for column in LOAD_COLUMNS}),
        "instrument_failure": pl.Boolean(),
    }
    parts: dict[str, dict[str, pl.DataType]] = {}
    for column in LOADS.placed:
        if len(column.place) == 1:
            found[column.place[0]] = _polars_type(column.type)
        else:
            parts.setdefault(column.place[0], {})[column.place[1]] = _polars_type(column.type)
    return pl.Schema({**found, **{part: pl.Struct(fields) for part, fields in parts.items()}})


def _elsewhere(column: Column) -> pl.Expr:
    first, *rest = column.place
    return reduce(lambda found, step: found.struct.field(step), rest, pl.col(first)).alias(column.name)


def scan_loads(journal: Path, parts: Path) -> pl.LazyFrame | None:
    """The loads table of a journal, in the order of the run.

    Args:
        journal: The journal file.
        parts: A folder for temporary files.

    Returns:
        `None` if the journal has more than loads, or a line that is no load record.
    """
    files = []
    for number, lines in enumerate(_line_pieces(journal)):
        frame = _frame_of_lines(lines)
        if frame is None:
            return None
        files.append(parts / f"piece-{number:08d}.parquet")
        frame.write_parquet(files[-1])
    if not files:
        return None
    found = pl.scan_parquet(files).sort("order", "load_id", maintain_order=True)
    return found.unique("load_id", keep="last", maintain_order=True)


def _line_pieces(journal: Path) -> Iterator[list[bytes]]:
    """Lines, about 64 MB at a time, without an incomplete last line."""
    with journal.open("rb") as file:
        while lines := file.readlines(_PIECE_BYTES):
            if not lines[-1].endswith(b"\n") and not is_json(lines[-1]):
                lines.pop()
            if lines:
                yield lines


def _frame_of_lines(lines: Sequence[bytes]) -> pl.DataFrame | None:
    if not all(_NOTHING_ELSE in line for line in lines):
        return None
    try:
        found = pl.read_ndjson(b"".join(lines), schema=_line())
        placed = found.select(_elsewhere(column) for column in LOADS.placed)
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
    """Whether all rows would pass `check.check_record`."""
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
