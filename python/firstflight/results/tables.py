"""Journal to Parquet: loads, requests and connections, in the order of the run.

The journal is read in pieces, each becomes a part file, and the parts are streamed into one table: memory
does not grow with the run but by 24 bytes per load, for where its line is.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from firstflight.errors import UsageError
from firstflight.results.files import journal_path
from firstflight.results.journal import Journal
from firstflight.results.loads_only import scan_loads
from firstflight.results.polars_schema import polars_schema
from firstflight.results.records import LoadRecord
from firstflight.results.schema import CONNECTIONS, LOADS, REQUESTS, Table

_LOADS_AT_ONCE = 256
_ROW_GROUP = 100_000


def load_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The loads table of `records`, a row each."""
    return _frame(LOADS, [load_row(record) for record in records])


def load_row(record: LoadRecord) -> dict[str, object]:
    """The row of a load in the loads table."""
    row = {column.name: column.of(record) for column in LOADS.columns}
    return {**row, "started_at": _instant(row["started_at"])}


def request_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The requests table of `records`; within a load ordered by index."""
    return _rows_of(REQUESTS, records, "index")


def connection_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The connections table of `records`; within a load ordered by connection."""
    return _rows_of(CONNECTIONS, records, "connection")


_FRAMES = {LOADS.name: load_frame, REQUESTS.name: request_frame, CONNECTIONS.name: connection_frame}


def write_tables(folder: Path, records: Iterable[LoadRecord] | None = None) -> list[Path]:
    """Write ``loads.parquet``, ``requests.parquet`` and ``connections.parquet`` from the journal.

    The same loads give the same bytes, in whatever order they were made: rows are in the order of the run
    (`order`). A reader never sees a part of a file.

    Args:
        folder: The results folder.
        records: All its loads, where they are at hand already (`Journal.records`): the journal is not read.

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
    """Where the line of each load that counts is, bytes, in the order of the run."""
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
