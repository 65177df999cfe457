"""The order of loads: blocks of paired modes, shuffled by the plan's seed.

A block is one repeat of all modes of a page and path, back to back, so that whatever drifts (heat, other
work on the machine) meets every mode alike. Inside blocks the order is balanced: over each run of as many
repeats as there are modes, every mode stands in every place once.

With `until` the blocks come in rounds, each shuffled for itself: `FIRST_LOOK` repeats of every cell, then a
quarter more at a time. No round is cut short: the last one is the last whole round within `most_repeats`,
so that a block has the same number under every cap. Cells that need no more are left out of later rounds.

Nothing drifts on a virtual clock: simulated blocks are not shuffled, so that those of a page, which needs to
be opened for them, stand together. A simulated cell in which nothing is drawn by lot has one block.
"""

import hashlib
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, overload

from firstflight.engines.task import Path, PlannedLoad
from firstflight.experiment.plan import FIRST_LOOK, Plan
from firstflight.results.schema import is_drawn

_CELLS_AT_HAND = 4096


@dataclass(frozen=True)
class Block:
    """One unit of work: its loads are made one after the other in one slot."""

    number: int
    loads: tuple[PlannedLoad, ...]


class Schedule(Sequence[Block]):
    """Every load of a plan in the order in which it is made; a block is laid out when it is asked for.

    The same plan and pages give the same blocks on every machine. What the schedule itself holds is a
    number per block.

    Args:
        plan: What is measured.
        pages: Names of the pages, distinct.
    """

    def __init__(self, plan: Plan, pages: Sequence[str]) -> None:
        self.pages = tuple(pages)
        self._plan = plan
        self._settings = plan.settings()
        self._turns = _turns(plan)
        self._repeats = self._turns[-1].stop
        self._is_drawn = [
            is_drawn({**path.columns(), "engine": plan.engine, "cookies": cookies})
            for path, cookies in self._settings
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
        return Block(number, tuple(_planned(self._plan, unit, number, n) for n in range(len(unit.modes))))

    @property
    def loads(self) -> int:
        """How many loads are planned."""
        return len(self) * self.modes

    @property
    def modes(self) -> int:
        """Loads in a block."""
        return len(self._plan.mode)

    @property
    def cells(self) -> int:
        """How many cells are planned: pages by paths by cookie states by modes."""
        return self.pairs * self.modes

    @property
    def pairs(self) -> int:
        """How many cell pairs are planned: pages by paths by cookie states."""
        return len(self.pages) * len(self._settings)

    @property
    def most_repeats(self) -> int:
        """Repeats of a cell when every round is made: with `until`, `most_repeats` down to a whole round."""
        return self._repeats

    @property
    def rounds(self) -> list[range]:
        """The numbers of the blocks of each round; all of them in one without `until`."""
        return [blocks for blocks in self._rounds if blocks]

    def is_exact(self, pair: int) -> bool:
        """Whether nothing of a cell pair is drawn by lot: it has one block, whatever the repeats."""
        return not self._is_drawn[pair % len(self._settings)]

    def pair(self, block: int) -> int:
        """The number of the cell pair of a block, below `pairs`."""
        return self._units[block] // self._repeats

    def pair_name(self, pair: int) -> str:
        """Page, RTT and, of several, cookie state of a cell pair, for people."""
        page, setting = divmod(pair, len(self._settings))
        path, cookies = self._settings[setting]
        state = f" {cookies}" if len(self._plan.cookies) > 1 else ""
        return f"{self.pages[page]} {path.rtt_ms:g} ms{state}"

    def cell(self, order: int, mode: str) -> int:
        """The number of the cell of a load, below `cells`."""
        return self.pair(order // self.modes) * self.modes + self._plan.mode.index(mode)

    def load_id(self, order: int) -> str:
        """The name of the load at that place in the order; `IndexError` where nothing is planned there."""
        number, place = divmod(range(self.loads)[order], self.modes)
        unit = self._unit(self._units[number])
        return _load_id(self._plan, unit, unit.modes[place])

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
            _dice(self._plan.seed, "blocks", *([turn.start] if turn.start else [])).shuffle(units)
        return units

    def _unit(self, number: int) -> "_Unit":
        cell, repeat = divmod(number, self._repeats)
        page, setting = divmod(cell, len(self._settings))
        path, cookies = self._settings[setting]
        name = _cell(self.pages[page], path)
        modes = _orders(self._plan.mode, self._repeats, self._plan.seed, name)[repeat]
        return _Unit(self.pages[page], path, cookies, repeat + 1, modes)


def load_id(page: str, path: Path, mode: str, repeat: int, cookies: str = "") -> str:
    """A name for a load, the same in every run of the plan: `wikipedia-r100-d4-u0.256-access-tfo-003`.

    `r` is the RTT in ms, `d` and `u` the rates in Mbit/s (`inf` is unlimited); repeats count from 1. Where
    several cookie states are measured, theirs stands before the mode: `-access-pool3-tfo-003`.
    """
    state = f"-{cookies.replace(':', '')}" if cookies else ""
    return f"{_cell(page, path)}{state}-{mode}-{repeat:03d}"


def factors(plan: Plan) -> dict[str, Any]:
    """What of a plan is the same for all of its loads and defines them."""
    return {name: getattr(plan, name) for name in _FACTORS}


_FACTORS = sorted(
    PlannedLoad.__dataclass_fields__.keys() & Plan.model_fields.keys() - {"path", "mode", "seed", "cookies"}
)


def _turns(plan: Plan) -> list[range]:
    """The repeats of each round, from 0. What is added balances the places of modes by itself."""
    if plan.until == "off":
        return [range(plan.repeats)]
    turns = [range(max(plan.repeats, FIRST_LOOK))]
    while True:
        made = turns[-1].stop
        more = len(plan.mode) * max(1, made // (4 * len(plan.mode)))
        if made + more > plan.most_repeats:
            return turns
        turns.append(range(made, made + more))


def _load_id(plan: Plan, unit: "_Unit", mode: str) -> str:
    cookies = unit.cookies if len(plan.cookies) > 1 else ""
    return load_id(unit.page, unit.path, mode, unit.repeat, cookies)


class _Unit(NamedTuple):
    """What becomes a block once its place in the run is drawn."""

    page: str
    path: Path
    cookies: str
    repeat: int
    modes: tuple[str, ...]


@lru_cache(_CELLS_AT_HAND)
def _orders(modes: tuple[str, ...], repeats: int, seed: int, cell: str) -> tuple[tuple[str, ...], ...]:
    """The order of modes in each repeat of a cell; of few orders and many repeats each order is held once."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    orders = islice(_balanced_orders(modes, _dice(seed, "order", cell)), repeats)
    return tuple(known.setdefault(order, order) for order in orders)


def _balanced_orders(modes: Sequence[str], dice: random.Random) -> Iterator[tuple[str, ...]]:
    while True:
        first = dice.sample(modes, len(modes))
        rotations = [(*first[turn:], *first[:turn]) for turn in range(len(modes))]
        dice.shuffle(rotations)
        yield from rotations


def _planned(plan: Plan, unit: _Unit, block: int, place: int) -> PlannedLoad:
    mode = unit.modes[place]
    return PlannedLoad(
        load_id=_load_id(plan, unit, mode),
        block=block,
        order=block * len(unit.modes) + place,
        repeat=unit.repeat,
        page=unit.page,
        path=unit.path,
        mode=mode,
        seed=_dice(plan.seed, "path", _cell(unit.page, unit.path), unit.repeat).getrandbits(32),
        cookies=unit.cookies,
        **factors(plan),
    )


def _cell(page: str, path: Path) -> str:
    rates = f"d{_mbps(path.down_bps)}-u{_mbps(path.up_bps)}"
    return f"{page}-r{path.rtt_ms:.12g}-{rates}-{path.topology}"


def _dice(seed: int, *purpose: str | int) -> random.Random:
    """Dice of its own for each purpose, so that one page or path more leaves the others' as they were."""
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def _mbps(rate_bps: int | None) -> str:
    return "inf" if rate_bps is None else f"{rate_bps / 1e6:.12g}"
