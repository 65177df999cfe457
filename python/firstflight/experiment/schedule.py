"""The order of loads: blocks of paired modes, shuffled by the plan's seed.

A block is one repeat of all modes of a page and path, back to back, so that whatever drifts (heat, other
work on the machine) meets every mode alike. Inside blocks the order is balanced: over each run of as many
repeats as there are modes, every mode stands in every place once.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from firstflight.engines.task import Path, PlannedLoad
from firstflight.experiment.plan import Plan


@dataclass(frozen=True)
class Block:
    """One unit of work: its loads are made one after the other in one slot."""

    number: int
    loads: tuple[PlannedLoad, ...]


def schedule(plan: Plan, pages: Sequence[str]) -> list[Block]:
    """Lays out every load of `plan` in the order in which it is made.

    The same plan and pages give the same blocks on every machine.

    Args:
        plan: What is measured.
        pages: Names of the opened pages, distinct.
    """
    units = [unit for page in pages for path in plan.paths() for unit in _repeats(plan, page, path)]
    _dice(plan.seed, "blocks").shuffle(units)
    return [
        Block(number, tuple(_planned(plan, unit, number, place) for place in range(len(unit.modes))))
        for number, unit in enumerate(units)
    ]


def load_id(page: str, path: Path, mode: str, repeat: int) -> str:
    """A name for a load, the same in every run of the plan: `wikipedia-r100-d4-u0.256-access-tfo-003`.

    `r` is the RTT in ms, `d` and `u` the rates in Mbit/s (`inf` is unlimited); repeats count from 1.
    """
    return f"{_cell(page, path)}-{mode}-{repeat:03d}"


class _Unit(NamedTuple):
    """What becomes a block once its place in the run is drawn."""

    page: str
    path: Path
    repeat: int
    modes: list[str]


def _repeats(plan: Plan, page: str, path: Path) -> Iterator[_Unit]:
    orders = _balanced_orders(plan.mode, _dice(plan.seed, "order", _cell(page, path)))
    for repeat, modes in enumerate(islice(orders, plan.repeats), start=1):
        yield _Unit(page, path, repeat, modes)


def _balanced_orders(modes: Sequence[str], dice: random.Random) -> Iterator[list[str]]:
    while True:
        first = dice.sample(modes, len(modes))
        rotations = [first[turn:] + first[:turn] for turn in range(len(modes))]
        dice.shuffle(rotations)
        yield from rotations


def _planned(plan: Plan, unit: _Unit, block: int, place: int) -> PlannedLoad:
    mode = unit.modes[place]
    return PlannedLoad(
        load_id=load_id(unit.page, unit.path, mode, unit.repeat),
        block=block,
        order=block * len(unit.modes) + place,
        repeat=unit.repeat,
        page=unit.page,
        path=unit.path,
        mode=mode,
        seed=_dice(plan.seed, "path", _cell(unit.page, unit.path), unit.repeat).getrandbits(32),
        client=plan.client,
        engine=plan.engine,
        cookies=plan.cookies,
        keep_alive=plan.keep_alive,
        scheme=plan.scheme,
        post_quantum=plan.post_quantum,
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
