"""The only definition of the results tables' columns: names, order, types, units and meaning.

The Parquet files, the check of journal lines (`check`) and ``docs/results.md`` (`docs`) come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from firstflight.model.treatment import MODES

JOURNAL_FORMAT = "firstflight-journal/7"
"""Format and version of a journal line, as it is written."""

EARLIER_FORMATS = tuple(f"firstflight-journal/{number}" for number in range(1, 7))
"""Earlier formats that a reader accepts. It refuses any other.

In format 2 a load names its mode, but neither treatment nor baseline. In format 1 it also lacks plan keys.
"""

STATUSES = ("ok", "failed")
"""How a load can end."""

Type = Literal["text", "integer", "unsigned integer", "number", "true or false", "time with offset"]
"""What a column holds, in the words of messages and docs. Integers have 64 bits."""


@dataclass(frozen=True)
class Column:
    """One column of a results table.

    Args:
        name: Column name; a quantity carries its unit.
        type: What it holds.
        unit: Unit for people; empty for names, flags and counts.
        meaning: One line.
        null: When the value is null; empty means never.
        key: The plan key whose value the column holds; empty if it holds none.
        place: Where in a load's record the value is, if not in its ``load``.
        since: The first format of the journal that has the column.
    """

    name: str
    type: Type
    unit: str
    meaning: str
    null: str = ""
    key: str = ""
    place: tuple[str, ...] = ()
    since: int = 1

    def of(self, record: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Its value in a load's record; `None` if a part of `place` is missing."""
        if not self.place:
            return record["load"][self.name]
        found: Any = record
        for step in self.place:
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


@dataclass(frozen=True)
class Table:
    """One results table: ``<name>.parquet``, in the order of its columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return [column.name for column in self.columns]

    @property
    def placed(self) -> list[Column]:
        """The columns whose value a load's record does not keep in its ``load``."""
        return [column for column in self.columns if column.place]


_TEXT: Type = "text"
_COUNT: Type = "integer"
_MS: Type = "number"
_FLAG: Type = "true or false"
_LOAD_FAILED = "the load failed"
_NO_PAINT = "the client was not a browser, or the browser painted nothing of this kind"
_LOAD_ID = Column("load_id", _TEXT, "", "The load this row belongs to")
_START = "after navigation start"
_EARLIER = "journal format 1, 2 or 3"
_OLDER = "journal format 1 and no such key in `plan.toml`"


def _asked(key: str, column_type: Type, meaning: str, **more: str) -> Column:
    """A key of the plan that format 1 of the journal did not have in its loads; `more` as in `Column`."""
    null = "; ".join(filter(None, (more.get("null"), _OLDER)))
    return Column(more.get("name", key), column_type, more.get("unit", ""), meaning, null, key, since=2)


LOADS = Table(
    "loads",
    "One row per load: one page loaded once.",
    (
        Column("load_id", _TEXT, "", "Name of the load, unique in the folder"),
        Column(
            "block",
            _COUNT,
            "",
            "Number of the block: one repeat of all treatments of a page and path. Its loads are paired",
        ),
        Column("order", _COUNT, "", "Position of the load in the order of the run"),
        Column("repeat", _COUNT, "", "Number of the repeat within the cell"),
        Column("page", _TEXT, "", "Name of the page", key="pages"),
        Column(
            "version",
            _TEXT,
            "",
            "Version of the page, if treatments load different versions; otherwise empty",
            since=7,
        ),
        Column("engine", _TEXT, "", "`emulate`: real kernel; `simulate`: virtual clock", key="engine"),
        Column("client", _TEXT, "", "Client that loaded the page: `loader`, `chromium`, ...", key="client"),
        Column(
            "mode", _TEXT, "", f"Transport mode: {' or '.join(f'`{mode}`' for mode in MODES)}", key="mode"
        ),
        Column(
            "treatment",
            _TEXT,
            "",
            "Name of the treatment under which the page was loaded",
            key="treatment",
            since=3,
        ),
        Column(
            "baseline", _TEXT, "", "Name of the treatment with which firstflight compares this one", since=3
        ),
        Column(
            "cookies", _TEXT, "", "Cookie state, as in the plan: `warm`, `cold`, `pool:3`, ...", key="cookies"
        ),
        Column(
            "topology",
            _TEXT,
            "",
            "`access`: all origins share one link; `star`: each origin has its own link",
            key="topology",
        ),
        Column("rtt_ms", _MS, "ms", "Round-trip time that the plan requests", key="rtt"),
        Column(
            "down_mbps",
            _MS,
            "Mbit/s",
            "Rate towards the client; with a trace, its mean rate",
            "unlimited",
            key="down",
        ),
        Column(
            "up_mbps",
            _MS,
            "Mbit/s",
            "Rate towards the servers; with a trace, its mean rate",
            "unlimited",
            key="up",
        ),
        Column("loss", _MS, "", "Probability that a packet is lost, 0 to 1", key="loss"),
        _asked("loss_burst", _MS, "Mean length of a loss burst, in packets", null="losses are independent"),
        _asked(
            "loss_in_burst",
            _MS,
            "Probability that a packet in a burst is lost",
            null="losses are independent",
        ),
        _asked(
            "jitter",
            _MS,
            "Maximum additional delay of a packet in each direction",
            name="jitter_ms",
            unit="ms",
        ),
        _asked("reorder", _FLAG, "Whether a packet may overtake packets sent before it"),
        _asked("duplicate", _MS, "Probability that a packet arrives twice, 0 to 1"),
        _asked(
            "down_trace", _TEXT, "Trace of the link towards the client: file name and digest", null="no trace"
        ),
        _asked(
            "up_trace", _TEXT, "Trace of the link towards the servers: file name and digest", null="no trace"
        ),
        _asked("queue", _TEXT, "Queue of each link: `1000p`, `64kB`, `100ms`, `codel`, ..."),
        _asked(
            "ecn",
            _FLAG,
            "Whether TCP and QUIC use ECN, so that `codel` and `pie` mark packets instead of dropping them",
        ),
        _asked("middlebox", _TEXT, "Type of middlebox, and the share of paths that have it; or `off`"),
        _asked("initial_window", _COUNT, "Initial congestion window, segments"),
        _asked("congestion_control", _TEXT, "Congestion control: `cubic`, `reno` or `bbr`"),
        Column("ip", _TEXT, "", "IP version: `4` or `6`", key="ip", since=6),
        _asked(
            "scheme",
            _TEXT,
            "`recorded`: each URL has its recorded scheme; `http`: no TLS; `https`: TLS for all URLs",
        ),
        _asked(
            "http",
            _TEXT,
            "HTTP version of the loader over TLS: `1.1`, `2` or `recorded`; browsers negotiate theirs",
        ),
        Column(
            "priorities",
            _TEXT,
            "",
            "Order of responses over HTTP/2 and HTTP/3: `none`: all in turn; `rfc9218`: urgent ones first",
            key="priorities",
            since=7,
        ),
        _asked("post_quantum", _FLAG, "Whether TLS clients offer the key share X25519MLKEM768"),
        Column(
            "certificate_bytes",
            _COUNT,
            "bytes",
            "Size of each server's certificate; 0: the smallest possible",
            key="certificate_bytes",
            since=5,
        ),
        _asked("keep_alive", _FLAG, "Whether servers keep a connection open after a response"),
        _asked(
            "origin_rtt",
            _TEXT,
            "`path`: all origins have the path's RTT; `recorded`: RTTs differ as in the recording",
        ),
        _asked("lookups", _FLAG, "Whether the loader waits for name lookups, as long as in the recording"),
        _asked("server_time", _FLAG, "Whether servers and the main thread take as long as in the recording"),
        _asked("processing", _MS, "Factor on the loader's own time: main thread and recorded pauses"),
        _asked(
            "determinism",
            _FLAG,
            "Whether pages in a browser see the time of the recording and fixed random numbers",
        ),
        _asked("browser", _TEXT, "Path of the browser's program; empty: the system's browser"),
        _asked("what_if", _TEXT, "Simulated protocol variants that no kernel implements; or `off`"),
        Column("seed", "unsigned integer", "", "Seed of all random choices in the load", key="seed"),
        Column(
            "started_at",
            "time with offset",
            "",
            "When the load began; in the journal ISO 8601 with UTC offset",
            "the load was simulated (the virtual clock has no date)",
        ),
        Column("plt_ms", _MS, "ms", "Page load time: from navigation start to load event", _LOAD_FAILED),
        Column(
            "first_byte_ms", _MS, "ms", "First byte of the document, after navigation start", _LOAD_FAILED
        ),
        *(
            Column(
                f"{name}_ms",
                _MS,
                "ms",
                f"{what}, after navigation start",
                _NO_PAINT,
                place=("browser", f"{name}_ms"),
            )
            for name, what in (
                ("first_paint", "First pixel that differs from the background"),
                ("first_contentful_paint", "First text or image painted (FCP)"),
                ("lcp", "Largest text or image painted before the page became idle (LCP)"),
            )
        ),
        Column("requests", _COUNT, "", "Requests sent", _LOAD_FAILED),
        Column("failed_requests", _COUNT, "", "Requests without a complete response", _LOAD_FAILED),
        Column(
            "unmatched_requests",
            _COUNT,
            "",
            "Requests that no recorded response answers",
            _LOAD_FAILED,
        ),
        Column("connections", _COUNT, "", "TCP and QUIC connections opened", _LOAD_FAILED),
        Column(
            "tfo_offered",
            _COUNT,
            "",
            "Connections whose SYN carried data (and a cookie, except with `cookieless`)",
            _LOAD_FAILED,
        ),
        Column("tfo_accepted", _COUNT, "", "Connections whose SYN-ACK acknowledged that data", _LOAD_FAILED),
        Column("bytes_down", _COUNT, "bytes", "Bytes of IP packets that reached the client", _LOAD_FAILED),
        Column("bytes_up", _COUNT, "bytes", "Bytes of IP packets that the client sent", _LOAD_FAILED),
        Column("retransmits", _COUNT, "", "Retransmitted segments, including SYNs", _LOAD_FAILED),
        Column(
            "attempt",
            _COUNT,
            "",
            "Number of the attempt, from 1. Another follows if the relay was late or the client broke",
            "the journal line has no number",
            place=("attempt",),
        ),
        Column(
            "proved",
            _FLAG,
            "",
            "Whether every connection did what mode and treatment promise",
            "the load failed before firstflight could check it",
            place=("proof", "ok"),
        ),
        Column(
            "relay_late_ms",
            _MS,
            "ms",
            "Maximum time by which the relay sent a packet too late; 0 if simulated",
            "the load failed before the relay reported",
            place=("relay", "late_max_ms"),
        ),
        Column(
            "relay_late",
            _FLAG,
            "",
            "Whether the relay sent a packet more than 2 ms late, or could not send one",
            "the load failed before the relay reported",
            place=("relay", "late"),
        ),
        Column("status", _TEXT, "", "`ok` or `failed`"),
        Column("error", _TEXT, "", "Why the load failed", "the load ended ok"),
    ),
)
"""One row per load."""

LOAD_COLUMNS = tuple(column for column in LOADS.columns if not column.place)
"""Columns whose value is in the ``load`` of a record."""

TREATMENT = tuple(c for c in LOADS.columns if c.key and c.key not in ("pages", "mode", "treatment", "seed"))
"""Columns in which two loads of one page may differ by the plan: path, transport, servers and client."""

DRAWN_BY = ("engine", "cookies", "loss", "jitter_ms", "duplicate", "queue", "middlebox")
"""Columns that say whether anything of a load is random."""


def is_drawn(load: Mapping[str, Any]) -> bool:
    """Whether repeats of a load differ by chance: always on a real kernel, otherwise if the path is random.

    The alignment of the simulated kernel's timers, which the seed decides, does not count: see
    docs/statistics.md.

    Args:
        load: A row of the loads table, or its `DRAWN_BY` columns; one that is null counts as drawn.
    """
    steady = {"loss": 0, "jitter_ms": 0, "duplicate": 0}
    return (
        load["engine"] != "simulate"
        or any(load.get(name) != value for name, value in steady.items())
        or load.get("queue") in ("pie", None)
        or ":" in (load.get("middlebox") or ":")
        or load["cookies"].startswith(("warm:", "pool:"))
    )


KEYS_WITHOUT_COLUMN = {
    "compare": "the short form of treatments",
    "network": "the name of a group of other keys",
    "program": "a flag only; the program's version is kept with the client's name",
    "har": "what is kept of a load",
    "screenshots": "what is kept of a load",
    "keep": "what is kept of a load",
    "require_cookie": "only decides whether the cookie state cookieless is allowed",
    "repeats": "how many loads are made",
    "until": "how many loads are made",
    "most_repeats": "how many loads are made",
    "jobs": "how many loads are made at a time",
}
"""Keys of a plan without a column, and why they need none."""


REQUESTS = Table(
    "requests",
    f"One row per request. Times are ms {_START}.",
    (
        _LOAD_ID,
        Column("index", _COUNT, "", "Index of the resource in the page; 0 is the document"),
        Column("url", _TEXT, "", "Absolute URL"),
        Column("origin", _TEXT, "", "Scheme, host and port"),
        Column(
            "connection",
            _COUNT,
            "",
            "Number of the connection that carried the request",
            "the request was not sent",
        ),
        Column("queued_ms", _MS, "ms", "The request was ready and waited for a connection", "not known"),
        Column(
            "connect_start_ms",
            _MS,
            "ms",
            "The client began to open its connection",
            "the connection was already open",
        ),
        Column(
            "connect_end_ms",
            _MS,
            "ms",
            "The connection could take the request",
            "the connection was already open",
        ),
        Column("sent_ms", _MS, "ms", "The client had written the request", "the request was not sent"),
        Column("first_byte_ms", _MS, "ms", "First byte of the response", "no response"),
        Column(
            "end_ms",
            _MS,
            "ms",
            "Last byte of the response",
            "no complete response, or the client was curl over QUIC",
        ),
        Column("status", _COUNT, "", "HTTP status", "no response"),
        Column("mime", _TEXT, "", "MIME type of the response", "no response"),
        Column("body_bytes", _COUNT, "bytes", "Size of the body in its content coding", "no response"),
        Column("wire_bytes", _COUNT, "bytes", "Size of status line, header fields and body", "no response"),
        Column(
            "initiator",
            _COUNT,
            "",
            "Index of the resource that caused the request",
            "the request is for the document, or the initiator is not known",
        ),
    ),
)
"""One row per request."""

CONNECTIONS = Table(
    "connections",
    f"One row per TCP or QUIC connection, as the ledger recorded it. Times are ms {_START}.",
    (
        _LOAD_ID,
        Column("connection", _COUNT, "", "Number of the connection in its load"),
        Column("origin", _TEXT, "", "Scheme, host and port"),
        Column("opened_ms", _MS, "ms", "First SYN, or first datagram", "the ledger saw neither"),
        Column("syn_payload_bytes", _COUNT, "bytes", "Size of the data in the first SYN"),
        Column(
            "cookie",
            _TEXT,
            "",
            "TFO option of the first SYN: `none`, `requested` (empty) or `sent` (with a cookie)",
        ),
        Column("syn_data_acked", _FLAG, "", "Whether the SYN-ACK acknowledged the data of the SYN"),
        Column("syn_retransmits", _COUNT, "", "Retransmitted SYNs"),
        Column("bytes_down", _COUNT, "bytes", "Bytes of IP packets that reached the client"),
        Column("bytes_up", _COUNT, "bytes", "Bytes of IP packets that the client sent"),
        Column("closed_ms", _MS, "ms", "Second FIN, or RST", "the connection was open when the load ended"),
        Column(
            "first_flight_bytes",
            _COUNT,
            "bytes",
            "Data that the client sent before the server's first data reached it; with QUIC, UDP payload",
            _EARLIER,
            since=4,
        ),
        Column(
            "tls",
            _TEXT,
            "",
            "TLS version that the server reports: `1.2` or `1.3`",
            f"no TLS, or {_EARLIER}",
            since=4,
        ),
        Column(
            "resumed",
            _FLAG,
            "",
            "Whether the server resumed a TLS session",
            f"no TLS, or {_EARLIER}",
            since=4,
        ),
        Column(
            "early_data",
            _TEXT,
            "",
            "Early data at the server: `none`, `accepted` or `rejected`; `sent` if only the ledger saw it",
            _EARLIER,
            since=4,
        ),
        Column(
            "early_data_bytes",
            _COUNT,
            "bytes",
            "Size of the early data that the ledger saw",
            _EARLIER,
            since=4,
        ),
        Column("protocol", _TEXT, "", "`tcp`, or `udp` for QUIC", since=5),
    ),
)
"""One row per connection."""

TABLES = (LOADS, REQUESTS, CONNECTIONS)
"""All results tables."""
