"""How often intervals hold the truth, where the truth is known: the tables of docs/statistics.md.

    python scripts/interval_coverage.py [ROUNDS]

Blocks are drawn as a noisy machine makes them: a level of its own for each block (0.5 %), on top of it each
load's noise. The modes do not differ. What holds for no effect holds for any: times of one mode all a
tenth less move interval and truth alike. Resamples are a tenth of those in use: as good for counting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from firstflight.analysis import statistics
from firstflight.analysis.shift import Shift, shift
from firstflight.analysis.statistics import Improvement, improvement
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.sources import resolve

Dice = np.random.Generator
Pair = tuple[list[float], list[float]]
Draw = Callable[[Dice, int], NDArray[np.float64]]

NOISES: dict[str, tuple[Draw, str]] = {
    "normal, 1 %": (lambda dice, n: np.exp(0.01 * dice.standard_normal(n)), "2%"),
    "normal, 5 %": (lambda dice, n: np.exp(0.05 * dice.standard_normal(n)), "6%"),
    "heavy tails (t, 3 degrees), 1 %": (lambda dice, n: np.exp(0.01 * dice.standard_t(3, n)), "2%"),
    "skewed (exponential), 3 %": (lambda dice, n: 1 + dice.exponential(0.03, n), "4%"),
    "1 %, one load in ten 10 % later": (
        lambda dice, n: np.exp(0.01 * dice.standard_normal(n)) * (1 + 0.1 * (dice.random(n) < 0.1)),
        "2%",
    ),
}
"""Noise by name, and a width to repeat until."""

BLOCKS = (5, 6, 8, 10, 20, 30)


def main(rounds: int) -> None:
    """Prints both tables."""
    statistics.RESAMPLES = 999
    _print("noise", "until", "improvement", "false faster", "false slower", "blocks, median", "at the cap")
    _print(*["---"] * 7)
    for name in NOISES:
        _print(*_until(name, rounds // 2))
    sys.stdout.write("\n")
    _print("noise", "blocks", "improvement", "false faster", "false slower", "shift")
    _print(*["---"] * 6)
    for name in NOISES:
        for count in BLOCKS:
            _print(*_fixed(name, count, rounds))


def _fixed(name: str, count: int, rounds: int) -> list[str]:
    dice = np.random.default_rng(count)
    pairs = [_blocks(NOISES[name][0], dice, count) for _ in range(rounds)]
    return [
        name,
        str(count),
        *_shares([improvement(*pair) for pair in pairs]),
        _shares([shift(*pair) for pair in pairs])[0],
    ]


def _until(name: str, rounds: int) -> list[str]:
    draw, width = NOISES[name]
    plan = resolve({"until": width, "pages": ["page"], "rtt": "100"})
    looks = [numbers.stop for numbers in Schedule(plan, ["page"]).rounds]
    dice = np.random.default_rng(1)
    found = [_stopped(_blocks(draw, dice, looks[-1]), looks, float(plan.until)) for _ in range(rounds)]
    counts = [count for _, count in found]
    capped = sum(count == looks[-1] for count in counts) / rounds
    return [
        name,
        width,
        *_shares([interval for interval, _ in found]),
        f"{median(counts):.0f}",
        _percent(capped),
    ]


def _stopped(pair: Pair, looks: Sequence[int], width: float) -> tuple[Improvement, int]:
    """The interval at the first look at which it is narrow, or at the last."""
    for count in looks:
        found = improvement(pair[0][:count], pair[1][:count])
        low, high = _ends(found)
        if high - low <= width:
            break
    return found, count


def _blocks(draw: Draw, dice: Dice, count: int) -> Pair:
    level = 1000 * np.exp(dice.normal(0, 0.005, count))
    return list(level * draw(dice, count)), list(level * draw(dice, count))


def _shares(found: Sequence[Improvement | Shift]) -> list[str]:
    """How often an interval holds 0, lies above it, and below it; dashes where there is none."""
    if found[0]["low"] is None:
        return ["-"] * 3
    above = sum(_ends(one)[0] > 0 for one in found) / len(found)
    below = sum(_ends(one)[1] < 0 for one in found) / len(found)
    return [_percent(1 - above - below), _percent(above), _percent(below)]


def _ends(found: Improvement | Shift) -> tuple[float, float]:
    assert found["low"] is not None and found["high"] is not None
    return found["low"], found["high"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _print(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
