"""Wilcoxon's signed-rank inference from paired blocks: estimate, interval and p value of one statistic.

The estimand is the pseudo-median of the differences within blocks: the median of the mean of two of them. The
only assumption is that the differences are symmetric about it; differences of two equal noises always are.
Nothing is resampled: the distribution of the statistic is exact up to `EXACT_BLOCKS`, and normal beyond.

Sources: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", 3.1 to 3.3; ties and zeros by the
exact conditional distribution of mid-ranks (Pratt, Gibbons, "Concepts of Nonparametric Theory", chapter 3).
docs/statistics.md has the coverage by simulation and the reasons for this choice.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from firstflight.deferred import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Level of every interval."""

EXACT_BLOCKS = 200
"""Up to this many blocks the signed-rank distribution is exact. Beyond, the normal distribution gives the
same interval, or one that ends one mean further out, of more than 20,000."""

_TAIL = (1 - CONFIDENCE) / 2
_VALUES_AT_ONCE = 5_000_000


class Located(NamedTuple):
    """The estimate of a location and its interval; NaN if there are too few differences."""

    point: float
    low: float
    high: float


def locate(differences: ArrayLike) -> Located:
    """The Hodges-Lehmann estimate of some differences, with its interval.

    Args:
        differences: One per block.

    Returns:
        The median of all means of two differences (each also with itself), and the interval that inverts the
        signed-rank test. Its ends are interpolated between the two means whose levels enclose 95 %. With
        fewer than six blocks no level reaches 95 %, so the ends are NaN.
    """
    values = np.asarray(differences, float)
    if len(values) <= EXACT_BLOCKS:
        return Located(*(float(ends[0]) for ends in locate_all(values[None, :])))
    ascending = np.sort(values)
    means = _means(len(ascending))
    outside = int(NormalDist(means / 2, _deviation(len(ascending))).inv_cdf(_TAIL))
    point = (_mean_of_two(ascending, (means - 1) // 2) + _mean_of_two(ascending, means // 2)) / 2
    low, high = (_mean_of_two(ascending, place) for place in (outside, means - 1 - outside))
    return Located(point, low, high)


def locate_all(differences: Floats) -> tuple[Floats, Floats, Floats]:
    """As `locate`, for many cells with the same number of blocks: estimates, lower and upper ends.

    Args:
        differences: A row per cell, a column per block; at most `EXACT_BLOCKS`.
    """
    cells, blocks = differences.shape
    found = np.full((3, cells), math.nan)
    if blocks == 0:
        return found[0], found[1], found[2]
    first, second = np.triu_indices(blocks)
    means, place = len(first), _place(blocks)
    rows = max(1, _VALUES_AT_ONCE // means)
    for start in range(0, cells, rows):
        part = differences[start : start + rows]
        walsh = np.sort((part[:, first] + part[:, second]) / 2, axis=1)
        found[0, start : start + rows] = (walsh[:, (means - 1) // 2] + walsh[:, means // 2]) / 2
        if place is not None:
            for end, ordered in ((1, walsh), (2, walsh[:, ::-1])):
                found[end, start : start + rows] = _interpolated(ordered, *place)
    return found[0], found[1], found[2]


def p_value(differences: ArrayLike) -> float:
    """Two-sided p value of the signed-rank test: how likely so one-sided a result is by chance.

    Exact, also with ties: over all signs of the given absolute differences. Zeros are left out.

    Args:
        differences: One per block.
    """
    values = np.asarray(differences, float)
    values = values[values != 0]
    if not len(values):
        return 1.0
    doubled = _doubled_ranks(np.abs(values))
    statistic = int(doubled[values > 0].sum())
    total = int(doubled.sum())
    if len(values) > EXACT_BLOCKS:
        deviation = math.sqrt(float(np.square(doubled / 2).sum()) / 4)
        away = abs(statistic / 2 - total / 4) / deviation
        return math.erfc(away / math.sqrt(2))
    below = _cumulated(tuple(np.sort(doubled)))
    return min(1.0, 2 * float(below[min(statistic, total - statistic)]))


def p_values(differences: Floats) -> Floats:
    """As `p_value`, for many cells with the same number of blocks.

    Args:
        differences: A row per cell, a column per block; at most `EXACT_BLOCKS`.
    """
    cells, blocks = differences.shape
    sizes = np.abs(differences)
    order = np.argsort(sizes, axis=1)
    ordered = np.take_along_axis(sizes, order, axis=1)
    is_plain = (ordered[:, :1] > 0).all(axis=1) & (np.diff(ordered, axis=1) > 0).all(axis=1)
    signs = np.take_along_axis(differences > 0, order, axis=1)
    statistics = (signs * np.arange(2, 2 * blocks + 1, 2)).sum(axis=1)
    below = _cumulated(tuple(range(2, 2 * blocks + 1, 2)))
    found = np.minimum(1.0, 2 * below[np.minimum(statistics, blocks * (blocks + 1) - statistics)])
    for row in np.flatnonzero(~is_plain):
        found[row] = p_value(differences[row])
    return np.asarray(found).reshape(cells)


def least_p_value(blocks: int) -> float:
    """The smallest possible p value for this number of blocks: all differences have the same sign."""
    return math.ldexp(1.0, 1 - blocks) if blocks else 1.0


def _doubled_ranks(sizes: Floats) -> NDArray[np.int64]:
    """Twice the rank of each value, from 1; equal values share the mean of their ranks."""
    ordered = np.sort(sizes)
    below, up_to = (np.searchsorted(ordered, sizes, side) for side in ("left", "right"))
    return np.asarray(below + up_to + 1)


def _interpolated(ordered: Floats, place: int, share: float) -> Floats:
    return np.asarray(
        (1 - share) * ordered[:, place] + share * ordered[:, min(place + 1, ordered.shape[1] - 1)]
    )


@lru_cache(EXACT_BLOCKS + 1)
def _place(blocks: int) -> tuple[int, float] | None:
    """How many means lie outside the interval on each side, and the fraction of the step to the next mean."""
    below = _cumulated(tuple(range(2, 2 * blocks + 1, 2)))[::2]
    place = int(np.searchsorted(below, _TAIL, side="right")) - 1
    if place < 0:
        return None
    return place, float((_TAIL - below[place]) / (below[place + 1] - below[place]))


@lru_cache(4096)
def _cumulated(doubled_ranks: tuple[int, ...]) -> Floats:
    """The chance that a random subset of these doubled ranks has a sum of at most 0, 1, 2, ..."""
    chances = np.ones(1)
    for rank in doubled_ranks:
        without = np.zeros(rank)
        chances = (np.append(chances, without) + np.append(without, chances)) / 2
    return np.cumsum(chances)


def _means(blocks: int) -> int:
    return blocks * (blocks + 1) // 2


def _deviation(blocks: int) -> float:
    return math.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)


def _mean_of_two(ascending: Floats, place: int) -> float:
    """The value at `place`, from 0, among all means of two values (each also with itself).

    It is found by bisection, since the means are too many to be listed.
    """
    low, high = float(ascending[0]), float(ascending[-1])
    if _means_up_to(ascending, low) > place:
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if _means_up_to(ascending, middle) > place else (middle, high)
    return high


def _means_up_to(ascending: Floats, bound: float) -> int:
    ordered_pairs = np.searchsorted(ascending, 2 * bound - ascending, side="right").sum()
    return int(ordered_pairs + np.searchsorted(ascending, bound, side="right")) // 2
