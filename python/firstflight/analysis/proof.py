"""The proof of a cell pair: did the `tfo` loads use TFO, and the `tcp` loads not?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from firstflight.analysis.cells import CellPair
from firstflight.plural import plural
from firstflight.results import LoadRecord

ALWAYS_FAST = {"warm", "backup", "cookieless"}
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

    ``ok`` needs every load's ledger, TCP_INFO and counters to agree, no TFO in a `tcp` load, and, where every
    SYN's data is taken, accepted SYN data on every connection of the `tfo` loads. Excused are connections
    whose SYN was sent again, with whose segments the path interfered, or that were never answered.
    """
    columns = ("connections", "tfo_offered", "tfo_accepted")
    connections, offered, accepted = (_total(pair, "tfo", column) for column in columns)
    tcp_offered = _total(pair, "tcp", "tfo_offered")
    agreed = all(record["proof"].get("ok") is True for mode in ("tcp", "tfo") for record in pair.loads(mode))
    interfered = _interfered(pair)
    is_always_fast = pair.cookies in ALWAYS_FAST
    broken = sum(map(_without_tfo, pair.loads("tfo"))) if is_always_fast else 0
    return {
        "tfo_connections": connections,
        "tfo_offered": offered,
        "tfo_accepted": accepted,
        "tcp_offered": tcp_offered,
        "ok": agreed and broken == 0 and tcp_offered == 0,
        "text": _text(pair, connections, offered, accepted, tcp_offered) + _met(interfered) + _broken(broken),
    }


def _total(pair: CellPair, mode: str, column: str) -> int:
    return sum(record["load"][column] or 0 for record in pair.loads(mode))


def _interfered(pair: CellPair) -> int:
    """Connections of the `tfo` loads to whose segments the path did something on purpose."""
    ledgers = (record["proof"].get("ledger", {}) for record in pair.loads("tfo"))
    return sum(ledger.get("interfered", 0) for ledger in ledgers)


def _met(interfered: int) -> str:
    return f"; the path interfered with {interfered}" if interfered else ""


def _without_tfo(record: LoadRecord) -> int:
    """Connections of a load that had no reason to go without TFO, and did.

    A load whose rows were not kept has counts only: as many as segments were sent again are excused.
    """
    load, rows = record["load"], record["connections"]
    without = int(load["connections"] or 0) - int(load["tfo_accepted"] or 0)
    if rows:
        excused = sum(map(_is_excused, rows))
    else:
        interfered = int(record["proof"].get("ledger", {}).get("interfered", 0))
        excused = interfered + int(load["retransmits"] or 0)
    return max(0, without - excused)


def _is_excused(row: Mapping[str, Any]) -> bool:
    """Whether a connection went without TFO because of the path."""
    took_part = row["syn_retransmits"] or row.get("interfered") or not row["bytes_down"]
    return bool(took_part) and not row["syn_data_acked"]


def _broken(count: int) -> str:
    return f"; {plural(count, 'connection')} went without TFO for no reason" if count else ""


def _text(pair: CellPair, connections: int, offered: int, accepted: int, tcp_offered: int) -> str:
    if not pair.loads("tfo"):
        return "no tfo load"
    text = f"{offered} of {connections} connections carried data in the SYN"
    if accepted != offered:
        text += f", {accepted} accepted"
    if tcp_offered:
        text += f"; so did {tcp_offered} of the tcp loads"
    return text
