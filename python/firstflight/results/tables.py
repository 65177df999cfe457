"""Journal to Parquet: loads, requests and connections, rows in a fixed order."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.results.files import journal_path, write_whole
from firstflight.results.journal import Journal
from firstflight.results.schema import CONNECTIONS, LOADS, REQUESTS, LoadRecord, Table


def load_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The loads table, ordered by load_id."""
    rows = [{**r["load"], "started_at": _instant(r["load"]["started_at"])} for r in records]
    return _frame(LOADS, rows).sort("load_id")


def request_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The requests table, ordered by load_id, then index."""
    return _rows_of(REQUESTS, records).sort("load_id", "index", maintain_order=True)


def connection_frame(records: Iterable[LoadRecord]) -> pl.DataFrame:
    """The connections table, ordered by load_id, then connection."""
    return _rows_of(CONNECTIONS, records).sort("load_id", "connection", maintain_order=True)


def write_tables(folder: Path, records: list[LoadRecord] | None = None) -> list[Path]:
    """Write ``loads.parquet``, ``requests.parquet`` and ``connections.parquet`` from the journal.

    The same journal gives the same rows in the same order. A reader never sees a part of a file.

    Args:
        folder: The results folder.
        records: The journal's records, if they are at hand already.

    Returns:
        The paths written.

    Raises:
        UsageError: The folder has no readable journal, or cannot be written to.
    """
    path = journal_path(folder)
    records = Journal(path).records() if records is None else records
    frames = {
        LOADS.name: load_frame(records),
        REQUESTS.name: request_frame(records),
        CONNECTIONS.name: connection_frame(records),
    }
    return [write_whole(folder / f"{name}.parquet", _parquet(frame)) for name, frame in frames.items()]


def _rows_of(table: Table, records: Iterable[LoadRecord]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for record in records:
        load_id = record["load"]["load_id"]
        rows.extend({**row, "load_id": load_id} for row in record[table.name])  # type: ignore[literal-required]
    return _frame(table, rows)


def _frame(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    columns = {column.name: [row[column.name] for row in rows] for column in table.columns}
    return pl.DataFrame(columns, schema=table.schema, strict=False)


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
