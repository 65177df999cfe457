"""The gate's rule for whether the head is slower than the base on a network.

Both sides are loaded in pairs that differ in nothing else. A moment of the head is later if the median
difference of the pairs is larger than the tolerance, and at most a quarter of the pairs have the other sign.
If loads differ by chance, the signed-rank test must show the difference as well. If nothing is random, pairs
differ only by their paths. Then, if all pairs are later, it suffices that a quarter of them is later by more
than the tolerance: often one of two requests ends a page, and which one depends on the path. If some pairs
have the other sign, the test must show the difference there too.

If the moment waited for no changed request, so that changed requests only share links and connections, the
median rule alone counts. The tolerance is then `OFF_PATH` times larger, and at least `OFF_PATH_RTTS` round
trips: requests that race for a connection win or lose a round trip. A few kilobytes of an image that nothing
waits for are no regression.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import median

from firstflight.analysis.changes import SAME_WITHIN_MS, Changes
from firstflight.analysis.critical_path.explanation import median_load
from firstflight.analysis.critical_path.steps import Step, compare_paths
from firstflight.analysis.critical_path.walk import CriticalPath, critical_path
from firstflight.analysis.signed_rank import p_value as signed_rank_p_value
from firstflight.analysis.statistics import (
    FALSE_VERDICTS,
    FASTER,
    SLOWER,
    adjusted_p_values,
    blocks_needed,
    improvement,
    p_value,
)
from firstflight.analysis.statistics import verdict as statistical_verdict
from firstflight.errors import UsageError
from firstflight.gate.moments import NAMES, MomentName, Moments, later, waited_for
from firstflight.gate.trials import FEW_PAIRS, MANY_PAIRS, Cost, Network, Pair, Trial, Trials
from firstflight.model.path import Path
from firstflight.observer import Observer
from firstflight.results import LoadRecord, RequestRow
from firstflight.results.records import plt_ms
from firstflight.text import plural

SAME = "same"
"""The verdict if no moment differs by more than the tolerance."""

TOLERANCE_MS = SAME_WITHIN_MS
"""Default tolerance of a difference, ms."""

OFF_PATH = 10
"""Factor on the tolerance if the moment waited for no changed request."""

OFF_PATH_RTTS = 1.5
"""The smallest tolerance in that case, in round trips."""

FALSE_ALARMS = 1e-4
"""The chance that a moment is wrongly called later where loads differ by chance. A gate runs with every
commit: at the level of a table of results, one run in twenty would be wrong."""


@dataclass(frozen=True)
class Metric:
    """One moment of both sides.

    Attributes:
        name: A name of `moments.NAMES`.
        base_ms: Its time in the base, ms after navigation start; the median of several loads.
        head_ms: Its time in the head, likewise.
        difference_ms: Head minus base, the median of pairs. For stylesheets it is that of the most delayed
            one, if it is larger than that of the last one.
        low_ms: A quarter of the pairs differ by less.
        high_ms: A quarter of the pairs differ by more.
        is_unanimous: Whether all pairs are later, or all are earlier.
        is_on_path: Whether the moment waited for a changed request.
        verdict: `slower`, `faster` or `same`.
    """

    name: MomentName
    base_ms: float
    head_ms: float
    difference_ms: float
    low_ms: float
    high_ms: float
    is_unanimous: bool
    is_on_path: bool
    verdict: str


@dataclass(frozen=True)
class Side:
    """What loading a side required; medians."""

    requests: int
    connections: int
    bytes_down: int


@dataclass(frozen=True)
class Verdict:
    """The answer for one network.

    Attributes:
        network: Its name.
        path: Its settings in words.
        engine: `simulate` or `emulate`.
        pairs: Number of loads of each side.
        verdict: `slower` if any moment is, else `faster` if any is, else `same`.
        metrics: The moments.
        costs: The cost of each change, the largest first, on the virtual clock.
        others_ms: The cost of all changes that are not in `costs` together; `None`: there are none.
        base: Numbers of the base.
        head: Numbers of the head.
        steps: The critical paths of both, request by request.
        rows: The requests on the head's critical path, from that load.
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

    @property
    def place(self) -> str:
        """The network and, for the real kernel, that the loads were measured."""
        return self.network if self.engine == "simulate" else f"{self.network} (measured)"


@dataclass(frozen=True)
class Judge:
    """Judges the changes of a page.

    Attributes:
        trials: Makes the loads.
        tolerance_ms: See `TOLERANCE_MS`.
        observer: Is told the progress.
    """

    trials: Trials
    tolerance_ms: float
    observer: Observer

    @property
    def _changes(self) -> Changes:
        return self.trials.changes

    def on(self, several: Sequence[Network], engines: Collection[str]) -> list[Verdict]:
        """The verdicts of each engine on each network.

        Raises:
            PageInputError: A page has more origins than a laboratory can have.
            ExperimentError: A load failed, or the laboratory did.
        """
        self.observer.begin("simulated networks", len(several))
        trials: list[Trial] = []
        verdicts: list[Verdict] = []
        for network in several:
            trial, metrics = self.simulated(network)
            trials.append(self.trials.with_costs(network, trial))
            if "simulate" in engines:
                verdicts.append(self._judged(network, "simulate", trials[-1], metrics))
            self.observer.advance()
        if "emulate" in engines:
            verdicts += self._emulated(several, trials)
        return verdicts

    def simulated(self, network: Network) -> tuple[Trial, tuple[Metric, ...]]:
        """Pairs on the virtual clock, and the result for each moment that the page has.

        If some of a few pairs have the other sign, more pairs are loaded, and the signed-rank test must show
        the difference. Even without randomness, any change makes a page of a thousand requests about ten
        milliseconds faster or slower.
        """
        trial = self.trials.simulated(network)
        metrics = self._metrics(network, trial)
        if len(trial.pairs) == FEW_PAIRS and any(m.verdict != SAME and not m.is_unanimous for m in metrics):
            trial = self.trials.simulated(network, trial)
            metrics = self._metrics(network, trial)
        return trial, metrics

    def _emulated(self, several: Sequence[Network], trials: list[Trial]) -> list[Verdict]:
        """The verdict on each network on the real kernel, for the load event only.

        A difference counts only with a verdict of `analysis.statistics`, with p values adjusted for the
        number of networks.

        Args:
            several: The networks.
            trials: The trials on the virtual clock; the costs come from them.
        """
        pairs = self.trials.emulated(several, self.observer)
        trials = [_measured(trial, made) for trial, made in zip(trials, pairs, strict=True)]
        plts = [([plt_ms(one) for one, _ in t.pairs], [plt_ms(two) for _, two in t.pairs]) for t in trials]
        raised = adjusted_p_values([p_value(*both) for both in plts])
        found = []
        for network, trial, both, p_adjusted in zip(several, trials, plts, raised, strict=True):
            interval = improvement(*both)
            said = statistical_verdict(
                blocks=len(trial.pairs),
                is_proved=True,
                is_exact=False,
                low=interval["low"],
                high=interval["high"],
                p_adjusted=p_adjusted,
                family=len(several),
            )
            is_shown = p_adjusted is not None and p_adjusted < _level(network)
            metrics = tuple(
                replace(metric, verdict=metric.verdict if metric.verdict == said and is_shown else SAME)
                for metric in self._metrics(network, trial)
            )
            found.append(self._judged(network, "emulate", trial, metrics))
        return found

    def _metrics(self, network: Network, trial: Trial) -> tuple[Metric, ...]:
        found = (self._metric(name, trial, network.path.rtt_ms) for name in NAMES)
        return tuple(metric for metric in found if metric)

    def _judged(self, network: Network, engine: str, trial: Trial, metrics: tuple[Metric, ...]) -> Verdict:
        versions = self.trials.base, self.trials.head
        pages = versions[0].page, versions[1].page
        base, head = (median_load([pair[side] for pair in trial.pairs]) for side in (0, 1))
        path = critical_path(head, pages[1])
        rows = {row["index"]: row for row in reversed(head["requests"])}
        return Verdict(
            network.name,
            network.path,
            engine,
            len(trial.pairs),
            overall(metrics),
            metrics,
            trial.costs,
            trial.others_ms,
            _side([one for one, _ in trial.pairs]),
            _side([other for _, other in trial.pairs]),
            self._steps((critical_path(base, pages[0]), path)),
            tuple(rows[index] for index in path.requests if index in rows),
        )

    def _metric(self, name: MomentName, trial: Trial, rtt_ms: float) -> Metric | None:
        found = later(name, trial.moments)
        if found is None:
            return None
        ours, theirs = ([pair[side].at_ms[name] for pair in trial.moments] for side in (0, 1))
        is_on_path = self._is_on_path(name, trial.pairs)
        ascending = sorted(found.each_ms)
        point, share = median(ascending), len(ascending) // 4
        beside_ms = max(self.tolerance_ms * OFF_PATH, OFF_PATH_RTTS * rtt_ms)
        limit_ms = self.tolerance_ms if is_on_path else beside_ms
        low, high = ascending[share], ascending[-1 - share]
        verdict = SAME
        if point > limit_ms and low >= 0:
            verdict = SLOWER
        elif point < -limit_ms and high <= 0:
            verdict = FASTER
        elif trial.chance == "none" and is_on_path and high > limit_ms and ascending[0] > 0:
            verdict = SLOWER
        elif trial.chance == "none" and is_on_path and low < -limit_ms and ascending[-1] < 0:
            verdict = FASTER
        if len(ascending) >= MANY_PAIRS and trial.chance != "kernel":
            is_shown = signed_rank_p_value(found.each_ms) * found.of < FALSE_ALARMS
            verdict = verdict if is_shown else SAME
        is_unanimous = ascending[0] > 0 or ascending[-1] < 0
        return Metric(name, median(ours), median(theirs), point, low, high, is_unanimous, is_on_path, verdict)

    def _is_on_path(self, name: MomentName, pairs: Sequence[Pair]) -> bool:
        """Whether a moment waited, on either side, for a changed request in most pairs."""
        base, head = ((one, one.touched(self._changes.found)) for one in (self.trials.base, self.trials.head))
        answers = (
            any(
                touched and touched & waited_for(name, record, version.page, other)
                for (version, touched), record, other in zip((base, head), pair, pair[::-1], strict=True)
            )
            for pair in pairs
        )
        # Each answer needs two walks along critical paths, so stop when the majority is known.
        yes, no = 0, 0
        for is_waiting in answers:
            yes, no = yes + bool(is_waiting), no + (not is_waiting)
            if 2 * max(yes, no) > len(pairs):
                break
        return yes > no

    def _steps(self, paths: tuple[CriticalPath, CriticalPath]) -> tuple[Step, ...]:
        """Both critical paths: the head's requests in order, then those that only the base waits for."""
        base, head = self.trials.base, self.trials.head
        place = {node: index for index, node in enumerate(head.nodes)}
        same = {index: place[node] for index, node in enumerate(base.nodes) if node in place}
        changed = base.touched(self._changes.found), head.touched(self._changes.found)
        return compare_paths(paths, (base.page, head.page), same, changed)


def overall(metrics: Sequence[Metric]) -> str:
    """The verdict of a network: `slower` if any moment is, else `faster` if any is, else `same`."""
    said = {metric.verdict for metric in metrics}
    return next((verdict for verdict in (SLOWER, FASTER) if verdict in said), SAME)


def check_repeats(several: Sequence[Network]) -> None:
    """Refuses a number of loads on the real kernel that is too small for any verdict.

    Raises:
        UsageError: There are too few.
    """
    for network in several:
        least = blocks_needed(len(several), _level(network))
        if network.plan.repeats < least:
            raise UsageError(
                f"repeats: {plural(network.plan.repeats, 'load pair')} cannot show a difference on "
                f"{network.name}",
                f"give --repeats {least} or more for so many networks",
            )


def _level(network: Network) -> float:
    """The chance of a false verdict on the real kernel. For the kernel's own noise the tolerance suffices."""
    return FALSE_ALARMS if network.is_drawn else FALSE_VERDICTS


def _measured(trial: Trial, pairs: list[Pair]) -> Trial:
    """The trial with pairs from the real kernel, for which only the load event is known."""
    both = [(Moments({"plt": plt_ms(one)}, {}), Moments({"plt": plt_ms(two)}, {})) for one, two in pairs]
    return replace(trial, pairs=pairs, moments=both, chance="kernel")


def _side(records: Sequence[LoadRecord]) -> Side:
    rows = [
        (len(record["requests"]), len(record["connections"]), record["load"]["bytes_down"] or 0)
        for record in records
    ]
    return Side(*(round(median(values)) for values in zip(*rows, strict=True)))
