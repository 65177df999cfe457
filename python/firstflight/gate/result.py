"""The result of a gate: verdicts, changes, budgets, and what it cannot see; as JSON and as an exit code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from firstflight.analysis.changes import Changes
from firstflight.analysis.statistics import SLOWER
from firstflight.gate.budget import Held
from firstflight.gate.judge import SAME, Metric, Verdict
from firstflight.gate.trials import Cost
from firstflight.model.page import Page
from firstflight.pages.discovery import AT_ONCE_MS

FORMAT = "firstflight-gate/1"


@dataclass(frozen=True)
class GateResult:
    """The result of a gate.

    Attributes:
        base: The base, as the user named it.
        head: The head, as the user named it.
        changes: The changes from base to head.
        verdicts: One for each network and engine.
        budgets: The result of each line of the budget.
        tolerance_ms: Tolerance of a difference, ms.
        noise_ms: Times of a request that differ by at most this count as equal, ms.
        caption: The settings of all loads, in words.
        unseen: What this gate cannot see, a sentence each.
    """

    base: str
    head: str
    changes: Changes
    verdicts: tuple[Verdict, ...]
    budgets: tuple[Held, ...]
    tolerance_ms: float
    noise_ms: float
    caption: str
    unseen: tuple[str, ...]

    @property
    def is_slower(self) -> bool:
        """Whether the head is slower on any network."""
        return any(verdict.verdict == SLOWER for verdict in self.verdicts)

    @property
    def disagreements(self) -> list[str]:
        """A sentence for each network on which the two engines disagree about the page load."""
        said: dict[str, list[Metric]] = {}
        for verdict in self.verdicts:
            said.setdefault(verdict.network, []).extend(m for m in verdict.metrics if m.name == "plt")
        return [
            f"{network}: the page load is {of[0].verdict} ({of[0].difference_ms:+,.0f} ms) on the virtual "
            f"clock and {of[1].verdict} ({of[1].difference_ms:+,.0f} ms) on the real kernel. "
            "The gate fails where either is slower."
            for network, of in said.items()
            if len({metric.verdict for metric in of}) > 1
        ]

    @property
    def over(self) -> list[Held]:
        """The lines of the budget that are exceeded."""
        return [held for held in self.budgets if held.is_over]

    @property
    def exit_code(self) -> int:
        """0: the gate passes; 1: it fails."""
        return 1 if self.is_slower or self.over else 0

    def to_json(self) -> dict[str, object]:
        """The result in the form of `docs/gate.md`."""
        return {
            "format": FORMAT,
            "holds": self.exit_code == 0,
            "base": {"name": self.base, **_page(self.changes.base)},
            "head": {"name": self.head, **_page(self.changes.head)},
            "caption": self.caption,
            "tolerance_ms": self.tolerance_ms,
            "noise_ms": self.noise_ms,
            "changes": [change.to_json() for change in self.changes.found],
            "verdicts": [_verdict(verdict) for verdict in self.verdicts],
            "disagreements": list(self.disagreements),
            "budgets": [
                {
                    **asdict(held.limit),
                    "network": held.network or None,
                    "value": held.value,
                    "over": held.is_over,
                }
                for held in self.budgets
            ],
            "unseen": list(self.unseen),
        }


def unseen(page: Page, engines: list[str], recordings: int) -> tuple[str, ...]:
    """What a gate of this page cannot see.

    Args:
        page: The base.
        engines: The engines that loaded it.
        recordings: Number of recordings of the side that has fewer.
    """
    is_recorded = any(resource.cpu_ms > AT_ONCE_MS for resource in page.resources)
    said = [_CPU_TIMES if is_recorded else _NO_CPU_TIMES]
    if not any(resource.server_ms for resource in page.resources):
        said.append(_NO_SERVER_TIMES)
    elif recordings == 1:
        said.append(_ONE_RECORDING)
    said.append(_NO_PAINT)
    return (*said, _PREDICTED) if engines == ["simulate"] else tuple(said)


_NO_CPU_TIMES = (
    "Work of the main thread: the recording tells no CPU times (pauses between requests show up to "
    f"{AT_ONCE_MS:g} ms), so slower scripts and layout are not seen."
)
_CPU_TIMES = (
    "Work of the main thread beyond the CPU times that the recording tells: layout, painting, timers."
)
_NO_SERVER_TIMES = "Slower servers: the recording tells no times of servers."
_ONE_RECORDING = (
    "Chance in servers' times: of one recording a side nothing tells it from the change. "
    "Give --base and --head three times each."
)
_NO_PAINT = (
    "First paint and largest contentful paint: no browser paints here. A browser measures them with: "
    "firstflight run --compare page=BASE,HEAD --client chromium."
)
_PREDICTED = (
    "The real kernel: times are predicted (docs/accuracy.md). They are measured with: --engine emulate."
)


def _page(page: Page) -> dict[str, object]:
    return {
        "url": page.url,
        "requests": len(page.resources),
        "wire_bytes": sum(resource.wire_bytes for resource in page.resources),
        "origins": len(page.origins),
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "url": cost.change.url,
        "what": list(cost.change.what),
        "undone_ms": dict(cost.undone_ms),
        "alone_ms": dict(cost.alone_ms),
        "on_critical_path": cost.is_on_path,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "network": verdict.network,
        "path": verdict.path.to_json(seed=0),
        "engine": verdict.engine,
        "pairs": verdict.pairs,
        "verdict": verdict.verdict,
        "same_within_ms": same_within(verdict),
        "moments": [asdict(metric) for metric in verdict.metrics],
        "costs": [_cost(cost) for cost in verdict.costs],
        "other_changes_ms": verdict.others_ms,
        "base": asdict(verdict.base),
        "head": asdict(verdict.head),
        "critical_path": [asdict(step) for step in verdict.steps],
    }


def same_within(verdict: Verdict) -> float | None:
    """The largest difference of a moment, ms, if the verdict is `same`; else `None`."""
    if verdict.verdict != SAME:
        return None
    return max(abs(metric.difference_ms) for metric in verdict.metrics)
