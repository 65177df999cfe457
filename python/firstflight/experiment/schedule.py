"""The order of loads: blocks of paired treatments, shuffled by the plan's seed.

A block is one repeat of all treatments of a page and path, made back to back. So whatever drifts (heat, other
work on the machine) affects every treatment alike. The order inside blocks is balanced: in each group of as
many repeats as there are treatments, every treatment has every position once.

With `until` the blocks come in rounds, each shuffled separately. The first round has `FIRST_LOOK` repeats of
every cell, each further round about a quarter more. No round is cut short: the last one is the last whole
round within `most_repeats`, so a block has the same number whatever that limit is. Later rounds leave out the
cells that need no more repeats.

Nothing drifts on a virtual clock, so simulated blocks are not shuffled: the blocks of a page stay together,
and the page is opened once. A simulated cell without any random draw has one block.
"""

import hashlib
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, overload

from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path
from firstflight.model.plan import FIRST_LOOK, Plan
from firstflight.results.schema import is_drawn

_CELLS_AT_HAND = 4096


@dataclass(frozen=True)
class Block:
    """Loads that are made one after the other in one slot."""

    number: int
    loads: tuple[PlannedLoad, ...]

    @property
    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings that its loads use: one page, or one version for each treatment."""
        return tuple(dict.fromkeys(load.recording for load in self.loads))


class Schedule(Sequence[Block]):
    """Every load of a plan in the order in which it is made. A block is built when it is asked for.

    The same plan and pages give the same blocks on every machine. The schedule itself stores one number per
    block.

    Args:
        plan: What is measured.
        pages: Names of the pages, distinct.
    """

    def __init__(self, plan: Plan, pages: Sequence[str]) -> None:
        self.pages = tuple(pages)
        self._plan = plan
        self._treatments = _arms(plan)
        self._names = tuple(self._treatments)
        self._baseline = plan.baseline
        self._settings = plan.settings()
        self._turns = _turns(plan, len(self._names))
        self._repeats = self._turns[-1].stop
        self._is_drawn = [
            any(
                is_drawn({**path.columns(), "engine": plan.engine, "cookies": cookies})
                for path, cookies in settings
            )
            for settings in zip(*(arm.settings for arm in self._treatments.values()), strict=True)
        ]
        self._units = array("L")
        self._rounds: list[range] = []
        for turn in self._turns:
            begin = len(self._units)
            self._units.extend(self._shuffled(turn))
            self._rounds.append(range(begin, len(self._units)))

    def __len__(self) -> int:
        return len(self._units)

    @overload
    def __getitem__(self, number: int) -> Block: ...
    @overload
    def __getitem__(self, number: slice) -> list[Block]: ...
    def __getitem__(self, number: int | slice) -> Block | list[Block]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        unit = self._unit(self._units[number])
        return Block(number, tuple(self._planned(unit, number, n) for n in range(len(self._names))))

    @property
    def loads(self) -> int:
        """How many loads are planned."""
        return len(self) * self.block_size

    @property
    def block_size(self) -> int:
        """Loads in a block: one of each treatment."""
        return len(self._names)

    @property
    def treated(self) -> tuple[str, ...]:
        """Names of the treatments that are compared with the baseline."""
        return tuple(name for name in self._names if name != self._baseline)

    @property
    def cells(self) -> int:
        """How many cells are planned: pages by paths by cookie states by treatments."""
        return self.pairs * self.block_size

    @property
    def pairs(self) -> int:
        """How many groups of cells share their blocks: pages by paths by cookie states."""
        return len(self.pages) * len(self._settings)

    @property
    def most_repeats(self) -> int:
        """Repeats of a cell when every round is made; with `until`, whole rounds within `most_repeats`."""
        return self._repeats

    @property
    def rounds(self) -> list[range]:
        """The block numbers of each round; without `until` there is one round."""
        return [blocks for blocks in self._rounds if blocks]

    def is_exact(self, pair: int) -> bool:
        """Whether a group of cells has no random draw. It then has one block, whatever the repeats."""
        return not self._is_drawn[pair % len(self._settings)]

    def pair(self, block: int) -> int:
        """The index of a block's group of cells, below `pairs`."""
        return self._units[block] // self._repeats

    def pair_name(self, pair: int) -> str:
        """A name of a group of cells for people: page, RTT and, if there are several, cookie state."""
        page, setting = divmod(pair, len(self._settings))
        path, cookies = self._settings[setting]
        state = f" {cookies}" if len(self._plan.cookies) > 1 else ""
        return f"{self.pages[page]} {path.rtt_ms:g} ms{state}"

    def cell(self, order: int, treatment: str) -> int:
        """The index of a load's cell, below `cells`."""
        return self.pair(order // self.block_size) * self.block_size + self._names.index(treatment)

    def load_id(self, order: int) -> str:
        """The name of the load at that position; `IndexError` where none is planned."""
        number, place = divmod(range(self.loads)[order], self.block_size)
        unit = self._unit(self._units[number])
        return self._load_id(unit, unit.treatments[place])

    def _shuffled(self, turn: range) -> "array[int]":
        units = array(
            "L",
            (
                pair * self._repeats + repeat
                for pair in range(self.pairs)
                for repeat in turn
                if repeat == 0 or not self.is_exact(pair)
            ),
        )
        if self._plan.engine == "emulate":
            _rng(self._plan.seed, "blocks", *([turn.start] if turn.start else [])).shuffle(units)
        return units

    def _unit(self, number: int) -> "_Unit":
        cell, repeat = divmod(number, self._repeats)
        page, setting = divmod(cell, len(self._settings))
        path, cookies = self._settings[setting]
        name = _cell(self.pages[page], path)
        order = _orders(self._names, self._repeats, self._plan.seed, name)[repeat]
        return _Unit(self.pages[page], path, cookies, setting, repeat + 1, order)

    def _load_id(self, unit: "_Unit", treatment: str) -> str:
        cookies = unit.cookies if len(self._plan.cookies) > 1 else ""
        return load_id(unit.page, unit.path, treatment, unit.repeat, cookies)

    def _planned(self, unit: "_Unit", block: int, place: int) -> PlannedLoad:
        name = unit.treatments[place]
        arm = self._treatments[name]
        path, cookies = arm.settings[unit.setting]
        return replace(
            arm.load,
            load_id=self._load_id(unit, name),
            block=block,
            order=block * self.block_size + place,
            repeat=unit.repeat,
            page=unit.page,
            path=path,
            seed=_rng(self._plan.seed, "path", _cell(unit.page, unit.path), unit.repeat).getrandbits(32),
            cookies=cookies,
            treatment=name,
            baseline=self._baseline,
        )


def load_id(page: str, path: Path, treatment: str, repeat: int, cookies: str = "") -> str:
    """The name of a load, equal in every run of the plan: `wikipedia-r100-d4-u0.256-access-tfo-003`.

    `r` is the RTT in ms, `d` and `u` are the rates in Mbit/s (`inf`: unlimited). They are those of the plan,
    even where a treatment changes the path. Repeats count from 1. Where several cookie states are measured,
    the state stands before the treatment: `-access-pool3-tfo-003`.
    """
    state = f"-{cookies.replace(':', '')}" if cookies else ""
    return f"{_cell(page, path)}{state}-{treatment.replace(':', '')}-{repeat:03d}"


def load_under(plan: Plan) -> PlannedLoad:
    """What all loads of a plan under one treatment have in common: a load without a position in the run."""
    [mode] = plan.mode
    factors: Any = {name: getattr(plan, name) for name in _FACTORS}
    return PlannedLoad("", 0, 0, 1, "", plan.paths()[0], mode, plan.seed, **factors)


_FACTORS = sorted(
    PlannedLoad.__dataclass_fields__.keys()
    & Plan.model_fields.keys() - {"mode", "seed", "cookies", "treatment"}
)


class _Arm(NamedTuple):
    """A plan under one treatment: its paths and cookie states, and what all of its loads have in common."""

    settings: list[tuple[Path, str]]
    load: PlannedLoad


def _arms(plan: Plan) -> dict[str, _Arm]:
    """The arms by treatment name, in the order of the plan."""
    compared = tuple(dict.fromkeys(key for one in plan.treatments for key, _ in one.keys))
    versions: dict[tuple[str, ...], str] = {(page,): name for name, page in plan.versions.items()}
    return {
        name: _Arm(
            arm.settings(),
            replace(load_under(arm), compared=compared, version=versions.get(arm.pages, "")),
        )
        for name, arm in plan.arms().items()
    }


def _turns(plan: Plan, treatments: int) -> list[range]:
    """The repeats of each round, from 0. What is added keeps the order of treatments balanced."""
    if plan.until == "off":
        return [range(plan.repeats)]
    turns = [range(max(plan.repeats, FIRST_LOOK))]
    while True:
        made = turns[-1].stop
        more = treatments * max(1, made // (4 * treatments))
        if made + more > plan.most_repeats:
            return turns
        turns.append(range(made, made + more))


class _Unit(NamedTuple):
    """A block before its position in the run is drawn. Path and cookies are those of the plan."""

    page: str
    path: Path
    cookies: str
    setting: int
    repeat: int
    treatments: tuple[str, ...]


@lru_cache(_CELLS_AT_HAND)
def _orders(names: tuple[str, ...], repeats: int, seed: int, cell: str) -> tuple[tuple[str, ...], ...]:
    """The order of treatments in each repeat of a cell. Equal orders share one tuple, to save memory."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    orders = islice(_balanced_orders(names, _rng(seed, "order", cell)), repeats)
    return tuple(known.setdefault(order, order) for order in orders)


def _balanced_orders(names: Sequence[str], rng: random.Random) -> Iterator[tuple[str, ...]]:
    while True:
        first = rng.sample(names, len(names))
        rotations = [(*first[turn:], *first[:turn]) for turn in range(len(names))]
        rng.shuffle(rotations)
        yield from rotations


def _cell(page: str, path: Path) -> str:
    rates = f"d{_mbps(path.down_bps)}-u{_mbps(path.up_bps)}"
    return f"{page}-r{path.rtt_ms:.12g}-{rates}-{path.topology}"


def _rng(seed: int, *purpose: str | int) -> random.Random:
    """A random generator for each purpose, so that adding a page or path does not change the others."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def _mbps(rate_bps: int | None) -> str:
    return "inf" if rate_bps is None else f"{rate_bps / 1e6:.12g}"
