"""The proof of a cell pair: whether the loads of both sides did on the wire what their treatments promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firstflight.analysis.cells import SIDES, CellPair
from firstflight.analysis.records import CellProof, Seen, Side
from firstflight.model.treatment import MODES
from firstflight.results import LoadRecord
from firstflight.text import plural

ALWAYS_FAST = {"warm", "backup", "cookieless"}
"""Cookie states in which servers accept the data of every SYN."""


def prove(pair: CellPair) -> CellProof:
    """Combines the proofs of a pair's loads.

    ``ok`` needs three things. Every load's own proof holds: ledger, TCP_INFO and counters agree, and it kept
    what its treatment promises. In a mode without Fast Open no SYN carries data. In a mode with Fast Open,
    and a cookie state in which servers accept the data of every SYN, every connection has accepted SYN data.
    A connection is excused if its SYN was retransmitted, the path interfered with its segments, or it got no
    response.
    """
    seen = {side: _seen(pair, side) for side in SIDES}
    agreed = all(record["proof"].get("ok") is True for side in SIDES for record in pair.loads(side))
    broken = sum(_without_tfo(record) for side in SIDES for record in pair.loads(side))
    return {
        "baseline": seen["baseline"],
        "treatment": seen["treatment"],
        "ok": agreed and broken == 0 and not any(side["leaked"] for side in seen.values()),
        "text": "; ".join(_texts(pair, seen, broken)),
    }


def uses_fast_open(pair: CellPair, side: Side) -> bool:
    """Whether any load of a side has a mode with Fast Open."""
    return any(_is_fast_open(record["load"]) for record in pair.loads(side))


def _is_fast_open(load: Mapping[str, Any]) -> bool:
    return MODES[load["mode"]].fast_open if load["mode"] in MODES else True


def _seen(pair: CellPair, side: Side) -> Seen:
    loads = [record["load"] for record in pair.loads(side)]
    connections, offered, accepted = (
        sum(load[column] or 0 for load in loads) for column in ("connections", "tfo_offered", "tfo_accepted")
    )
    leaked = sum(load["tfo_offered"] or 0 for load in loads if not _is_fast_open(load))
    fates = [row.get("early_data") for record in pair.loads(side) for row in record["connections"]]
    return {
        "connections": connections,
        "offered": offered,
        "accepted": accepted,
        "leaked": leaked,
        "early": sum(fate not in ("none", None) for fate in fates),
        "early_accepted": fates.count("accepted"),
    }


def _without_tfo(record: LoadRecord) -> int:
    """Connections of a load that lacked the Fast Open of its mode without an excuse.

    Where the rows were not kept, interfered connections and retransmitted segments are subtracted as excused.
    """
    load, rows = record["load"], record["connections"]
    if not _is_fast_open(load) or load["cookies"] not in ALWAYS_FAST:
        return 0
    without = int(load["connections"] or 0) - int(load["tfo_accepted"] or 0)
    if rows:
        excused = sum(map(_is_excused, rows))
    else:
        interfered = int(record["proof"].get("ledger", {}).get("interfered", 0))
        excused = interfered + int(load["retransmits"] or 0)
    return max(0, without - excused)


def _is_excused(row: Mapping[str, Any]) -> bool:
    """Whether the path explains that a connection had no TFO."""
    took_part = row["syn_retransmits"] or row.get("interfered") or not row["bytes_down"]
    return bool(took_part) and not row["syn_data_acked"]


def _texts(pair: CellPair, seen: Mapping[Side, Seen], broken: int) -> list[str]:
    fast = [side for side in SIDES if uses_fast_open(pair, side)]
    texts = [_carried(seen[side]) + (f" {pair.phrases[side]}" if len(fast) > 1 else "") for side in fast]
    texts += [
        f"{quic} of {seen[side]['connections']} connections spoke QUIC {pair.phrases[side]}"
        for side in SIDES
        if (quic := _over_quic(pair, side))
    ]
    texts += [
        _sent_early(seen[side]) + (f" {pair.phrases[side]}" if len(fast) > 1 else "")
        for side in SIDES
        if seen[side]["early"]
    ]
    if not texts and any(pair.loads(side) for side in SIDES):
        connections = sum(seen[side]["connections"] for side in SIDES)
        leaked = sum(side["leaked"] for side in seen.values())
        texts = [f"{leaked or 'none'} of {connections} connections carried data in the SYN"]
    if not pair.loads("treatment"):
        texts = [f"no {pair.treatment} load" if pair.treatment else "nothing to compare with"]
    texts += [
        f"so did {seen[side]['leaked']} of the {pair.names[side]} loads"
        for side in SIDES
        if seen[side]["leaked"] and fast
    ]
    interfered = sum(
        record["proof"].get("ledger", {}).get("interfered", 0) for side in fast for record in pair.loads(side)
    )
    if interfered:
        texts.append(f"the path interfered with {interfered}")
    if broken:
        texts.append(f"{plural(broken, 'connection')} went without TFO for no reason")
    return texts


def _over_quic(pair: CellPair, side: Side) -> int:
    rows = (row for record in pair.loads(side) for row in record["connections"])
    return sum(row.get("protocol") == "udp" for row in rows)


def _sent_early(seen: Seen) -> str:
    text = f"{seen['early']} of {seen['connections']} connections sent early data"
    return text if seen["early_accepted"] == seen["early"] else f"{text}, {seen['early_accepted']} accepted"


def _carried(seen: Seen) -> str:
    text = f"{seen['offered']} of {seen['connections']} connections carried data in the SYN"
    return text if seen["accepted"] == seen["offered"] else f"{text}, {seen['accepted']} accepted"
