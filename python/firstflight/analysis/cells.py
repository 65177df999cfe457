"""Groups loads into cell pairs: those of the baseline and of one treatment on a page and path, by block."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple, cast

from firstflight.analysis.records import CellSetting, Effect, Side
from firstflight.analysis.statistics import improvement
from firstflight.model.treatment import FAST_OPEN, MODES, PLAIN, phrase
from firstflight.results import LoadRecord
from firstflight.results.records import Factors, numeric, plt_ms
from firstflight.results.schema import TREATMENT, is_drawn

SIDES: tuple[Side, Side] = ("baseline", "treatment")
"""The two sides of a comparison: the baseline and the treatment."""


_FIRST = ("rtt_ms", "down_mbps", "up_mbps", "loss", "topology", "client", "engine")
_COLUMNS = (*_FIRST, *(c.name for c in TREATMENT if c.name not in (*_FIRST, "cookies")))


@dataclass(frozen=True)
class CellKey:
    """What all loads of a treatment on one path share: the page, and the columns in which plans may differ.

    Args:
        page: Name of the page.
        values: The columns of `firstflight.results.schema.TREATMENT`, except the cookie state.
    """

    page: str
    values: tuple[object, ...]

    @classmethod
    def of(cls, load: Mapping[str, Any]) -> CellKey:
        """The key of a row of the loads table."""
        return cls(load["page"], tuple(load[name] for name in _COLUMNS))

    @property
    def factors(self) -> Factors:
        """The values by column, without `cookies`."""
        return cast(Factors, dict(zip(_COLUMNS, self.values, strict=True)))

    @property
    def rtt_ms(self) -> float:
        """RTT of the path, ms."""
        return self.factors["rtt_ms"]

    @property
    def client(self) -> str:
        """The client that loaded the page."""
        return self.factors["client"]

    @property
    def engine(self) -> str:
        """`emulate` or `simulate`."""
        return self.factors["engine"]


_PLACE = ("page", "rtt_ms", "down_mbps", "up_mbps", "topology", "engine", "down_trace", "up_trace")
"""Columns that no treatment changes: all loads of a block share them."""


@dataclass(frozen=True)
class CellPair:
    """The loads of one page on one path under the baseline and under one treatment.

    Args:
        key: Columns that all loads of the treatment share; those of the baseline if there is no treatment.
        cookies: Cookie state of the loads.
        baseline: Name of the baseline.
        treatment: Name of the treatment; empty if there is only the baseline.
        ok: Loads that ended ok, by side (`baseline`, `treatment`) and block.
        failed: Failed loads, by side.
    """

    key: CellKey
    cookies: str
    baseline: str = PLAIN
    treatment: str = ""
    ok: dict[str, dict[int, LoadRecord]] = field(default_factory=lambda: {side: {} for side in SIDES})
    failed: dict[str, list[LoadRecord]] = field(default_factory=lambda: {side: [] for side in SIDES})

    @property
    def page(self) -> str:
        """Name of the page."""
        return self.key.page

    @property
    def rtt_ms(self) -> float:
        """RTT of the path, ms."""
        return self.key.rtt_ms

    @property
    def names(self) -> dict[str, str]:
        """Names of the two treatments, by side."""
        return dict(zip(SIDES, (self.baseline, self.treatment), strict=True))

    @property
    def phrases(self) -> dict[str, str]:
        """Phrase for each side in a sentence: ``without TFO``, ``with initial_window=32``."""
        return {side: phrase(name) for side, name in self.names.items()}

    @property
    def blocks(self) -> list[int]:
        """Numbers of the blocks in which both loads ended ok, ascending."""
        return sorted(self.ok["baseline"].keys() & self.ok["treatment"].keys())

    @property
    def is_exact(self) -> bool:
        """Whether nothing in the loads was random, so that no statistics are needed."""
        loads = [record["load"] for side in SIDES for record in self.loads(side)]
        return bool(loads) and not any(map(is_drawn, loads))

    @property
    def url(self) -> str | None:
        """URL of the page, from the first request of any load; `None` if there is none."""
        requests = (r for side in SIDES for record in self.loads(side) for r in record["requests"])
        return next((str(request["url"]) for request in requests if request["index"] == 0), None)

    @property
    def differs(self) -> dict[str, tuple[Any, Any]]:
        """The columns of the loads table in which the two sides differ, with the value of each.

        The cookie state does not count on a side whose connections carry nothing in their SYN.
        """
        loads = [next((r["load"] for r in self._of(side)), None) for side in SIDES]
        if None in loads:
            return {}
        columns: list[Mapping[str, Any]] = [load for load in loads if load]
        pairs = {name: tuple(load[name] for load in columns) for name in _DIFFER}
        if not all(map(_uses_cookies, columns)):
            pairs.pop("cookies")
        return {name: (one, other) for name, (one, other) in pairs.items() if one != other}

    def loads(self, side: Side) -> list[LoadRecord]:
        """The loads that count, in block order: the paired ones, or all ok loads if none is paired."""
        by_block = self.ok[side]
        return [by_block[block] for block in self.blocks or sorted(by_block)]

    @property
    def paired(self) -> list[tuple[LoadRecord, LoadRecord]]:
        """Load of the baseline and load of the treatment, for each block in `blocks`."""
        ok = (self.ok["baseline"], self.ok["treatment"])
        return [(ok[0][block], ok[1][block]) for block in self.blocks]

    @property
    def improvement(self) -> Effect:
        """1 - PLT_treatment / PLT_baseline of a typical block, with its interval: `point`, `low`, `high`."""
        found = improvement(*(self.plt_ms(side) for side in SIDES)) if self.blocks else improvement([], [])
        return {**found, "low": None, "high": None} if self.is_exact else found

    def mean(self, side: Side, column: str) -> float:
        """Mean of a column of the loads table over `loads`; NaN if no load has a value.

        Args:
            side: `baseline` or `treatment`.
            column: Such as `plt_ms`, `connections` or `retransmits`.
        """
        found = (numeric(record["load"], column) for record in self.loads(side))
        values = [float(value) for value in found if value is not None]
        return fmean(values) if values else math.nan

    def records(self) -> list[LoadRecord]:
        """All loads, paired or not, ok or failed."""
        ok = (record for by_block in self.ok.values() for record in by_block.values())
        return [*ok, *(record for failed in self.failed.values() for record in failed)]

    def plt_ms(self, side: Side) -> list[float]:
        """Page load times of `loads`, ms."""
        return [plt_ms(record) for record in self.loads(side)]

    @property
    def setting(self) -> CellSetting:
        """Everything that determines the pair's numbers, with its URL, as `words.caption` takes it."""
        known = {"page": self.page, **self.key.factors, "cookies": self.cookies, "url": self.url}
        differs = {name: list(both) for name, both in self.differs.items()}
        return cast(CellSetting, {**known, **self.names, "differs": differs})

    @property
    def name(self) -> str:
        """Name of the pair in messages: page, RTT, and the treatment's name unless that is `tfo`."""
        return cell_name({"page": self.key.page, "rtt_ms": self.key.rtt_ms, **self.names})

    def _of(self, side: Side) -> Iterator[LoadRecord]:
        yield from self.ok[side].values()
        yield from self.failed[side]


_DIFFER = ("version", "mode", "cookies", *_COLUMNS)


class _Pair(NamedTuple):
    """What identifies a cell pair."""

    key: CellKey
    cookies: str
    baseline: str
    treatment: str


def cell_name(cell: Mapping[str, Any]) -> str:
    """The name of a cell of a summary, or of a cell pair, in a message."""
    name = f"{cell['page']} {cell['rtt_ms']:g} ms"
    return name if cell["treatment"] in ("", FAST_OPEN) else f"{name} {cell['treatment']}"


def cell_pairs(records: Iterable[LoadRecord]) -> list[CellPair]:
    """Groups loads into cell pairs, ordered by page, RTT, the rest of the key, and the treatment.

    Each load of a treatment is paired with the baseline's load of the same block. Baseline loads in a block
    without other loads count for every treatment of their page and path.
    """
    records = list(records)
    in_block, anywhere = _treated(records)
    pairs: dict[_Pair, CellPair] = {}
    for record in records:
        for found in _pairs_of(record["load"], in_block, anywhere):
            side: Side = "treatment" if record["load"]["treatment"] == found.treatment else "baseline"
            _add(pairs.setdefault(found, CellPair(*found)), side, record)
    return sorted(pairs.values(), key=_order)


_Places = dict[tuple[object, ...], dict[_Pair, None]]
"""Cell pairs by the values that their loads share."""


def _treated(records: list[LoadRecord]) -> tuple[_Places, _Places]:
    """The cell pairs of the treatments: by place and block, and by place alone."""
    in_block: _Places = {}
    anywhere: _Places = {}
    for load in (record["load"] for record in records):
        if load["treatment"] != load["baseline"]:
            found = _Pair(CellKey.of(load), load["cookies"], load["baseline"], load["treatment"])
            in_block.setdefault((*_place(load), load["block"]), {})[found] = None
            anywhere.setdefault(_place(load), {})[found] = None
    return in_block, anywhere


def _pairs_of(load: Mapping[str, Any], in_block: _Places, anywhere: _Places) -> list[_Pair]:
    """The cell pairs that a load belongs to."""
    own = _Pair(CellKey.of(load), load["cookies"], load["baseline"], load["treatment"])
    if load["treatment"] != load["baseline"]:
        return [own]
    beside = in_block.get((*_place(load), load["block"])) or anywhere.get(_place(load)) or {}
    found: list[_Pair] = []
    for name in dict.fromkeys(pair.treatment for pair in beside):
        of_name = [pair for pair in beside if pair.treatment == name]
        # A treatment may have several keys (several runs put together): prefer the one equal to the
        # baseline's.
        found += [pair for pair in of_name if pair.key == own.key] or of_name
    return found or [own._replace(treatment="")]


def _place(load: Mapping[str, Any]) -> tuple[object, ...]:
    return (*(load[name] for name in _PLACE), load["baseline"])


def _uses_cookies(load: Mapping[str, Any]) -> bool:
    return load["mode"] not in MODES or MODES[load["mode"]].fast_open


def _add(pair: CellPair, side: Side, record: LoadRecord) -> None:
    load = record["load"]
    if load["status"] == "ok":
        pair.ok[side][load["block"]] = record
    else:
        pair.failed[side].append(record)


def _order(pair: CellPair) -> tuple[Any, ...]:
    path = pair.key.factors
    rates = (math.inf if rate is None else rate for rate in (path["down_mbps"], path["up_mbps"]))
    place = (pair.page, pair.rtt_ms, *rates, path["loss"], path["topology"], path["client"], path["engine"])
    return (*place, pair.cookies, *(_natural(name) for name in (pair.treatment, pair.baseline)))


def _natural(name: str) -> list[tuple[float, str]]:
    """A sort key that compares numbers in names: ``initial_window=4`` before ``initial_window=32``."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    return [(float(part), "") if place % 2 else (-1.0, part) for place, part in enumerate(parts)]
