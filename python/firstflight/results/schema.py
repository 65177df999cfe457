"""The columns of the results tables: names, order, types, units and meaning. Their only source.

The Parquet files, the check of journal lines (`check`) and ``docs/results.md`` (`docs`) come from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import polars as pl

JOURNAL_FORMAT = "firstflight-journal/1"
"""Format and version of a journal line. A reader refuses any other."""

STATUSES = ("ok", "failed")
"""How a load can end."""


class LoadRecord(TypedDict):
    """One load as it stands in the journal.

    ``load`` has the columns of `LOADS`; ``requests`` and ``connections`` those of `REQUESTS` and
    `CONNECTIONS` without ``load_id``. Further keys (a request's ``error``, say) stay in the journal and out
    of the tables.
    """

    load: dict[str, Any]
    requests: list[dict[str, Any]]
    connections: list[dict[str, Any]]
    proof: dict[str, Any]
    relay: dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of a results table.

    Args:
        name: Column name; a quantity carries its unit.
        dtype: polars type.
        unit: Unit for people; empty for names, flags and counts.
        meaning: One line.
        null: When the value is null; empty means never.
    """

    name: str
    dtype: pl.DataType
    unit: str
    meaning: str
    null: str = ""


@dataclass(frozen=True)
class Table:
    """One results table: ``<name>.parquet``, in the order of its columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """The polars schema, in column order."""
        return pl.Schema({column.name: column.dtype for column in self.columns})


_TEXT, _COUNT, _MS, _FLAG = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_LOAD_FAILED = "the load failed"
_LOAD_ID = Column("load_id", _TEXT, "", "The load this row belongs to")
_START = "after navigation start"

LOADS = Table(
    "loads",
    "One row per load: one page loaded once.",
    (
        Column("load_id", _TEXT, "", "Name of the load, unique in the folder"),
        Column(
            "block",
            _COUNT,
            "",
            "One repeat of all modes of a page and path, back to back; loads are paired by it",
        ),
        Column("order", _COUNT, "", "Place of the load in the order of the run"),
        Column("repeat", _COUNT, "", "Which repeat of its cell this is"),
        Column("page", _TEXT, "", "Name of the page"),
        Column("engine", _TEXT, "", "`emulate` or `simulate`"),
        Column("client", _TEXT, "", "What loaded the page"),
        Column("mode", _TEXT, "", "Transport treatment: `tcp` or `tfo`"),
        Column("cookies", _TEXT, "", "Cookie state: `warm`, `cold`, `pool:3`, ... as in the plan"),
        Column("topology", _TEXT, "", "`access`: one shared link; `star`: a link for every origin"),
        Column("rtt_ms", _MS, "ms", "Round-trip time asked for"),
        Column("down_mbps", _MS, "Mbit/s", "Rate towards the client; of a trace its mean", "unlimited"),
        Column("up_mbps", _MS, "Mbit/s", "Rate towards the servers; of a trace its mean", "unlimited"),
        Column("loss", _MS, "", "Probability that a packet is lost, 0 to 1"),
        Column("seed", pl.UInt64(), "", "Seed of everything random in the load"),
        Column(
            "started_at",
            pl.Datetime("us", "UTC"),
            "",
            "When the load began (ISO 8601 with offset in the journal)",
            "the load was simulated: a virtual clock has no date",
        ),
        Column("plt_ms", _MS, "ms", "Page load time: navigation start to load event", _LOAD_FAILED),
        Column(
            "first_byte_ms", _MS, "ms", "First byte of the document, after navigation start", _LOAD_FAILED
        ),
        Column("requests", _COUNT, "", "Requests sent", _LOAD_FAILED),
        Column("failed_requests", _COUNT, "", "Requests without a complete response", _LOAD_FAILED),
        Column(
            "unmatched_requests",
            _COUNT,
            "",
            "Requests for something the page was not recorded with",
            _LOAD_FAILED,
        ),
        Column("connections", _COUNT, "", "TCP connections opened", _LOAD_FAILED),
        Column(
            "tfo_offered",
            _COUNT,
            "",
            "Connections whose SYN carried data (with a cookie, unless `cookieless`)",
            _LOAD_FAILED,
        ),
        Column("tfo_accepted", _COUNT, "", "Connections whose SYN-ACK acknowledged that data", _LOAD_FAILED),
        Column("bytes_down", _COUNT, "bytes", "IP bytes towards the client", _LOAD_FAILED),
        Column("bytes_up", _COUNT, "bytes", "IP bytes towards the servers", _LOAD_FAILED),
        Column("retransmits", _COUNT, "", "Segments sent again, SYNs included", _LOAD_FAILED),
        Column("status", _TEXT, "", "`ok` or `failed`"),
        Column("error", _TEXT, "", "Why the load failed", "the load is ok"),
    ),
)
"""One row per load."""

REQUESTS = Table(
    "requests",
    f"One row per request. Times are ms {_START}.",
    (
        _LOAD_ID,
        Column("index", _COUNT, "", "Index of the resource in the page; 0 is the document"),
        Column("url", _TEXT, "", "Absolute URL"),
        Column("origin", _TEXT, "", "Scheme, host and port"),
        Column("connection", _COUNT, "", "Connection that carried it", "never sent"),
        Column("queued_ms", _MS, "ms", "Discovered, and waiting for a connection", "not known"),
        Column("connect_start_ms", _MS, "ms", "Its connection was begun", "an open connection was used"),
        Column(
            "connect_end_ms", _MS, "ms", "Its connection could be written to", "an open connection was used"
        ),
        Column("sent_ms", _MS, "ms", "Request written", "never sent"),
        Column("first_byte_ms", _MS, "ms", "First byte of the response", "no response"),
        Column("end_ms", _MS, "ms", "Last byte of the response", "no complete response"),
        Column("status", _COUNT, "", "HTTP status", "no response"),
        Column("mime", _TEXT, "", "MIME type of the response", "no response"),
        Column("body_bytes", _COUNT, "bytes", "Body as encoded", "no response"),
        Column("wire_bytes", _COUNT, "bytes", "Status line, header fields and body", "no response"),
        Column(
            "initiator", _COUNT, "", "Index of the resource that asked for it", "the document, or not known"
        ),
    ),
)
"""One row per request."""

CONNECTIONS = Table(
    "connections",
    f"One row per TCP connection, as the ledger saw it. Times are ms {_START}.",
    (
        _LOAD_ID,
        Column("connection", _COUNT, "", "Number of the connection in its load"),
        Column("origin", _TEXT, "", "Scheme, host and port"),
        Column("opened_ms", _MS, "ms", "First SYN", "no SYN was seen"),
        Column("syn_payload_bytes", _COUNT, "bytes", "Data in the first SYN"),
        Column("cookie", _TEXT, "", "TFO option of the first SYN: `none`, `requested` or `sent`"),
        Column("syn_data_acked", _FLAG, "", "The SYN-ACK acknowledged the data of the SYN"),
        Column("syn_retransmits", _COUNT, "", "SYNs sent again"),
        Column("bytes_down", _COUNT, "bytes", "IP bytes towards the client"),
        Column("bytes_up", _COUNT, "bytes", "IP bytes towards the server"),
        Column("closed_ms", _MS, "ms", "Last FIN or RST", "open when the load ended"),
    ),
)
"""One row per connection."""

TABLES = (LOADS, REQUESTS, CONNECTIONS)
"""All results tables."""


def type_name(dtype: pl.DataType) -> str:
    """The word for a column type in messages and docs."""
    names = {"String": "text", "Boolean": "true or false", "Float64": "number"}
    name = str(dtype.base_type())
    return names.get(name, "time with offset" if dtype.is_temporal() else "integer")
