"""How much sooner a typical load is: the shift between paired samples, by Hodges and Lehmann."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from firstflight.analysis.statistics import CONFIDENCE

EXACT_BLOCKS = 200
"""Most blocks whose signed-rank distribution is counted. Of more, the normal one gives the same, or one mean
further out of more than 20,000."""


class Shift(TypedDict):
    """A signed saving in ms with its interval; positive means that TFO is faster."""

    point: float | None
    low: float | None
    high: float | None


def shift(tcp_ms: Sequence[float], tfo_ms: Sequence[float]) -> Shift:
    """PLT_tcp - PLT_tfo by Hodges and Lehmann: the median of all means of two differences, ms.

    The interval is Tukey's, from the distribution of Wilcoxon's signed-rank statistic (Hollander, Wolfe,
    Chicken, "Nonparametric Statistical Methods", 3.3), exact up to `EXACT_BLOCKS`; below six blocks none
    reaches 95 %.

    Args:
        tcp_ms: PLT without, one per paired block.
        tfo_ms: PLT with, in the same order of blocks.
    """
    if not tcp_ms:
        return {"point": None, "low": None, "high": None}
    differences = np.sort(np.subtract(tcp_ms, tfo_ms))
    means = len(differences) * (len(differences) + 1) // 2
    middle = (_mean_of_two(differences, (means - 1) // 2) + _mean_of_two(differences, means // 2)) / 2
    outside = _signed_rank_quantile(len(differences), (1 - CONFIDENCE) / 2)
    if outside is None:
        return {"point": middle, "low": None, "high": None}
    low, high = (_mean_of_two(differences, place) for place in (outside, means - 1 - outside))
    return {"point": middle, "low": low, "high": high}


def _mean_of_two(ascending: NDArray[np.float64], place: int) -> float:
    """The mean of two values, or of one with itself, that has so many such means below it.

    Found by halving, as they are too many to be listed.
    """
    low, high = float(ascending[0]), float(ascending[-1])
    if _means_up_to(ascending, low) > place:
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if _means_up_to(ascending, middle) > place else (middle, high)
    return high


def _means_up_to(ascending: NDArray[np.float64], bound: float) -> int:
    ordered_pairs = np.searchsorted(ascending, 2 * bound - ascending, side="right").sum()
    return int(ordered_pairs + np.searchsorted(ascending, bound, side="right")) // 2


def _signed_rank_quantile(blocks: int, tail: float) -> int | None:
    """How many means lie outside the interval on each side; None if even none is too many."""
    if blocks > EXACT_BLOCKS:
        middle, deviation = (
            blocks * (blocks + 1) / 4,
            math.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24),
        )
        return int(stats.norm.ppf(tail, middle, deviation))
    below = int(np.searchsorted(np.cumsum(_signed_rank_chances(blocks)), tail, side="right"))
    return below - 1 if below else None


def _signed_rank_chances(blocks: int) -> NDArray[np.float64]:
    """The share of the subsets of the ranks 1..n that have each sum: the statistic's when nothing differs."""
    chances = np.ones(1)
    for rank in range(1, blocks + 1):
        without = np.zeros(rank)
        chances = (np.append(chances, without) + np.append(without, chances)) / 2
    return chances
