"""The proof of a cell pair: did the `tfo` loads use TFO, and the `tcp` loads not?"""

from __future__ import annotations

from typing import TypedDict

from firstflight.analysis.cells import CellPair

_ALWAYS_FAST = {"warm", "backup", "cookieless"}
"""Cookie states in which every SYN's data is taken."""


class Proof(TypedDict):
    """Connections of all loads that count, and whether every load's own proof held."""

    tfo_connections: int
    tfo_offered: int
    tfo_accepted: int
    tcp_offered: int
    ok: bool
    text: str


def prove(pair: CellPair) -> Proof:
    """Add up the proofs of a pair's loads.

    ``ok`` needs every load's ledger, TCP_INFO and counters to agree, no TFO in a `tcp` load, and, where
    every SYN's data is taken and nothing interfered, some accepted SYN data in the `tfo` loads.
    """
    columns = ("connections", "tfo_offered", "tfo_accepted")
    connections, offered, accepted = (_total(pair, "tfo", column) for column in columns)
    tcp_offered = _total(pair, "tcp", "tfo_offered")
    agreed = all(record["proof"].get("ok") is True for mode in ("tcp", "tfo") for record in pair.loads(mode))
    interfered = _interfered(pair)
    used = accepted > 0 or connections == 0 or pair.cookies not in _ALWAYS_FAST or interfered > 0
    return {
        "tfo_connections": connections,
        "tfo_offered": offered,
        "tfo_accepted": accepted,
        "tcp_offered": tcp_offered,
        "ok": agreed and used and tcp_offered == 0,
        "text": _text(pair, connections, offered, accepted, tcp_offered) + _met(interfered),
    }


def _total(pair: CellPair, mode: str, column: str) -> int:
    return sum(record["load"][column] or 0 for record in pair.loads(mode))


def _interfered(pair: CellPair) -> int:
    """Connections of the `tfo` loads to whose segments the path did something on purpose."""
    ledgers = (record["proof"].get("ledger", {}) for record in pair.loads("tfo"))
    return sum(ledger.get("interfered", 0) for ledger in ledgers)


def _met(interfered: int) -> str:
    return f"; the path interfered with {interfered}" if interfered else ""


def _text(pair: CellPair, connections: int, offered: int, accepted: int, tcp_offered: int) -> str:
    if not pair.loads("tfo"):
        return "no tfo load"
    text = f"{offered} of {connections} connections carried data in the SYN"
    if accepted != offered:
        text += f", {accepted} accepted"
    if tcp_offered:
        text += f"; so did {tcp_offered} of the tcp loads"
    return text
