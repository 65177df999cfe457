"""The main thread of a load, computed from its rows: which task ran when.

The built-in loader's thread runs one task at a time in order of arrival (`crates/loader/src/main_thread.rs`),
so the moments at which responses were complete and the page's `cpu_ms` give its timetable. What a real
browser's thread did the rows do not tell: for other clients there is no timetable.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.analysis.critical_path_load import Load
from firstflight.pages.model import Page

_RUNS = ("document", "frame", "style", "script")


@dataclass(frozen=True, slots=True)
class Task:
    """The processing of one resource.

    Attributes:
        request: Index of the resource.
        start_ms: After navigation start.
        end_ms: After navigation start.
        waited: Whether the thread was busy when the resource had arrived: then it began as another ended.
    """

    request: int
    start_ms: float
    end_ms: float
    waited: bool


def timetable(load: Load) -> list[Task]:
    """The tasks of the main thread in their order; none for a client whose thread is not known."""
    if not load.is_modelled:
        return []
    processed = _processed(load.page)
    arrived = [row for row in load.by_index.values() if row["end_ms"] is not None and not row.get("error")]
    tasks: list[Task] = []
    free_ms = 0.0
    for row in sorted(arrived, key=lambda row: float(row["end_ms"])):
        resource = load.resource(row)
        if resource is None or row["index"] not in processed:
            continue
        start_ms = max(free_ms, float(row["end_ms"]))
        waited = free_ms > float(row["end_ms"])
        free_ms = start_ms + resource.cpu_ms
        tasks.append(Task(int(row["index"]), start_ms, free_ms, waited))
    return tasks


def _processed(page: Page) -> set[int]:
    """What goes through the main thread (`is_processed` in `crates/loader/src/plan.rs`)."""
    initiators = [resource.initiator for resource in page.resources if resource.initiator]
    asks = {initiator.resource for initiator in initiators if initiator.via in ("style", "script")}
    redirects = {initiator.resource for initiator in initiators if initiator.via == "redirect"}
    return {
        index
        for index, resource in enumerate(page.resources)
        if resource.cpu_ms > 0 or index in asks or (resource.kind in _RUNS and index not in redirects)
    }
