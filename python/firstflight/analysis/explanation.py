"""Why a page took as long as it did, per cell pair: critical paths of both modes, and what TFO could save.

Each mode is explained by the load whose PLT is nearest the median of its mode: a path belongs to one load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstflight.analysis.cells import MODES, CellPair
from firstflight.analysis.critical_path import CriticalPath, critical_path
from firstflight.analysis.critical_path_load import times
from firstflight.pages.model import Page
from firstflight.results import LoadRecord


@dataclass(frozen=True)
class ExplainedLoad:
    """A load with its critical path."""

    load_id: str
    path: CriticalPath


@dataclass(frozen=True)
class Explanation:
    """A cell pair explained.

    Attributes:
        pair: Which.
        page: The page as it was loaded.
        loads: Mode -> the load that stands for it; without a mode that no load of ended ok.
    """

    pair: CellPair
    page: Page
    loads: dict[str, ExplainedLoad]

    @property
    def could_save_ms(self) -> float | None:
        """The time that the `tcp` load's path waited for handshakes: what TFO could save at most."""
        return self.loads["tcp"].path.could_save_ms if "tcp" in self.loads else None

    @property
    def saved_ms(self) -> float | None:
        """The difference of the medians, signed; positive: TFO is faster."""
        tcp_ms, tfo_ms = (self.pair.plt_ms(mode) for mode in MODES)
        return float(np.median(tcp_ms) - np.median(tfo_ms)) if tcp_ms and tfo_ms else None

    def to_json(self) -> dict[str, Any]:
        """The explanation as data; `docs/explain.md` names every key."""
        return {
            **self.pair.key._asdict(),
            "cookies": self.pair.cookies,
            **{mode: _load(self.loads[mode], self.page) if mode in self.loads else None for mode in MODES},
            "could_save_ms": self.could_save_ms,
            "saved_ms": self.saved_ms,
        }


def explain(pairs: Sequence[CellPair], page_of: Callable[[str], Page | None]) -> list[Explanation]:
    """Explains cell pairs; those whose page is not known, or that have no load that ended ok, are left out.

    Args:
        pairs: From `cell_pairs`.
        page_of: Gives the page of that name as it was loaded.
    """
    pages = {name: page_of(name) for name in dict.fromkeys(pair.key.page for pair in pairs)}
    found = []
    for pair in pairs:
        page = pages[pair.key.page]
        loads = {mode: [load for load in pair.loads(mode) if _is_known(load)] for mode in MODES}
        if page is not None and any(loads.values()):
            stand_ins = {mode: median_load(of_mode) for mode, of_mode in loads.items() if of_mode}
            found.append(
                Explanation(pair, page, {m: _explained(load, page) for m, load in stand_ins.items()})
            )
    return found


def median_load(loads: Sequence[LoadRecord]) -> LoadRecord:
    """The load whose PLT is nearest the median of all; the earliest of equals."""
    middle = float(np.median([record["load"]["plt_ms"] for record in loads]))
    return min(loads, key=lambda record: abs(float(record["load"]["plt_ms"]) - middle))


def _is_known(record: LoadRecord) -> bool:
    """Whether the record says when anything happened; not so if a foreign client asked for nothing."""
    return record["load"]["plt_ms"] is not None and any(times(row) for row in record["requests"])


def _explained(record: LoadRecord, page: Page) -> ExplainedLoad:
    return ExplainedLoad(str(record["load"]["load_id"]), critical_path(record, page))


def _load(load: ExplainedLoad, page: Page) -> dict[str, Any]:
    path = load.path
    return {
        "load_id": load.load_id,
        "plt_ms": path.plt_ms,
        "spent_ms": path.spent_ms(),
        "handshakes": [
            {
                "request": handshake.request,
                "waited_ms": handshake.waited_ms,
                "rtt_ms": handshake.rtt_ms,
                "inside_wait": handshake.inside_wait,
            }
            for handshake in path.handshakes
        ],
        "could_save_ms": path.could_save_ms,
        "path": [_request(path, index, page) for index in path.requests],
    }


def _request(path: CriticalPath, index: int, page: Page) -> dict[str, Any]:
    segments = [segment for segment in path.segments if segment.request == index]
    waits = [wait for wait in path.waits if wait.request == index]
    return {
        "request": index,
        "url": page.resources[index].url if index < len(page.resources) else None,
        "start_ms": segments[0].start_ms,
        "end_ms": segments[-1].end_ms,
        "spent_ms": path.spent_ms(index),
        "behind": [behind for wait in waits for behind in wait.behind],
        "segments": [[segment.component, segment.start_ms, segment.end_ms] for segment in segments],
    }
