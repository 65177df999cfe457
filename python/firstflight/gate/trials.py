"""The gate's loads: pairs of base and head on a network, and the cost of each change on the virtual clock.

A change costs the time that undoing it alone saves, and the time that it adds as the only change. Both are
needed: if two changes delay the same moment in parallel, undoing one of them saves nothing, but each alone
costs its time.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from firstflight.analysis.changes import Change, Changes, Version
from firstflight.engines.engine import Engine, Record
from firstflight.errors import ExperimentError, LabError, UsageError
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.recorder import MAX_FAILURES, is_settled, make_block
from firstflight.experiment.schedule import Block, load_under
from firstflight.experiment.setup import EngineSetup, threads
from firstflight.experiment.workers.pool import cores
from firstflight.gate.moments import NAMES, Differences, Moments, later, moments, render_page, waited_for
from firstflight.model.load import PlannedLoad
from firstflight.model.page import LoadedPage, Page
from firstflight.model.path import Path
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.results import LoadRecord
from firstflight.results.journal import is_instrument_failure
from firstflight.results.schema import is_drawn
from firstflight.text import plural

MOST_TRIED = 12
"""How many changes are undone one at a time, the largest first; the others are undone together."""

FEW_PAIRS, MANY_PAIRS = 11, 21
"""Pairs of loads on a virtual clock: on a network without randomness, and on a random one."""

_PAIRS_OF_COSTS = 3

SPREAD = 0.05
"""RTT and rates of the pairs after the first differ from the network's by at most this fraction."""

Chance = Literal["none", "lots", "kernel"]

Pair = tuple[LoadRecord, LoadRecord]
"""A load of the base and one of the head that differ in nothing else."""


@dataclass(frozen=True)
class Network:
    """A named path, with the plan that makes one load on it."""

    name: str
    plan: Plan
    path: Path

    @property
    def is_drawn(self) -> bool:
        """Whether simulated loads on it differ by chance."""
        return is_drawn({**self.path.columns(), "engine": "simulate", "cookies": "warm"})


@dataclass(frozen=True)
class Cost:
    """The cost of a change on a network.

    Attributes:
        change: The change.
        undone_ms: By how much each moment is earlier without the change, ms.
        alone_ms: By how much each moment is later if it is the only change, ms.
        is_on_path: Whether the load event waits for its requests.
    """

    change: Change
    undone_ms: Differences
    alone_ms: Differences
    is_on_path: bool

    @property
    def ms(self) -> float:
        """Its largest delay of any moment, ms. Negative: it delays none and makes some earlier."""
        found = [*self.undone_ms.values(), *self.alone_ms.values()]
        most = max(found, default=0.0)
        return most if most > 0 else min(found, default=0.0)


@dataclass(frozen=True)
class Trial:
    """Loads on a network.

    Attributes:
        pairs: Loads of both sides; a single pair if nothing changed.
        moments: The moments of each pair; on the real kernel only the load event.
        chance: Why the loads of a side differ: only by their paths, by random draws of the network, or by the
            real kernel.
        costs: The cost of each change, the largest first.
        others_ms: By how much the load event is earlier without the changes that are not in `costs`, ms.
    """

    pairs: list[Pair]
    moments: list[tuple[Moments, Moments]]
    chance: Chance
    costs: tuple[Cost, ...] = ()
    others_ms: float | None = None


def networks(names: Sequence[str], keys: dict[str, object]) -> list[Network]:
    """The networks of these names.

    Args:
        names: Presets, or TOML files of path keys.
        keys: Other keys of a plan, in the form of flags.

    Raises:
        UsageError: There is no such path, a name has several paths, or a key is wrong.
    """
    found: dict[str, Network] = {}
    for name in names:
        plan = resolve({**keys, "path": name})
        paths = plan.paths()
        if len(paths) != 1:
            raise UsageError(
                f"network: {name} is {len(paths)} paths", "name one that has one RTT and one rate each way"
            )
        if name in found:
            raise UsageError(f"network: {name} is named twice", "name each once")
        found[name] = Network(name, plan, paths[0])
    return list(found.values())


class Trials:
    """Loads of the base, of the head, and of the base with some of the changes.

    Args:
        changes: The changes from base to head.
        head_seed: Added to the seed of the head's loads. With 0, losses and delays are drawn alike for both
            sides as long as they send the same packets. Differences are then due to the change.
    """

    def __init__(self, changes: Changes, head_seed: int = 0) -> None:
        self.changes = changes
        self._head_seed = head_seed
        self.base = changes.version((), "base")
        self.head = changes.version(changes.found, "head")
        self._between: dict[tuple[Change, ...], Version] = {(): self.base, changes.found: self.head}
        self._opened: dict[str, tuple[LoadedPage, LoadedPage]] = {}
        self._renders: dict[Page, LoadedPage] = {}
        self._rendered: dict[tuple[str, str, int, int], Record] = {}
        self._moments: dict[tuple[str, str, int], Moments] = {}
        self._simulator = EngineSetup("simulate", ("loader",))()
        self._counter = EngineSetup("simulate", ("loader",), keep="loads")()

    def simulated(self, network: Network, first: Trial | None = None) -> Trial:
        """Pairs on the virtual clock.

        One more packet may cost a page a whole round trip, or save it one, if two requests race for a
        connection. So pairs are loaded on paths close to the network's, where such races end differently.

        Args:
            network: The network.
            first: The first few pairs, if they were not enough.
        """
        count = MANY_PAIRS if first or network.is_drawn else FEW_PAIRS
        known = first or Trial([], [], "lots" if network.is_drawn else "none")

        def pair(number: int) -> tuple[tuple[Record, Moments], tuple[Record, Moments]]:
            base = self._simulated(network, self.base, number)
            return base, self._simulated(network, self.head, number) if self.changes.found else base

        self._open(self._sides)
        with ThreadPoolExecutor(cores()) as pool:
            made = list(pool.map(pair, range(len(known.pairs), count if self.changes.found else 1)))
        pairs: list[Pair] = [(base, head) for (base, _), (head, _) in made]
        both = [(before, now) for (_, before), (_, now) in made]
        return replace(known, pairs=[*known.pairs, *pairs], moments=[*known.moments, *both])

    def with_costs(self, network: Network, trial: Trial) -> Trial:
        """The trial on the virtual clock with the cost of each change."""
        costs, others_ms = self._costs(network, trial.pairs[0], trial.moments[:_PAIRS_OF_COSTS])
        return replace(trial, costs=costs, others_ms=others_ms)

    def emulated(self, several: Sequence[Network], observer: Observer) -> list[list[Pair]]:
        """Pairs on the real kernel for each network; each pair in random order, several loads at a time.

        Raises:
            PageInputError: A page has more origins than a laboratory can have.
            ExperimentError: A load failed, or the laboratory did.
        """
        setup = EngineSetup("emulate", ("loader",))
        pages = [LoadedPage(version.page) for version in self._sides]
        for page in pages:
            setup.check_page(1, "", page)
        workers = threads(several[0].plan, setup())
        workers.calibrate([network.path for network in several], {}, observer)
        order = random.Random(several[0].plan.seed)
        loads: list[PlannedLoad] = []
        for network in several:
            for number in range(network.plan.repeats):
                pair = [_planned(network, version.page, "emulate", number) for version in self._sides]
                loads += order.sample(pair, len(pair))
        observer.begin("loads", len(loads))
        taken = _Taken(observer)
        workers.make(
            (Block(number, (load,)) for number, load in enumerate(loads)), Catalogue.of(pages), taken
        )
        taken.warn(len(loads))
        return [
            [
                (made[0], made[1])
                for number in range(network.plan.repeats)
                if (made := [taken.records[_load_id(network, one.page, number)] for one in self._sides])
            ]
            for network in several
        ]

    @property
    def _sides(self) -> tuple[Version, Version]:
        return self.base, self.head

    def _open(self, versions: Iterable[Version]) -> None:
        """Prepares pages so that several threads can load them. Equal reduced pages are prepared once."""
        for version in versions:
            if version.page.name not in self._opened:
                made = render_page(version.page)
                render = self._renders.setdefault(replace(made, name=""), LoadedPage(made))
                self._opened[version.page.name] = LoadedPage(version.page), render

    def _simulated(self, network: Network, version: Version, number: int) -> tuple[Record, Moments]:
        """A load of a page with its rows, and its moments."""
        page, _ = self._opened[version.page.name]
        record = self._loaded(self._simulator, network, version, page, number)
        found = self._moments_of(network, version, number, record)
        return record, found

    def _moments_of(
        self, network: Network, version: Version, number: int, record: Record | None = None
    ) -> Moments:
        """The moments of a load of a page. If `record` is not given, the load is made."""
        key = (network.name, version.page.name, number)
        if key not in self._moments:
            page, render = self._opened[version.page.name]
            whole = record or self._loaded(self._counter, network, version, page, number)
            rendered_key = (network.name, render.page.name, number, self._more_seed(version))
            if rendered_key not in self._rendered:
                made = self._loaded(self._simulator, network, version, render, number)
                self._rendered[rendered_key] = made
            self._moments[key] = moments(whole, self._rendered[rendered_key], render.page)
        return self._moments[key]

    def _loaded(
        self, engine: Engine, network: Network, version: Version, page: LoadedPage, number: int
    ) -> Record:
        near = replace(network, path=_near(network, number))
        return _load(engine, near, page, number, self._more_seed(version))

    def _more_seed(self, version: Version) -> int:
        return self._head_seed if version is self.head else 0

    def _costs(
        self, network: Network, first: Pair, pairs: Sequence[tuple[Moments, Moments]]
    ) -> tuple[tuple[Cost, ...], float | None]:
        head, found = self.head.page, self.changes.found
        before, now = [one for one, _ in pairs], [other for _, other in pairs]
        on_path = waited_for("plt", first[1], head, first[0])

        def size(change: Change) -> float:
            touched = self.head.touched((change,))
            times = sum(float(value) for value in change.fields.values() if isinstance(value, float))
            kilobytes = sum(head.resources[index].wire_bytes for index in touched) / 1000
            return times + kilobytes + (1e9 if touched & on_path else 0.0)

        largest = sorted(found, key=size, reverse=True)
        tried, left = largest[:MOST_TRIED], largest[MOST_TRIED:]
        undone = [self._version([other for other in found if other is not change]) for change in tried]
        alone = [self._version([change]) for change in tried]
        others = [self._version(tried)] if left else []
        versions = [*undone, *alone, *others]
        self._open(versions)
        numbers = range(len(pairs))
        with ThreadPoolExecutor(cores()) as pool:
            each = pool.map(
                lambda task: self._moments_of(network, *task), itertools.product(versions, numbers)
            )
            made = [list(itertools.islice(each, len(numbers))) for _ in versions]
        costs = [
            Cost(
                change,
                _later(now, without),
                _later(only, before),
                bool(self.head.touched((change,)) & on_path),
            )
            for change, without, only in zip(tried, made, made[len(tried) :], strict=False)
        ]
        others_ms = _later(now, made[-1]).get("plt") if left else None
        return tuple(sorted(costs, key=lambda cost: abs(cost.ms), reverse=True)), others_ms

    def _version(self, made: Sequence[Change]) -> Version:
        """The base with some of the changes. Each is made once for all networks, also base and head."""
        ordered = tuple(change for change in self.changes.found if change in made)
        if ordered not in self._between:
            name = f"between-{len(self._between)}"
            self._between[ordered] = self.changes.version(ordered, name)
        return self._between[ordered]


def _near(network: Network, number: int) -> Path:
    """The path of a pair, the same for both sides: the network's own for the first, else one close to it."""
    path = network.path
    if number == 0:
        return path
    draw = random.Random(f"{network.plan.seed} {number}")

    def near(value: float) -> float:
        return value * (1 + draw.uniform(-SPREAD, SPREAD))

    rtt_ms, down, up = near(path.rtt_ms), near(path.down_bps or 0), near(path.up_bps or 0)
    if path.down_trace or path.up_trace:
        return replace(path, rtt_ms=rtt_ms)
    up = down if path.topology == "star" else up
    return replace(path, rtt_ms=rtt_ms, down_bps=round(down) or None, up_bps=round(up) or None)


def _later(late: Sequence[Moments], early: Sequence[Moments]) -> Differences:
    """By how much each moment is later, ms, as the median of pairs."""
    pairs = list(zip(early, late, strict=True))
    return {name: median(found.each_ms) for name in NAMES if (found := later(name, pairs))}


def _load_id(network: Network, page: Page, number: int) -> str:
    return f"{network.name}-{page.name}-{number}"


def _planned(network: Network, page: Page, engine: str, number: int, more_seed: int = 0) -> PlannedLoad:
    return replace(
        load_under(network.plan),
        load_id=_load_id(network, page, number),
        page=page.name,
        path=network.path,
        seed=network.plan.seed + number + more_seed,
        engine=engine,
        block=number,
        repeat=number,
    )


def _load(engine: Engine, network: Network, page: LoadedPage, number: int, more_seed: int) -> Record:
    """One load on the virtual clock.

    Raises:
        ExperimentError: The load failed.
    """
    kept: list[Record] = []
    planned = _planned(network, page.page, "simulate", number, more_seed)
    make_block(engine, lambda _: page, Block(number, (planned,)), lambda _: 0, kept.append)
    _refuse_failed(kept[-1])
    return kept[-1]


def _refuse_failed(record: Record) -> None:
    load = record["load"]
    if load["status"] != "ok":
        raise ExperimentError(
            f"{load['load_id']}: the load failed: {load['error']}",
            "load the two pages with firstflight run to see more",
        )


class _Taken:
    """Collects the loads of the real kernel from several threads; keeps the last attempt of each."""

    def __init__(self, observer: Observer) -> None:
        self.records: dict[str, Record] = {}
        self._observer = observer
        self._failures = Counter[str]()

    def attempts(self, planned: PlannedLoad) -> int:
        """0: no load was made before this run."""
        del planned
        return 0

    def add(self, record: Record) -> None:
        """Keeps an attempt.

        Raises:
            ExperimentError: The load failed.
            LabError: The laboratory failed `MAX_FAILURES` times for one load.
        """
        name = record["load"]["load_id"]
        if is_instrument_failure(record):
            self._failures[name] += 1
            if self._failures[name] >= MAX_FAILURES:
                raise LabError(str(record["load"]["error"]), str(record["hint"]))
        elif is_settled(record):
            _refuse_failed(record)
            self.records[name] = record
            self._observer.advance()

    def warn(self, planned: int) -> None:
        """Warns how many loads still had a late relay in their last attempt."""
        late = sum(bool(record["relay"].get("late")) for record in self.records.values())
        if late:
            self._observer.warn(
                f"the relay was late in {late} of {plural(planned, 'load')}: their times are too long",
                "is the machine busy? stop other work, then run again",
            )
