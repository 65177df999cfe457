"""The gate's loads: pairs of base and head on a network, and on the virtual clock what each change costs.

What a change costs is what undoing it alone saves, and what it adds as the only change: where two changes
delay the same moment side by side, undoing either saves nothing, and each alone costs its time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from firstflight.analysis.changes import Change, Changes, Version
from firstflight.engines.engine import Engine, Record
from firstflight.errors import ExperimentError, UsageError
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.recorder import make_block
from firstflight.experiment.schedule import Block, load_under
from firstflight.experiment.setup import EngineSetup
from firstflight.gate.moments import NAMES, Differences, Moments, moments, render_page, waited_for
from firstflight.model.page import LoadedPage
from firstflight.model.path import Path
from firstflight.model.plan import Plan
from firstflight.observer import Observer
from firstflight.results import LoadRecord
from firstflight.results.schema import is_drawn

MOST_TRIED = 12
"""Changes that are undone one at a time, largest first; the others together."""

STEADY_PAIRS, DRAWN_PAIRS = 11, 21
"""Pairs of loads on a virtual clock: on a network without randomness, and on one that draws lots."""

_PAIRS_OF_COSTS = 3

SPREAD = 0.05
"""RTT and rates of the pairs after the first differ from the network's by up to this share."""

Pair = tuple[LoadRecord, LoadRecord]
"""A load of the base and one of the head, alike in all else."""


@dataclass(frozen=True)
class Network:
    """A path by name, with the plan that makes one load on it."""

    name: str
    plan: Plan
    path: Path


@dataclass(frozen=True)
class Cost:
    """What a change costs on a network.

    Attributes:
        change: The change.
        undone_ms: By how much each moment is earlier without it.
        alone_ms: By how much each moment is later if it is the only change.
        is_on_path: Whether the load event waits for its requests.
    """

    change: Change
    undone_ms: Differences
    alone_ms: Differences
    is_on_path: bool

    @property
    def ms(self) -> float:
        """By how much it delays the moment that it delays most, ms; negative: it makes some earlier."""
        found = [*self.undone_ms.values(), *self.alone_ms.values()]
        most = max(found, default=0.0)
        return most if most > 0 else min(found, default=0.0)


@dataclass(frozen=True)
class Trial:
    """Loads on a network.

    Attributes:
        pairs: Loads of both sides; one where nothing changed.
        moments: Their moments; of loads on the real kernel the load event alone.
        costs: What changes cost, most first.
        others_ms: By how much the load event is earlier without the changes that are not in `costs`.
    """

    pairs: list[Pair]
    moments: list[tuple[Moments, Moments]]
    costs: tuple[Cost, ...] = ()
    others_ms: float | None = None


def networks(names: Sequence[str], keys: dict[str, object]) -> list[Network]:
    """The paths of these names.

    Args:
        names: Presets, or TOML files of path keys.
        keys: Other keys of a plan, as flags hold them.

    Raises:
        UsageError: There is no such path, it is several, or a key is wrong.
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
    """Loads of the base, of the head, and of what lies between."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.base = changes.version((), "base")
        self.head = changes.version(changes.found, "head")
        self._opened: dict[str, tuple[LoadedPage, LoadedPage]] = {}
        self._simulator = EngineSetup("simulate", ("loader",))()
        self._between: dict[tuple[Change, ...], Version] = {}

    def simulated(self, network: Network) -> Trial:
        """Pairs on the virtual clock with the costs of the changes.

        A packet more may cost a page a whole round trip, or save it one, where two requests race for a
        connection. So pairs are loaded on paths close to the network's, on which such races end either way.
        """
        pairs: list[Pair] = []
        both: list[tuple[Moments, Moments]] = []
        is_drawn_by = is_drawn({**network.path.columns(), "engine": "simulate", "cookies": "warm"})
        count = DRAWN_PAIRS if is_drawn_by else STEADY_PAIRS
        for number in range(count if self.changes.found else 1):
            base, before = self._simulated(network, self.base, number)
            head, now = self._simulated(network, self.head, number) if self.changes.found else (base, before)
            pairs.append((base, head))
            both.append((before, now))
        costs, others_ms = self._costs(network, pairs[0][1], both[:_PAIRS_OF_COSTS])
        return Trial(pairs, both, costs, others_ms)

    def emulated(self, network: Network, observer: Observer) -> list[Pair]:
        """Pairs on the real kernel, each in random order.

        Raises:
            ExperimentError: A load failed, or the laboratory did.
        """
        engine = EngineSetup("emulate", ("loader",))()
        engine.calibrate(network.path)
        order = random.Random(network.plan.seed)
        pairs: list[Pair] = []
        for number in range(network.plan.repeats):
            sides = [LoadedPage(self.base.page), LoadedPage(self.head.page)]
            order.shuffle(sides)
            made: dict[str, Record] = {}
            for page in sides:
                made[page.page.name] = _load(engine, network, page, "emulate", number)
                observer.advance()
            pairs.append((made["base"], made["head"]))
        return pairs

    def _simulated(self, network: Network, version: Version, number: int) -> tuple[Record, Moments]:
        """A load of a page, and its moments."""
        name = version.page.name
        if name not in self._opened:
            self._opened[name] = LoadedPage(version.page), LoadedPage(render_page(version.page))
        page, render = self._opened[name]
        near = replace(network, path=_near(network, number))
        whole, rendered = (_load(self._simulator, near, one, "simulate", number) for one in (page, render))
        return whole, moments(whole, rendered, render.page)

    def _costs(
        self, network: Network, head_load: LoadRecord, pairs: Sequence[tuple[Moments, Moments]]
    ) -> tuple[tuple[Cost, ...], float | None]:
        head, found = self.head.page, self.changes.found
        before, now = [one for one, _ in pairs], [other for _, other in pairs]
        on_path = waited_for("plt", head_load, head)

        def with_changes(made: Sequence[Change]) -> list[Moments]:
            version = self._version(tuple(made))
            return [self._simulated(network, version, number)[1] for number in range(len(pairs))]

        def size(change: Change) -> float:
            touched = self.head.touched((change,))
            times = sum(float(value) for value in change.fields.values() if isinstance(value, float))
            kilobytes = sum(head.resources[index].wire_bytes for index in touched) / 1000
            return times + kilobytes + (1e9 if touched & on_path else 0.0)

        largest = sorted(found, key=size, reverse=True)
        costs = [
            Cost(
                change,
                _later(now, with_changes([other for other in found if other is not change])),
                _later(with_changes([change]), before),
                bool(self.head.touched((change,)) & on_path),
            )
            for change in largest[:MOST_TRIED]
        ]
        others_ms = None
        if largest[MOST_TRIED:]:
            others_ms = _later(now, with_changes(largest[:MOST_TRIED])).get("plt")
        return tuple(sorted(costs, key=lambda cost: abs(cost.ms), reverse=True)), others_ms

    def _version(self, made: tuple[Change, ...]) -> Version:
        """The base with some of the changes; each made once for all networks."""
        ordered = tuple(change for change in self.changes.found if change in made)
        if ordered not in self._between:
            name = f"between-{len(self._between)}"
            self._between[ordered] = self.changes.version(ordered, name)
        return self._between[ordered]


def _near(network: Network, number: int) -> Path:
    """The path of a pair: the network's own for the first, others close to it, the same for both sides."""
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
    """By how much each moment is later, the median of pairs, ms."""
    each = [one.later_than(other) for one, other in zip(late, early, strict=True)]
    return {name: median(one[name] for one in each) for name in NAMES if all(name in one for one in each)}


def _load(engine: Engine, network: Network, page: LoadedPage, name: str, number: int) -> Record:
    """One load, made again where the relay was late.

    Raises:
        ExperimentError: It failed.
    """
    planned = replace(
        load_under(network.plan),
        load_id=f"{network.name}-{page.page.name}-{number}",
        page=page.page.name,
        path=network.path,
        seed=network.plan.seed + number,
        engine=name,
        block=number,
        repeat=number,
    )
    kept: list[Record] = []
    make_block(engine, lambda _: page, Block(number, (planned,)), lambda _: 0, kept.append)
    load = kept[-1]["load"]
    if load["status"] != "ok":
        raise ExperimentError(
            f"{network.name}: a load of the {page.page.name} failed: {load['error']}",
            "load the two pages with firstflight run to see more",
        )
    return kept[-1]
