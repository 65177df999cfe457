"""The gate's rule: is the head slower than the base, on each network?

Both sides are loaded in pairs, alike in all else. A moment of the head is later where the median difference
of the pairs is larger than the tolerance and no more than a quarter of them has the other sign. Where no
changed request is among those that the moment waited for, so that they only share links and connections,
the tolerance is `BESIDE` times larger, and `BESIDE_RTTS` round trips at least: requests that race for a
connection win or lose a round trip, and a few kilobytes of an image that nothing waits for are no
regression. On the real kernel the verdict of `analysis.statistics` is needed in addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from firstflight.analysis.changes import SAME_WITHIN_MS, Changes
from firstflight.analysis.critical_path.explanation import median_load
from firstflight.analysis.critical_path.steps import Step, compare_paths
from firstflight.analysis.critical_path.walk import CriticalPath, critical_path
from firstflight.analysis.statistics import (
    FASTER,
    SLOWER,
    adjusted_p_values,
    blocks_needed,
    improvement,
    p_value,
)
from firstflight.analysis.statistics import verdict as statistical_verdict
from firstflight.errors import UsageError
from firstflight.gate.moments import NAMES, MomentName, Moments, waited_for
from firstflight.gate.trials import Cost, Network, Pair, Trial, Trials
from firstflight.model.path import Path
from firstflight.observer import Observer
from firstflight.results import LoadRecord, RequestRow
from firstflight.results.records import plt_ms

SAME = "same"
"""The verdict where no moment differs by more than the tolerance."""

TOLERANCE_MS = SAME_WITHIN_MS
"""Default tolerance of a difference, ms."""

BESIDE = 10
"""Factor on the tolerance where no changed request is among those that the moment waited for."""

BESIDE_RTTS = 1.5
"""The least tolerance there, in round trips."""


@dataclass(frozen=True)
class Metric:
    """One moment of both sides.

    Attributes:
        name: Of `moments.NAMES`.
        base_ms: When it was, ms after navigation start; the median of several loads.
        head_ms: Of the head.
        difference_ms: Head less base, the median of pairs; of stylesheets that of the one most delayed, if
            that is more than the last is.
        low_ms: A quarter of the pairs differ by less.
        high_ms: A quarter of the pairs differ by more.
        is_on_path: Whether a changed request is among those that the moment waited for.
        verdict: `slower`, `faster` or `same`.
    """

    name: MomentName
    base_ms: float
    head_ms: float
    difference_ms: float
    low_ms: float
    high_ms: float
    is_on_path: bool
    verdict: str


@dataclass(frozen=True)
class Side:
    """What loading a side took; medians."""

    requests: int
    connections: int
    bytes_down: int


@dataclass(frozen=True)
class Verdict:
    """The answer on one network.

    Attributes:
        network: Its name.
        path: Its figures.
        engine: `simulate` or `emulate`.
        pairs: Loads of each side.
        verdict: `slower` if any moment is, else `faster` if any is, else `same`.
        metrics: The moments.
        costs: What changes cost, most first, on the virtual clock.
        others_ms: What the changes that are not in `costs` cost together; None: there are none.
        base: The base in numbers.
        head: The head in numbers.
        steps: The critical paths of both, request by request.
        rows: The requests of the head's critical path as they were loaded.
    """

    network: str
    path: Path
    engine: str
    pairs: int
    verdict: str
    metrics: tuple[Metric, ...]
    costs: tuple[Cost, ...]
    others_ms: float | None
    base: Side
    head: Side
    steps: tuple[Step, ...]
    rows: tuple[RequestRow, ...]


@dataclass(frozen=True)
class Judge:
    """Judges the changes of a page.

    Attributes:
        trials: Makes the loads.
        tolerance_ms: See `TOLERANCE_MS`.
        observer: Is told how far it is.
    """

    trials: Trials
    tolerance_ms: float
    observer: Observer

    @property
    def _changes(self) -> Changes:
        return self.trials.changes

    def simulated(self, several: Sequence[Network]) -> list[Verdict]:
        """The verdict on each network, on the virtual clock.

        Raises:
            ExperimentError: A load failed.
        """
        self.observer.begin("simulated networks", len(several))
        found = []
        for network in several:
            found.append(self._judged(network, "simulate", self.trials.simulated(network)))
            self.observer.advance()
        return found

    def emulated(self, several: Sequence[Network]) -> list[Verdict]:
        """The verdict on each network, on the real kernel: of the load event alone.

        It takes a verdict of `analysis.statistics` with the p values of all networks raised for their number.

        Raises:
            ExperimentError: A load failed, or the laboratory did.
        """
        trials = [self.trials.simulated(network) for network in several]
        if self._changes.found:
            self.observer.begin("loads", sum(2 * network.plan.repeats for network in several))
            trials = [
                _measured(trial, self.trials.emulated(network, self.observer))
                for network, trial in zip(several, trials, strict=True)
            ]
        plts = [([plt_ms(one) for one, _ in t.pairs], [plt_ms(two) for _, two in t.pairs]) for t in trials]
        raised = adjusted_p_values([p_value(*both) for both in plts])
        found = []
        for network, trial, both, p_adjusted in zip(several, trials, plts, raised, strict=True):
            interval = improvement(*both)
            said = statistical_verdict(
                blocks=len(trial.pairs),
                is_proved=True,
                is_exact=not self._changes.found,
                low=interval["low"],
                high=interval["high"],
                p_adjusted=p_adjusted,
                family=len(several),
            )
            judged = self._judged(network, "emulate", trial)
            metrics = tuple(
                replace(metric, verdict=metric.verdict if metric.verdict == said else SAME)
                for metric in judged.metrics
                if metric.name == "plt"
            )
            found.append(replace(judged, metrics=metrics, verdict=metrics[0].verdict))
        return found

    def _judged(self, network: Network, engine: str, trial: Trial) -> Verdict:
        versions = self.trials.base, self.trials.head
        pages = versions[0].page, versions[1].page
        base, head = (median_load([pair[side] for pair in trial.pairs]) for side in (0, 1))
        metrics = [found for name in NAMES if (found := self._metric(name, trial, network.path.rtt_ms))]
        said = {metric.verdict for metric in metrics}
        path = critical_path(head, pages[1])
        rows = {row["index"]: row for row in reversed(head["requests"])}
        return Verdict(
            network.name,
            network.path,
            engine,
            len(trial.pairs),
            next((verdict for verdict in (SLOWER, FASTER) if verdict in said), SAME),
            tuple(metrics),
            trial.costs,
            trial.others_ms,
            _side([one for one, _ in trial.pairs]),
            _side([other for _, other in trial.pairs]),
            self._steps((critical_path(base, pages[0]), path)),
            tuple(rows[index] for index in path.requests if index in rows),
        )

    def _metric(self, name: MomentName, trial: Trial, rtt_ms: float) -> Metric | None:
        versions = self.trials.base, self.trials.head
        if not all(name in moments.at_ms for pair in trial.moments for moments in pair):
            return None
        ours, theirs = ([pair[side].at_ms[name] for pair in trial.moments] for side in (0, 1))
        made = [version.touched(self._changes.found) for version in versions]
        waiting = [
            any(
                touched & waited_for(name, record, version.page)
                for touched, record, version in zip(made, pair, versions, strict=True)
            )
            for pair in trial.pairs
        ]
        is_on_path = 2 * sum(waiting) > len(waiting)
        later = sorted(now.later_than(before)[name] for before, now in trial.moments)
        point, share = median(later), len(later) // 4
        beside_ms = max(self.tolerance_ms * BESIDE, BESIDE_RTTS * rtt_ms)
        limit_ms = self.tolerance_ms if is_on_path else beside_ms
        low, high = later[share], later[-1 - share]
        verdict = SAME
        if point > limit_ms and low >= 0:
            verdict = SLOWER
        elif point < -limit_ms and high <= 0:
            verdict = FASTER
        return Metric(name, median(ours), median(theirs), point, low, high, is_on_path, verdict)

    def _steps(self, paths: tuple[CriticalPath, CriticalPath]) -> tuple[Step, ...]:
        """Both critical paths: the head's requests in order, then those that only the base waits for."""
        base, head = self.trials.base, self.trials.head
        place = {node: index for index, node in enumerate(head.nodes)}
        same = {index: place[node] for index, node in enumerate(base.nodes) if node in place}
        changed = base.touched(self._changes.found), head.touched(self._changes.found)
        return compare_paths(paths, (base.page, head.page), same, changed)


def check_repeats(several: Sequence[Network]) -> None:
    """Refuses fewer loads on the real kernel than any verdict takes.

    Raises:
        UsageError: There are too few.
    """
    least = blocks_needed(len(several))
    for network in several:
        if network.plan.repeats < least:
            raise UsageError(
                f"repeats: {network.plan.repeats} pairs of loads cannot show a difference",
                f"give --repeats {least} or more for so many networks",
            )


def _measured(trial: Trial, pairs: list[Pair]) -> Trial:
    """A trial with pairs of the real kernel, of which the load event is known."""
    both = [(Moments({"plt": plt_ms(one)}, {}), Moments({"plt": plt_ms(two)}, {})) for one, two in pairs]
    return replace(trial, pairs=pairs, moments=both)


def _side(records: Sequence[LoadRecord]) -> Side:
    rows = [
        (len(record["requests"]), len(record["connections"]), record["load"]["bytes_down"] or 0)
        for record in records
    ]
    return Side(*(round(median(values)) for values in zip(*rows, strict=True)))
