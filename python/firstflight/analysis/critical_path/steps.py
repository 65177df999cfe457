"""Compares the critical paths of two loads, request by request and part by part.

The loads may be of two versions of a page, or of one page under two treatments. For a request on both paths
the parts are compared. For a request on one path all of its time counts as more, or as less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from firstflight.analysis.critical_path.stages import Component
from firstflight.analysis.critical_path.walk import COMPONENTS, CriticalPath
from firstflight.model.page import Page

Fate = Literal["both", "added", "removed", "joined", "left"]
"""Which paths have the request. If one has it, the other's page lacks it, or its load did not wait for it."""

NOT_OF_THE_PAGE = "not of the page"
"""Used as URL of a request that a browser made and the recording does not have."""


@dataclass(frozen=True)
class Step:
    """One request of the critical paths.

    Attributes:
        url: In the head; if only the base waits for the request, in the base.
        base_ms: How long the load event of the base waited for it, ms; `None`: it did not.
        head_ms: The same for the head.
        is_changed: Whether the request is one of those that changed.
        fate: Which path has it.
        parts_ms: How much longer each part of it took in the head, ms, signed; equal parts are left out.
    """

    url: str
    base_ms: float | None
    head_ms: float | None
    is_changed: bool
    fate: Fate
    parts_ms: dict[Component, float]

    @property
    def longer_ms(self) -> float:
        """How much longer the head waited for it, ms, signed."""
        return (self.head_ms or 0.0) - (self.base_ms or 0.0)


def compare_paths(
    paths: tuple[CriticalPath, CriticalPath],
    pages: tuple[Page, Page],
    same: Mapping[int, int],
    changed: tuple[Collection[int], Collection[int]] = ((), ()),
) -> tuple[Step, ...]:
    """Compares both critical paths: the head's requests in order, then those that only the base waits for.

    Args:
        paths: The path of a load of the base, and of one of the head.
        pages: The page that each loaded.
        same: Index in the head by index in the base, of requests that both pages have.
        changed: Indices of the requests that changed, in the base and in the head.
    """
    base, head = ({index: path.spent_ms(index) for index in path.requests} for path in paths)
    before = {index: b for b, index in same.items()}
    steps = []
    for index, spent in head.items():
        b = before.get(index)
        was = base.pop(b, None) if b is not None else None
        fate: Fate = "added" if b is None else "joined" if was is None else "both"
        steps.append(_step(_url(pages[1], index), was, spent, fate, is_changed=index in changed[1]))
    for index, was in base.items():
        fate = "left" if index in same else "removed"
        steps.append(_step(_url(pages[0], index), was, None, fate, is_changed=index in changed[0]))
    return tuple(steps)


_Spent = dict[Component, float]

_LEAST_MS = 0.05


def _step(url: str, was: _Spent | None, now: _Spent | None, fate: Fate, *, is_changed: bool) -> Step:
    more = {part: (now or {}).get(part, 0.0) - (was or {}).get(part, 0.0) for part in COMPONENTS}
    parts_ms = {part: ms for part, ms in more.items() if abs(ms) >= _LEAST_MS}
    return Step(url, _whole(was), _whole(now), is_changed, fate, parts_ms)


def _whole(spent: _Spent | None) -> float | None:
    return None if spent is None else sum(spent.values())


def _url(page: Page, index: int) -> str:
    return page.resources[index].url if index < len(page.resources) else NOT_OF_THE_PAGE
