"""Loads into cell pairs: the `tcp` and `tfo` loads that differ in nothing else, matched by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firstflight.results import LoadRecord
from firstflight.results.schema import is_drawn

MODES = ("tcp", "tfo")
"""The two modes that are compared: without and with the treatment."""


class CellKey(NamedTuple):
    """What the loads of a cell pair have in common: page and `firstflight.results.schema.TREATMENT`.

    Rates are null where the path is unlimited; what comes after the engine, where the journal does not say.
    """

    page: str
    rtt_ms: float
    down_mbps: float | None
    up_mbps: float | None
    loss: float
    topology: str
    client: str
    engine: str
    loss_burst: float | None = None
    loss_in_burst: float | None = None
    jitter_ms: float | None = None
    reorder: bool | None = None
    duplicate: float | None = None
    down_trace: str | None = None
    up_trace: str | None = None
    queue: str | None = None
    ecn: bool | None = None
    middlebox: str | None = None
    initial_window: int | None = None
    congestion_control: str | None = None
    scheme: str | None = None
    http: str | None = None
    post_quantum: bool | None = None
    keep_alive: bool | None = None
    origin_rtt: str | None = None
    lookups: bool | None = None
    server_time: bool | None = None
    processing: float | None = None
    determinism: bool | None = None
    browser: str | None = None
    what_if: str | None = None


@dataclass(frozen=True)
class CellPair:
    """The loads of one page on one path by one client, in both modes.

    Args:
        key: What they have in common.
        cookies: Cookie state of the `tfo` loads; of the `tcp` loads where there is none.
        ok: Mode -> block -> the load that ended ok.
        failed: Mode -> the loads that did not.
    """

    key: CellKey
    cookies: str
    ok: dict[str, dict[int, LoadRecord]] = field(default_factory=lambda: {mode: {} for mode in MODES})
    failed: dict[str, list[LoadRecord]] = field(default_factory=lambda: {mode: [] for mode in MODES})

    @property
    def blocks(self) -> list[int]:
        """Blocks in which both loads ended ok, ascending."""
        return sorted(self.ok["tcp"].keys() & self.ok["tfo"].keys())

    @property
    def is_exact(self) -> bool:
        """Whether nothing in the loads was drawn by lot, so that there is nothing to infer."""
        loads = [record["load"] for mode in MODES for record in self.loads(mode)]
        return bool(loads) and not any(map(is_drawn, loads))

    @property
    def url(self) -> str | None:
        """URL of the page: the first request of any load."""
        requests = (r for mode in MODES for record in self.loads(mode) for r in record["requests"])
        return next((str(request["url"]) for request in requests if request["index"] == 0), None)

    def loads(self, mode: str) -> list[LoadRecord]:
        """The loads that count: the paired ones, or all ok ones where no block has both. In block order."""
        by_block = self.ok[mode]
        return [by_block[block] for block in self.blocks or sorted(by_block)]

    def records(self) -> list[LoadRecord]:
        """All loads, paired or not, ok or failed."""
        ok = (record for by_block in self.ok.values() for record in by_block.values())
        return [*ok, *(record for failed in self.failed.values() for record in failed)]

    def plt_ms(self, mode: str) -> list[float]:
        """Page load times of `loads`, ms."""
        return [record["load"]["plt_ms"] for record in self.loads(mode)]

    @property
    def treatment(self) -> dict[str, Any]:
        """All that decides its numbers, with its URL: what `words.caption` takes."""
        return {**self.key._asdict(), "cookies": self.cookies, "url": self.url}

    @property
    def name(self) -> str:
        """The cell in a message: page and RTT."""
        return f"{self.key.page} {self.key.rtt_ms:g} ms"


def cell_pairs(records: Iterable[LoadRecord]) -> list[CellPair]:
    """Group loads into cell pairs, ordered by page, RTT and the rest of the key.

    The cookie state belongs to the `tfo` loads: each state makes a pair of its own, and the `tcp` loads,
    which know no cookies, stand beside those of their block, or beside every one of them.
    """
    records = list(records)
    states = _cookie_states(records, lambda load: load["block"]), _cookie_states(records, lambda _: None)
    pairs: dict[tuple[CellKey, str], CellPair] = {}
    for record in records:
        load = record["load"]
        key = CellKey(*(load[name] for name in CellKey._fields))
        beside = states[0].get((key, load["block"])) or states[1].get((key, None)) or [load["cookies"]]
        for cookies in [load["cookies"]] if load["mode"] == "tfo" else beside:
            pair = pairs.setdefault((key, cookies), CellPair(key, cookies))
            _add(pair, record)
    return sorted(pairs.values(), key=_order)


def _cookie_states(
    records: list[LoadRecord], part: Callable[[dict[str, Any]], object]
) -> dict[tuple[CellKey, object], list[str]]:
    """The cookie states of the `tfo` loads, by what they have in common and the part of the run."""
    states: dict[tuple[CellKey, object], list[str]] = {}
    for load in (record["load"] for record in records if record["load"]["mode"] == "tfo"):
        found = states.setdefault((CellKey(*(load[name] for name in CellKey._fields)), part(load)), [])
        if load["cookies"] not in found:
            found.append(load["cookies"])
    return states


def _add(pair: CellPair, record: LoadRecord) -> None:
    load = record["load"]
    if load["status"] == "ok":
        pair.ok.setdefault(load["mode"], {})[load["block"]] = record
    else:
        pair.failed.setdefault(load["mode"], []).append(record)


def _order(pair: CellPair) -> tuple[Any, ...]:
    key = pair.key
    rates = (math.inf if rate is None else rate for rate in (key.down_mbps, key.up_mbps))
    return (key.page, key.rtt_ms, *rates, key.loss, key.topology, key.client, key.engine, pair.cookies)
