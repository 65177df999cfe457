"""The columns of the results tables: names, order, types, units and meaning. Their only source.

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
"""What is read too. A reader refuses any other.

In format 2 a load names its mode, and neither treatment nor baseline; in format 1 fewer keys of the plan too.
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
        key: The key of the plan that it is the value of; empty where it is none's.
        place: Where a load's record has it, if not in its ``load``.
        since: The first format of the journal that has it.
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
        """Its value in a load's record; `None` where one of `place` is not there."""
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
        """Its columns that a load's record has elsewhere than in its ``load``."""
        return [column for column in self.columns if column.place]


_TEXT: Type = "text"
_COUNT: Type = "integer"
_MS: Type = "number"
_FLAG: Type = "true or false"
_LOAD_FAILED = "the load failed"
_NO_PAINT = "no browser loaded the page, or it painted nothing of that kind"
_LOAD_ID = Column("load_id", _TEXT, "", "The load this row belongs to")
_START = "after navigation start"
_EARLIER = "of an earlier version"
_OLDER = "older journal, and its plan does not say"


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
            "One repeat of all treatments of a page and path, back to back; loads are paired by it",
        ),
        Column("order", _COUNT, "", "Place of the load in the order of the run"),
        Column("repeat", _COUNT, "", "Which repeat of its cell this is"),
        Column("page", _TEXT, "", "Name of the page", key="pages"),
        Column(
            "version",
            _TEXT,
            "",
            "Which version of the page, where treatments load versions of it; else empty",
            since=7,
        ),
        Column("engine", _TEXT, "", "`emulate` or `simulate`", key="engine"),
        Column("client", _TEXT, "", "What loaded the page", key="client"),
        Column(
            "mode", _TEXT, "", f"Mode of transport: {' or '.join(f'`{mode}`' for mode in MODES)}", key="mode"
        ),
        Column(
            "treatment", _TEXT, "", "Name of its treatment: what it is compared for", key="treatment", since=3
        ),
        Column("baseline", _TEXT, "", "Name of the treatment that its own is compared with", since=3),
        Column(
            "cookies", _TEXT, "", "Cookie state: `warm`, `cold`, `pool:3`, ... as in the plan", key="cookies"
        ),
        Column(
            "topology",
            _TEXT,
            "",
            "`access`: one shared link; `star`: a link for every origin",
            key="topology",
        ),
        Column("rtt_ms", _MS, "ms", "Requested round-trip time", key="rtt"),
        Column(
            "down_mbps",
            _MS,
            "Mbit/s",
            "Rate towards the client; of a trace its mean",
            "unlimited",
            key="down",
        ),
        Column(
            "up_mbps", _MS, "Mbit/s", "Rate towards the servers; of a trace its mean", "unlimited", key="up"
        ),
        Column("loss", _MS, "", "Probability that a packet is lost, 0 to 1", key="loss"),
        _asked("loss_burst", _MS, "Mean length of a burst of losses, packets", null="losses are independent"),
        _asked("loss_in_burst", _MS, "Probability of a loss in a burst", null="losses are independent"),
        _asked("jitter", _MS, "Longest additional delay of a packet each way", name="jitter_ms", unit="ms"),
        _asked("reorder", _FLAG, "A packet may overtake those sent before it"),
        _asked("duplicate", _MS, "Probability that a packet arrives twice, 0 to 1"),
        _asked("down_trace", _TEXT, "Trace in place of `down_mbps`: file and digest", null="no trace"),
        _asked("up_trace", _TEXT, "Trace in place of `up_mbps`: file and digest", null="no trace"),
        _asked("queue", _TEXT, "Queue of each link: `1000p`, `64kB`, `100ms`, `codel`, ..."),
        _asked("ecn", _FLAG, "TCP uses ECN, and managed queues mark"),
        _asked("middlebox", _TEXT, "Middlebox, and the share of paths that have it; or `off`"),
        _asked("initial_window", _COUNT, "Initial congestion window, segments"),
        _asked("congestion_control", _TEXT, "`cubic`, `reno` or `bbr`"),
        Column("ip", _TEXT, "", "Version of IP: `4` or `6`", key="ip", since=6),
        _asked(
            "scheme", _TEXT, "`recorded`: each URL as recorded; `http`: all in the clear; `https`: all TLS"
        ),
        _asked("http", _TEXT, "HTTP of the loader over TLS: `1.1`, `2` or `recorded`; browsers negotiate"),
        Column(
            "priorities",
            _TEXT,
            "",
            "What servers send first over HTTP/2 and 3: `none`, all in turn; `rfc9218`, what is urgent",
            key="priorities",
            since=7,
        ),
        _asked("post_quantum", _FLAG, "TLS offers the key share X25519MLKEM768"),
        Column(
            "certificate_bytes",
            _COUNT,
            "bytes",
            "Certificates of servers; 0: as few bytes as can be",
            key="certificate_bytes",
            since=5,
        ),
        _asked("keep_alive", _FLAG, "Servers keep a connection open after a response"),
        _asked("origin_rtt", _TEXT, "`path`: all origins have the path's RTT; `recorded`: some have more"),
        _asked("lookups", _FLAG, "The loader waits for the lookup of a host's name"),
        _asked("server_time", _FLAG, "Servers and the main thread take the time of the recording"),
        _asked("processing", _MS, "Factor on the loader's own time"),
        _asked("determinism", _FLAG, "A browser's page has its recording's time and the same random numbers"),
        _asked("browser", _TEXT, "Program of the browser; empty: the system's"),
        _asked("what_if", _TEXT, "Protocol variants that no kernel has; or `off`"),
        Column("seed", "unsigned integer", "", "Seed of everything random in the load", key="seed"),
        Column(
            "started_at",
            "time with offset",
            "",
            "When the load began (ISO 8601 with offset in the journal)",
            "the load was simulated: a virtual clock has no date",
        ),
        Column("plt_ms", _MS, "ms", "Page load time: navigation start to load event", _LOAD_FAILED),
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
                ("first_paint", "First pixel other than the background"),
                ("first_contentful_paint", "First text or image (FCP)"),
                ("lcp", "Largest text or image until the page came to rest (LCP)"),
            )
        ),
        Column("requests", _COUNT, "", "Requests sent", _LOAD_FAILED),
        Column("failed_requests", _COUNT, "", "Requests without a complete response", _LOAD_FAILED),
        Column(
            "unmatched_requests",
            _COUNT,
            "",
            "Requests for something that is not in the recording",
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
        Column("retransmits", _COUNT, "", "Retransmitted segments, SYNs included", _LOAD_FAILED),
        Column(
            "attempt",
            _COUNT,
            "",
            "Which attempt this is, from 1: a load whose relay was late is repeated",
            "journalled without it",
            place=("attempt",),
        ),
        Column(
            "proved",
            _FLAG,
            "",
            "Every connection showed what mode and treatment promise",
            "nothing to prove: the load failed before",
            place=("proof", "ok"),
        ),
        Column(
            "relay_late_ms",
            _MS,
            "ms",
            "How late the relay sent its latest packet",
            "the load was simulated, or failed before",
            place=("relay", "late_max_ms"),
        ),
        Column(
            "relay_late",
            _FLAG,
            "",
            "Whether the relay was late beyond its bound",
            "the load failed before",
            place=("relay", "late"),
        ),
        Column("status", _TEXT, "", "`ok` or `failed`"),
        Column("error", _TEXT, "", "Why the load failed", "the load is ok"),
    ),
)
"""One row per load."""

LOAD_COLUMNS = tuple(column for column in LOADS.columns if not column.place)
"""Columns that stand in the ``load`` of a record."""

TREATMENT = tuple(c for c in LOADS.columns if c.key and c.key not in ("pages", "mode", "treatment", "seed"))
"""Columns in which two loads of one page may differ by the plan: path, transport, servers and client."""

DRAWN_BY = ("engine", "cookies", "loss", "jitter_ms", "duplicate", "queue", "middlebox")
"""Columns that say whether anything of a load is random."""


def is_drawn(load: Mapping[str, Any]) -> bool:
    """Whether repeats of a load differ by chance: always on a real kernel, else if the path draws lots.

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
    "compare": "treatments in short",
    "network": "a name for other keys",
    "program": "a flag only, whose version is kept with the client's name",
    "har": "what is kept of a load",
    "screenshots": "what is kept of a load",
    "keep": "what is kept of a load",
    "require_cookie": "only refuses the cookie state cookieless",
    "repeats": "how many loads are made",
    "until": "how many loads are made",
    "most_repeats": "how many loads are made",
    "jobs": "how many loads are made at a time",
}
"""Keys of a plan that no column holds, and why none is needed."""


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
        Column("end_ms", _MS, "ms", "Last byte of the response", "no complete response, or curl over QUIC"),
        Column("status", _COUNT, "", "HTTP status", "no response"),
        Column("mime", _TEXT, "", "MIME type of the response", "no response"),
        Column("body_bytes", _COUNT, "bytes", "Body as encoded", "no response"),
        Column("wire_bytes", _COUNT, "bytes", "Status line, header fields and body", "no response"),
        Column("initiator", _COUNT, "", "Index of its initiator", "the document, or not known"),
    ),
)
"""One row per request."""

CONNECTIONS = Table(
    "connections",
    f"One row per connection of TCP or QUIC, as the ledger saw it. Times are ms {_START}.",
    (
        _LOAD_ID,
        Column("connection", _COUNT, "", "Number of the connection in its load"),
        Column("origin", _TEXT, "", "Scheme, host and port"),
        Column("opened_ms", _MS, "ms", "First SYN, or first datagram", "neither was seen"),
        Column("syn_payload_bytes", _COUNT, "bytes", "Data in the first SYN"),
        Column("cookie", _TEXT, "", "TFO option of the first SYN: `none`, `requested` or `sent`"),
        Column("syn_data_acked", _FLAG, "", "The SYN-ACK acknowledged the data of the SYN"),
        Column("syn_retransmits", _COUNT, "", "SYNs sent again"),
        Column("bytes_down", _COUNT, "bytes", "IP bytes towards the client"),
        Column("bytes_up", _COUNT, "bytes", "IP bytes towards the server"),
        Column("closed_ms", _MS, "ms", "Last FIN or RST", "open when the load ended"),
        Column(
            "first_flight_bytes",
            _COUNT,
            "bytes",
            "Data that the client had sent when the server's first data reached it",
            _EARLIER,
            since=4,
        ),
        Column(
            "tls", _TEXT, "", "Version of TLS at the server: `1.2`, `1.3`", f"no TLS, or {_EARLIER}", since=4
        ),
        Column("resumed", _FLAG, "", "The server resumed a session", f"no TLS, or {_EARLIER}", since=4),
        Column(
            "early_data",
            _TEXT,
            "",
            "Early data at the server: `none`, `accepted` or `rejected`; `sent` if only the ledger saw it",
            _EARLIER,
            since=4,
        ),
        Column("early_data_bytes", _COUNT, "bytes", "Early data in the ledger", _EARLIER, since=4),
        Column("protocol", _TEXT, "", "`tcp`, or `udp`, which carries QUIC", since=5),
    ),
)
"""One row per connection."""

TABLES = (LOADS, REQUESTS, CONNECTIONS)
"""All results tables."""
