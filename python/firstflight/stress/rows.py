"""Measurements of a server under load, in the form of `stress.csv` and `--json`, and what Fast Open saves.

A pair is two consecutive measurements that differ only in the mode. If the machine is slower for a while, it
is so for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict, cast

from firstflight.analysis.records import Estimate
from firstflight.analysis.statistics import median
from firstflight.model.treatment import FAST_OPEN, MODES, PLAIN
from firstflight.stress.plan import Cell, StressPlan


class Row(TypedDict):
    """One measurement: its cell, what clients, server and wire show, and derived values."""

    server: str
    flood: str
    qlen: int
    backlog: int
    syn_cookies: str
    rate: float
    repeat: int
    mode: str
    flood_rate: float
    rtt_ms: float
    size_bytes: int
    requests: int
    answered: int
    timed_out: int
    broken: int
    wrong: int
    unsent: int
    success: float
    min_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    cpu_us: float
    server_cpu_us: float
    receive_cpu_us: float
    flood_cpu_share: float
    server_cpu_share: float
    server_busy: float
    clients_busy: float
    server_stolen: float
    clients_stolen: float
    own_core: bool
    syns: int
    syns_with_data: int
    syn_data_acked: int
    syn_data_not_acked: int
    syns_sent_again: int
    packets_up: int
    packets_down: int
    bytes_up: int
    bytes_down: int
    fast_open_passive: int
    fast_open_refused: int
    pending_limit_hits: int
    accept_queue_overflows: int
    dropped_syns: int
    syn_cookies_sent: int
    syn_cookies_received: int
    server_timeouts: int
    fast_open_passive_in_all: int
    fast_open_refused_in_all: int
    pending_limit_hits_in_all: int
    accept_queue_overflows_in_all: int
    dropped_syns_in_all: int
    syn_cookies_sent_in_all: int
    syn_cookies_received_in_all: int
    server_timeouts_in_all: int
    flood_syns: int
    victims_packets: int
    victims_bytes: int
    arrivals_late_ms: float
    wire_late_ms: float
    proof: bool
    disagreements: str
    keeps_up: bool
    limit: str


HEADROOM_MS = 50.0
"""By how much the 99th percentile may exceed its round trips while a server still counts as keeping up."""

BUSY = 0.95
"""A processor that is busier than this is saturated."""

_CELL = ("server", "flood", "qlen", "backlog", "syn_cookies", "rate", "mode")
_PERCENTILES = ("min", "p50", "p90", "p99", "p999", "max")
_COUNTERS = {
    "fast_open_passive": "TCPFastOpenPassive",
    "fast_open_refused": "TCPFastOpenPassiveFail",
    "pending_limit_hits": "TCPFastOpenListenOverflow",
    "accept_queue_overflows": "ListenOverflows",
    "dropped_syns": "ListenDrops",
    "syn_cookies_sent": "SyncookiesSent",
    "syn_cookies_received": "SyncookiesRecv",
    "server_timeouts": "TCPTimeouts",
}
"""Columns that are counters of the server's kernel; those with `_in_all` include the warm-up."""


def row(plan: StressPlan, cell: Cell, record: Mapping[str, Any]) -> Row:
    """The row for a record of the laboratory."""
    found = {
        **asdict(cell),
        "flood_rate": 0.0 if cell.flood == "none" else plan.flood_rate,
        "rtt_ms": plan.rtt,
        "size_bytes": plan.size,
        **{name: record[name] for name in ("requests", "answered", "timed_out", "broken", "wrong", "unsent")},
        "success": record["answered"] / record["requests"],
        **{f"{name}_ms": record["latency_ms"][name] for name in _PERCENTILES},
        **_processors(record),
        **_wire(record),
        **{column: record["server_kernel"][name] for column, name in _COUNTERS.items()},
        **{f"{column}_in_all": record["server_kernel_in_all"][name] for column, name in _COUNTERS.items()},
        "flood_syns": record["flood_syns"],
        "victims_packets": record["down"]["strangers_packets"],
        "victims_bytes": record["down"]["strangers_bytes"],
        "arrivals_late_ms": record["arrivals"]["late_p99_ms"],
        "wire_late_ms": max(way["late_p99_ms"] for way in record["wire"]),
        "proof": record["proof"]["ok"],
        "disagreements": "; ".join(record["proof"]["disagreements"]),
    }
    measured = cast(Row, found)
    return {**measured, "keeps_up": keeps_up(measured), "limit": _limit(measured)}


def keeps_up(found: Row) -> bool:
    """Whether 99 % of the clients were served about as fast as by an idle server."""
    round_trips = 1 if MODES[found["mode"]].fast_open else 2
    bound_ms = round_trips * found["rtt_ms"] + HEADROOM_MS
    return found["p99_ms"] is not None and found["p99_ms"] <= bound_ms


def by_cell(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The repeats of each cell together. Cells are ordered by rate, with the modes of a rate side by side."""
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for found in rows:
        cells.setdefault(tuple(found[key] for key in _CELL), []).append(found)
    firsts = {key: [found[key] for found in rows] for key in _CELL[:2]}

    def order(cell: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*(firsts[key].index(value) for key, value in zip(firsts, cell, strict=False)), *cell[2:])

    return [cells[cell] for cell in sorted(cells, key=order)]


def mostly(cell: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether the column is true in more than half of the repeats."""
    return 2 * sum(bool(found[column]) for found in cell) > len(cell)


def middle_latency(latencies: Sequence[float | None]) -> float | None:
    """The median over repeats. `None` means that there was no response; it sorts after every number."""
    known = sorted(latency for latency in latencies if latency is not None)
    middle = len(latencies) // 2
    return known[middle] if middle < len(known) else None


def _limit(found: Row) -> str:
    """What is saturated: the server's processor, the clients', both or neither."""
    busy = (("server", found["server_busy"]), ("clients", found["clients_busy"]))
    return " and ".join(name for name, share in busy if share >= BUSY) or "none"


def _processors(record: Mapping[str, Any]) -> dict[str, object]:
    """Processor time per answered request, us, and the load of both processors while clients came, 0 to 1."""
    answered = max(record["answered"], 1)
    program, receiving = (1000 * record[name] / answered for name in ("server_cpu_ms", "receive_cpu_ms"))
    elapsed_ms, arriving_ms = record["elapsed_ms"], max(record["arriving_ms"], 1.0)
    return {
        "cpu_us": program + receiving,
        "server_cpu_us": program,
        "receive_cpu_us": receiving,
        "flood_cpu_share": record["flood_cpu_ms"] / elapsed_ms,
        "server_cpu_share": (record["server_cpu_ms"] + record["receive_cpu_ms"]) / elapsed_ms,
        **{f"{who}_busy": record[f"{who}_used_ms"] / arriving_ms for who in ("server", "clients")},
        **{f"{who}_stolen": record[f"{who}_stolen_ms"] / arriving_ms for who in ("server", "clients")},
        "own_core": record["own_core"],
    }


def _wire(record: Mapping[str, Any]) -> dict[str, object]:
    """SYNs and packets of the clients' connections, and what happened to the data in their SYNs."""
    up, down, sockets = record["up"], record["down"], record["sockets"]
    return {
        "syns": up["syns"],
        "syns_with_data": up["syns_with_data"],
        "syn_data_acked": sockets["syn_data_acked"],
        "syn_data_not_acked": sockets["not_acked"],
        "syns_sent_again": sockets["syn_again"],
        "packets_up": up["packets"],
        "packets_down": down["packets"],
        "bytes_up": up["bytes"],
        "bytes_down": down["bytes"],
    }


class Saving(TypedDict):
    """What Fast Open saves at one rate, or over all rates."""

    server: str
    rate: float | None
    pairs: int
    saved: Estimate


_PAIR = ("server", "qlen", "backlog", "syn_cookies", "rate", "repeat")


def savings(rows: Sequence[Row]) -> list[Saving]:
    """The share of processor time per request that Fast Open saves, by server, at each rate and over all.

    Args:
        rows: Rows of measurements. Only pairs without a flood in which both modes kept up count.

    Returns:
        Rows of `server`, `rate` (`None`: all rates), `pairs`, and `saved` with `median`, `low` and `high`, as
        fractions; negative if Fast Open costs time.
    """
    found: list[Saving] = []
    for server, saved in _saved(rows).items():
        for rate, shares in [
            *sorted(saved.items()),
            (None, [share for some in saved.values() for share in some]),
        ]:
            if shares:
                found.append({"server": server, "rate": rate, "pairs": len(shares), "saved": median(shares)})
    return found


def _saved(rows: Sequence[Row]) -> dict[str, dict[float, list[float]]]:
    """What Fast Open saves in each pair, by server and rate."""
    saved: dict[str, dict[float, list[float]]] = {}
    for tcp, tfo in _pairs(rows):
        share = 1 - tfo["cpu_us"] / tcp["cpu_us"]
        saved.setdefault(tcp["server"], {}).setdefault(tcp["rate"], []).append(share)
    return saved


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    pairs: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        if row["flood"] == "none" and row["keeps_up"]:
            pairs.setdefault(tuple(cast(Mapping[str, object], row)[key] for key in _PAIR), {})[
                row["mode"]
            ] = row
    return ((pair[PLAIN], pair[FAST_OPEN]) for pair in pairs.values() if {PLAIN, FAST_OPEN} <= pair.keys())
