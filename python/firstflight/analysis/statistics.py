"""The statistics of a cell pair: medians over paired blocks, bootstrap intervals, a signed-rank test.

Intervals are percentile bootstrap intervals over whole blocks (`scipy.stats.bootstrap`, paired, seeded): the
two loads of a block ran back to back and are drawn together, so what moved both cancels. Percentile rather
than BCa, because the jackknife that BCa needs breaks down for a median of a handful of values.

Not modelled: drift within a block, and the narrowness of any bootstrap of few blocks (see `chance_of_sign`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats  # type: ignore[import-untyped]

CONFIDENCE = 0.95
"""Level of every interval."""

FALSE_DISCOVERIES = 0.05
"""Share of chance that is accepted among the cells that adjusted p values call different."""

RESAMPLES = 9999
"""Bootstrap resamples of an interval."""

RESAMPLES_OF_MANY, MANY_VALUES = 999, 20_000_000
"""Fewest resamples, and how many values they may draw in all before there are fewer than `RESAMPLES`: so
2,000 blocks or more take seconds."""

SEED = 20110612
"""Seed of the resampling, so that the same journal gives the same summary."""


OUTLIER_SCORE, OUTLIER_SHARE = 5.0, 0.05
"""A load is an outlier beyond so many robust standard deviations and this share of the median."""


NO_DIFFERENCE = "no difference shown"
"""The verdict that is neither `faster` nor `slower`."""


class Estimate(TypedDict):
    """A median in ms with its interval; null where there is too little data."""

    median: float | None
    low: float | None
    high: float | None


class Improvement(TypedDict):
    """A signed improvement as a fraction with its interval; positive means that TFO is faster."""

    point: float | None
    low: float | None
    high: float | None


def median(values: Sequence[float]) -> Estimate:
    """The median with its interval.

    Args:
        values: One per load, ms.
    """
    if not values:
        return {"median": None, "low": None, "high": None}
    low, high = _interval((values,), np.median)
    return {"median": float(np.median(values)), "low": low, "high": high}


def improvement(tcp_ms: Sequence[float], tfo_ms: Sequence[float]) -> Improvement:
    """(PLT_tcp - PLT_tfo) / PLT_tcp of the medians, with its interval.

    Args:
        tcp_ms: PLT without, one per paired block.
        tfo_ms: PLT with, in the same order of blocks.
    """
    if not tcp_ms:
        return {"point": None, "low": None, "high": None}
    low, high = _interval((tcp_ms, tfo_ms), ratio_of_medians)
    return {"point": float(ratio_of_medians(tcp_ms, tfo_ms)), "low": low, "high": high}


def null_improvement(tcp_ms: Sequence[float]) -> Improvement:
    """The improvement of tcp on tcp, with its interval: every second block against the one before it.

    Both loads are made alike, so what comes of it is what noise alone makes.

    Args:
        tcp_ms: PLT without, in block order; the last of an odd number is left out.
    """
    return improvement(*null_halves(tcp_ms))


def null_halves(tcp_ms: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Every second block, and the one after each: equal loads, as `tcp` and `tfo` stand beside each other."""
    pairs = len(tcp_ms) // 2
    return tcp_ms[0 : 2 * pairs : 2], tcp_ms[1 : 2 * pairs : 2]


def outliers(values: Sequence[float]) -> list[int]:
    """Places of the values far from the median.

    Far is `OUTLIER_SCORE` times the median absolute deviation, scaled to a normal distribution's standard
    deviation (Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993), and `OUTLIER_SHARE` of the
    median: without the second a run that hardly varies would be full of them.

    Args:
        values: PLT of the loads of one cell, ms.
    """
    if not values:
        return []
    away = np.abs(np.subtract(values, np.median(values)))
    far = max(OUTLIER_SCORE * 1.4826 * float(np.median(away)), OUTLIER_SHARE * float(np.median(values)))
    return [int(place) for place in np.flatnonzero(away > far)]


def p_value(tcp_ms: Sequence[float], tfo_ms: Sequence[float]) -> float | None:
    """Two-sided Wilcoxon signed-rank test on the paired blocks.

    Returns:
        The probability of so one-sided a set of differences if the modes were equal; None without blocks.
    """
    if not tcp_ms:
        return None
    if list(tcp_ms) == list(tfo_ms):
        return 1.0
    return float(stats.wilcoxon(tcp_ms, tfo_ms).pvalue)


def adjusted_p_values(values: Sequence[float | None]) -> list[float | None]:
    """P values of many cells, raised so that of those below q at most the share q is expected to be chance.

    The method of Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995).

    Args:
        values: One per cell; None where there is none.
    """
    known = [value for value in values if value is not None]
    raised = iter(stats.false_discovery_control(known)) if known else iter(())
    return [None if value is None else float(next(raised)) for value in values]


def verdict(found: Improvement) -> str:
    """`faster` or `slower` where the interval excludes 0, else `no difference shown`."""
    if found["low"] is not None and found["low"] > 0:
        return "faster"
    if found["high"] is not None and found["high"] < 0:
        return "slower"
    return NO_DIFFERENCE


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Sample standard deviation over mean; None below two values."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else None


def chance_of_sign(blocks: int) -> float:
    """How often two equal modes would differ in the same direction in every one of so many blocks.

    With few blocks the bootstrap interval ends at the smallest and the largest value seen, so this is about
    how often it would exclude 0 for no reason.
    """
    return math.ldexp(1.0, 1 - blocks)


def ratio_of_medians(tcp_ms: ArrayLike, tfo_ms: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """(median tcp - median tfo) / median tcp along an axis."""
    tcp, tfo = (np.median(np.asarray(values, float), axis=axis) for values in (tcp_ms, tfo_ms))
    return np.asarray((tcp - tfo) / tcp)


def _interval(samples: tuple[Sequence[float], ...], statistic: Any) -> tuple[float | None, float | None]:  # noqa: ANN401
    if len(samples[0]) < 2:
        return None, None
    at_once = max(1, MANY_VALUES // len(samples[0]))
    found = stats.bootstrap(
        samples,
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=min(RESAMPLES, max(RESAMPLES_OF_MANY, at_once)),
        batch=at_once,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return float(found.low), float(found.high)
