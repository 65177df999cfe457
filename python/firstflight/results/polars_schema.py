"""The columns of the results tables as polars has them."""

from __future__ import annotations

import polars as pl

from firstflight.results.schema import Table, Type

POLARS_TYPES: dict[Type, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "unsigned integer": pl.UInt64(),
    "number": pl.Float64(),
    "true or false": pl.Boolean(),
    "time with offset": pl.Datetime("us", "UTC"),
}
"""What holds a value of each type."""


def polars_schema(table: Table) -> pl.Schema:
    """Its columns, in order."""
    return pl.Schema({column.name: POLARS_TYPES[column.type] for column in table.columns})
