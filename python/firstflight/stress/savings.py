"""What Fast Open saves a server: processor time per request, pair by pair.

A pair are two measurements that differ only in the mode and were made one after the other, so that a machine
that is slower for a while is so for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict, cast

from firstflight.analysis.records import Estimate
from firstflight.analysis.statistics import median
from firstflight.model.treatment import FAST_OPEN, PLAIN
from firstflight.stress.rows import Row


class Saving(TypedDict):
    """What Fast Open saves at one rate, or at all."""

    server: str
    rate: float | None
    pairs: int
    saved: Estimate


_PAIR = ("server", "qlen", "backlog", "syn_cookies", "rate", "repeat")


def savings(rows: Sequence[Row]) -> list[Saving]:
    """The share of processor time per request that Fast Open saves, by server: at each rate, and at all.

    Args:
        rows: As `firstflight.stress` makes them. Only those without a flood count, and of these only pairs in
            which both modes kept up.

    Returns:
        Rows of `server`, `rate` (`None`: all rates), `pairs`, and `saved` with `median`, `low` and `high`, as
        fractions; negative where Fast Open costs.
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
    """By server and rate."""
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
