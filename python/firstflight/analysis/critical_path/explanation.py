"""Explains the PLT of a cell pair: critical paths of both sides, and what TFO could save.

Each side is explained by the load with the PLT nearest the side's median, since a path belongs to one load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median

from firstflight.analysis.cells import SIDES, CellPair
from firstflight.analysis.changes import Changes, find_changes
from firstflight.analysis.critical_path.stages import times
from firstflight.analysis.critical_path.steps import Step, compare_paths
from firstflight.analysis.critical_path.walk import CriticalPath, critical_path
from firstflight.analysis.proof import uses_fast_open
from firstflight.analysis.records import Side
from firstflight.model.load import recording_name
from firstflight.model.page import Page
from firstflight.results import LoadRecord
from firstflight.results.records import plt_ms


@dataclass(frozen=True)
class ExplainedLoad:
    """A load with its critical path."""

    load_id: str
    path: CriticalPath


@dataclass(frozen=True)
class Explanation:
    """The explanation of a cell pair.

    Attributes:
        pair: The cell pair.
        pages: Side -> the page that was loaded. The sides may load versions of a page.
        loads: Side -> the load that represents it; a side without a load that ended ok is left out.
    """

    pair: CellPair
    pages: dict[Side, Page]
    loads: dict[Side, ExplainedLoad]

    @property
    def could_save_ms(self) -> float | None:
        """How long the baseline's path waited for handshakes, ms: what TFO could save of it at most."""
        return self.loads["baseline"].path.could_save_ms if "baseline" in self.loads else None

    @property
    def saved_ms(self) -> float | None:
        """Median PLT of the baseline minus that of the treatment, ms; positive: the treatment is faster."""
        baseline_ms, treatment_ms = (self.pair.plt_ms(side) for side in SIDES)
        if not baseline_ms or not treatment_ms:
            return None
        return median(baseline_ms) - median(treatment_ms)

    @cached_property
    def changes(self) -> Changes | None:
        """The changes between the versions of the page that the sides load; `None` if they load the same one.

        Raises:
            PageInputError: They are not versions of one page.
        """
        if len({page.name for page in self.pages.values()}) == 1:
            return None
        return find_changes([self.pages["baseline"]], [self.pages["treatment"]])

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The differences between the critical paths, request by request; empty if a side has no load."""
        if len(self.loads) < len(SIDES):
            return ()
        paths = self.loads["baseline"].path, self.loads["treatment"].path
        pages = self.pages["baseline"], self.pages["treatment"]
        if self.changes is None:
            return compare_paths(paths, pages, {index: index for path in paths for index in path.requests})
        touched: tuple[set[int], set[int]] = (set(), set())
        for change in self.changes.found:
            touched[0].update(change.base)
            touched[1].update(change.head)
        return compare_paths(paths, pages, self.changes.matched, touched)

    def to_json(self) -> dict[str, object]:
        """The explanation as data; `docs/explain.md` names every key."""
        return {
            "page": self.pair.page,
            **self.pair.key.factors,
            "cookies": self.pair.cookies,
            **{side: self._side(side) for side in SIDES},
            "could_save_ms": self.could_save_ms,
            "saved_ms": self.saved_ms,
            "steps": [_step(step) for step in self.steps],
            "changes": None if self.changes is None else [change.to_json() for change in self.changes.found],
        }

    def _side(self, side: Side) -> dict[str, object] | None:
        if side not in self.loads:
            return None
        return {"name": self.pair.names[side], **_load(self.loads[side], self.pages[side])}

    @property
    def bounds_the_saving(self) -> bool:
        """Whether TFO could save the baseline's handshakes: not the baseline but the treatment uses it."""
        treated = self.pair.loads("treatment")
        return not uses_fast_open(self.pair, "baseline") and (
            not treated or uses_fast_open(self.pair, "treatment")
        )


def explain(pairs: Sequence[CellPair], page_of: Callable[[str], Page | None]) -> list[Explanation]:
    """Explains cell pairs. Leaves out pairs whose page is not known or without a load that ended ok.

    Args:
        pairs: From `cell_pairs`.
        page_of: Returns the page of that name as it was loaded; each version of a page has its own name.
    """
    page_of = cache(page_of)
    found = []
    for pair in pairs:
        loads = {side: [load for load in pair.loads(side) if _is_known(load)] for side in SIDES}
        pages = {side: page_of(_recording(of_side[0])) for side, of_side in loads.items() if of_side}
        known = {side: page for side, page in pages.items() if page is not None}
        if known and len(known) == len(pages):
            explained = {side: _explained(median_load(loads[side]), page) for side, page in known.items()}
            found.append(Explanation(pair, known, explained))
    return found


def _recording(record: LoadRecord) -> str:
    return recording_name(record["load"]["page"], record["load"]["version"])


def median_load(loads: Sequence[LoadRecord]) -> LoadRecord:
    """The load whose PLT is nearest the median of all; the earliest of equals."""
    middle = median([plt_ms(record) for record in loads])
    return min(loads, key=lambda record: abs(plt_ms(record) - middle))


def _is_known(record: LoadRecord) -> bool:
    """Whether the record has the time of any request; it has none if an external client sent no request."""
    return record["load"]["plt_ms"] is not None and any(times(row) for row in record["requests"])


def _explained(record: LoadRecord, page: Page) -> ExplainedLoad:
    return ExplainedLoad(str(record["load"]["load_id"]), critical_path(record, page))


def _load(load: ExplainedLoad, page: Page) -> dict[str, object]:
    path = load.path
    return {
        "load_id": load.load_id,
        "plt_ms": path.plt_ms,
        "spent_ms": path.spent_ms(),
        "round_trips": path.round_trips,
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


def _step(step: Step) -> dict[str, object]:
    return {
        "url": step.url,
        "baseline_ms": step.base_ms,
        "treatment_ms": step.head_ms,
        "fate": step.fate,
        "is_changed": step.is_changed,
        "parts_ms": step.parts_ms,
    }


def _request(path: CriticalPath, index: int, page: Page) -> dict[str, object]:
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
