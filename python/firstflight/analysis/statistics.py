"""The statistics of a cell pair: medians, the improvement of a typical block, and its uncertainty.

The two loads of a block ran back to back, so what affects both cancels in their ratio. Improvement, interval
and p value come from one statistic, the signed ranks of those ratios (`signed_rank`). The p values of a table
are adjusted for their number (Holm), so that the chance of any false verdict in it is at most 5 %.

Not modelled: drift within a block, and noise of only one side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from firstflight.analysis.records import Effect, Estimate
from firstflight.analysis.signed_rank import CONFIDENCE, least_p_value, locate
from firstflight.analysis.signed_rank import p_value as signed_rank_p_value
from firstflight.deferred import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_VERDICTS = 0.05
"""The chance of at least one verdict in a table in which nothing differs."""

FASTER, SLOWER = "faster", "slower"
"""The verdicts for a difference; only `verdict` returns them."""

NO_DIFFERENCE = "no difference shown"
"""The verdict when no difference was shown, although the blocks would suffice to show a large one."""

TOO_FEW_REPEATS = "too few repeats"
"""The verdict when a table of that size needs more blocks to show any difference."""

EXACT = "exact"
"""Replaces a verdict when a model without randomness gave one load on each side: nothing is inferred."""

NOT_PROVED, NOT_COMPARED = "not proved", "not compared"
"""Replace a verdict: the proof does not hold; no block has both loads."""

OUTLIER_SCORE, OUTLIER_SHARE = 5.0, 0.05
"""An outlier is further from the median than this many robust standard deviations and this share of it."""


def median(values: Sequence[float]) -> Estimate:
    """The median with its interval, from order statistics; the interval needs six values.

    The interval inverts the sign test. Its ends are interpolated between the two levels that enclose 95 %

    Args:
        values: One per load, ms.
    """
    if not len(values):
        return {"median": None, "low": None, "high": None}
    ascending, count = np.sort(np.asarray(values, float)), len(values)
    middle, tail = float(np.median(ascending)), (1 - CONFIDENCE) / 2
    up_to = _fair_coins(count)
    below = int(np.searchsorted(up_to, tail))
    if below < 1:
        return {"median": middle, "low": None, "high": None}
    outer, inner = float(up_to[below - 1]), float(up_to[below])
    step = (tail - outer) / (inner - outer)
    share = (count - below) * step / (below + (count - 2 * below) * step)
    low, high = (
        float((1 - share) * ordered[below - 1] + share * ordered[below])
        for ordered in (ascending, ascending[::-1])
    )
    return {"median": middle, "low": low, "high": high}


def improvement(baseline_ms: Sequence[float], treatment_ms: Sequence[float]) -> Effect:
    """The share of the PLT that a typical block saves, with its interval.

    It is the Hodges-Lehmann estimate of the logarithms of PLT_baseline / PLT_treatment, converted to 1 -
    PLT_treatment / PLT_baseline.

    Args:
        baseline_ms: PLT of the baseline, one per paired block.
        treatment_ms: PLT of the treatment, in the same order of blocks.
    """
    if not len(baseline_ms):
        return {"point": None, "low": None, "high": None}
    point, low, high = (as_improvement(value) for value in locate(log_ratios(baseline_ms, treatment_ms)))
    return {"point": point, "low": low, "high": high}


def shift(baseline_ms: Sequence[float], treatment_ms: Sequence[float]) -> Effect:
    """How many ms a typical block saves, with its interval.

    It is the Hodges-Lehmann estimate of PLT_baseline - PLT_treatment.

    Args:
        baseline_ms: PLT of the baseline, one per paired block.
        treatment_ms: PLT of the treatment, in the same order of blocks.
    """
    if not len(baseline_ms):
        return {"point": None, "low": None, "high": None}
    point, low, high = (_known(value) for value in locate(np.subtract(baseline_ms, treatment_ms)))
    return {"point": point, "low": low, "high": high}


def log_ratios(baseline_ms: Sequence[float], treatment_ms: Sequence[float]) -> NDArray[np.float64]:
    """The logarithm of PLT_baseline / PLT_treatment of each block, on which the inference is made."""
    return np.asarray(np.log(np.asarray(baseline_ms, float)) - np.log(np.asarray(treatment_ms, float)))


def as_improvement(log_ratio: float) -> float | None:
    """The improvement that corresponds to a log ratio, a fraction; `None` for NaN."""
    return None if math.isnan(log_ratio) else -math.expm1(-log_ratio)


def null_improvement(baseline_ms: Sequence[float]) -> Effect:
    """The improvement of the baseline over itself, with its interval: each odd block against the next.

    Both loads are made alike, so the result shows the noise alone.

    Args:
        baseline_ms: PLT of the baseline, in block order; the last of an odd number is left out.
    """
    return improvement(*null_halves(baseline_ms))


def null_halves(baseline_ms: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first of each two blocks, and the second: equal loads that take the place of the two sides."""
    pairs = len(baseline_ms) // 2
    return baseline_ms[0 : 2 * pairs : 2], baseline_ms[1 : 2 * pairs : 2]


def outliers(values: Sequence[float]) -> list[int]:
    """Indices of the values far from the median.

    Far means both `OUTLIER_SCORE` times the median absolute deviation, scaled to a normal distribution's
    standard deviation (Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993), and `OUTLIER_SHARE`
    of the median. Without the second condition a run that hardly varies would have many outliers.

    Args:
        values: PLT of the loads of one cell, ms.
    """
    if not values:
        return []
    away = np.abs(np.subtract(values, np.median(values)))
    far = max(OUTLIER_SCORE * 1.4826 * float(np.median(away)), OUTLIER_SHARE * float(np.median(values)))
    return [int(place) for place in np.flatnonzero(away > far)]


def p_value(baseline_ms: Sequence[float], treatment_ms: Sequence[float]) -> float | None:
    """Two-sided signed-rank test of the improvement; None without blocks."""
    return signed_rank_p_value(log_ratios(baseline_ms, treatment_ms)) if len(baseline_ms) else None


def adjusted_p_values(values: Sequence[float | None]) -> list[float | None]:
    """P values of a table, adjusted for their number by Holm's method.

    If all cells below q are called different, the chance of any wrong one in the table is at most q, whatever
    the other cells are (Holm, Scandinavian Journal of Statistics 6, 1979).

    Args:
        values: One per cell; `None` if the cell has none.
    """
    places = [place for place, value in enumerate(values) if value is not None]
    known = np.array([values[place] for place in places], float)
    order = np.argsort(known, kind="stable")
    raised = np.maximum.accumulate(known[order] * np.arange(len(known), 0, -1))
    found: list[float | None] = [None] * len(values)
    for place, value in zip(order, np.minimum(raised, 1.0), strict=True):
        found[places[place]] = float(value)
    return found


def verdict(
    *,
    blocks: int,
    is_proved: bool,
    is_exact: bool,
    low: float | None,
    high: float | None,
    p_adjusted: float | None,
    family: int,
) -> str:
    """The rule by which a cell is called faster or slower in runs, sweeps, reports and comparisons.

    It needs a proof, an interval without 0 and an adjusted p value below `FALSE_VERDICTS`.

    Args:
        blocks: Paired blocks of the cell.
        is_proved: Whether its proof holds.
        is_exact: Whether nothing in its loads was random.
        low: Lower end of the interval of the improvement.
        high: Upper end of the interval of the improvement.
        p_adjusted: From `adjusted_p_values`.
        family: Number of tests in the table.
    """
    if not is_proved:
        return NOT_PROVED
    if not blocks:
        return NOT_COMPARED
    if is_exact:
        return EXACT
    if low is not None and high is not None and p_adjusted is not None and p_adjusted < FALSE_VERDICTS:
        if low > 0:
            return FASTER
        if high < 0:
            return SLOWER
    return TOO_FEW_REPEATS if blocks < blocks_needed(family) else NO_DIFFERENCE


def blocks_needed(family: int, level: float = FALSE_VERDICTS) -> int:
    """The fewest blocks with which a cell can be faster or slower, in a table of this many tests.

    Args:
        family: Number of tests in the table.
        level: Chance of any false verdict in the table.
    """
    blocks = 1
    while least_p_value(blocks) * max(1, family) >= level:
        blocks += 1
    return blocks


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Sample standard deviation over mean; `None` for fewer than two values."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else None


@lru_cache(64)
def _fair_coins(count: int) -> NDArray[np.float64]:
    """The chance of at most 0, 1, 2, ... heads among `count` fair coins, up to half of them."""
    middle = count // 2
    fewer = np.arange(middle, 0, -1)
    shares = np.cumprod(np.append(1.0, fewer / (count - fewer + 1)))
    return np.cumsum(math.comb(count, middle) / 2**count * shares[::-1])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
