"""Error rates of the statistics by simulation: the tables of docs/statistics.md.

    python tests/validation/interval_coverage.py [EXPERIMENTS]

It measures how often intervals contain the true value, and how often tables show an effect that does not
exist.

Blocks are drawn as on a noisy machine: each block has a random level (0.5 %), and each load adds noise. The
true improvement is 0, or `TRUTH` where stated. Both modes have the same noise, so the log ratio of a block is
symmetric about the true value. That value is thus the pseudo-median, the median and the mean.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstflight.analysis.signed_rank import locate_all, p_values
from firstflight.analysis.statistics import (
    FASTER,
    SLOWER,
    adjusted_p_values,
    as_improvement,
    improvement,
    verdict,
)
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.schedule import Schedule

Floats = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

NOISES: dict[str, tuple[Draw, str]] = {
    "normal, 1 %": (lambda rng, size: np.exp(0.01 * rng.standard_normal(size)), "2%"),
    "normal, 5 %": (lambda rng, size: np.exp(0.05 * rng.standard_normal(size)), "6%"),
    "heavy tails (t, 3 degrees), 1 %": (lambda rng, size: np.exp(0.01 * rng.standard_t(3, size)), "2%"),
    "skewed (exponential), 3 %": (lambda rng, size: 1 + rng.exponential(0.03, size), "4%"),
    "two humps: 0.3 %, every other load 5 % later": (
        lambda rng, size: np.exp(0.003 * rng.standard_normal(size)) * (1 + 0.05 * (rng.random(size) < 0.5)),
        "6%",
    ),
    "two humps: 1 %, one load in ten 10 % later": (
        lambda rng, size: np.exp(0.01 * rng.standard_normal(size)) * (1 + 0.1 * (rng.random(size) < 0.1)),
        "2%",
    ),
}
"""By name, a distribution of the noise, and an interval width for `--until`."""

TIES: dict[str, tuple[Draw, float]] = {
    "tied: normal, 1 %, rounded to 0.1 %": (NOISES["normal, 1 %"][0], 0.001),
    "tied: normal, 1 %, rounded to 0.5 %": (NOISES["normal, 1 %"][0], 0.005),
    "tied: normal, 1 %, rounded to 1 %": (NOISES["normal, 1 %"][0], 0.01),
    "tied: two values only, 5 % apart": (lambda rng, size: 1 + 0.05 * (rng.random(size) < 0.5), 0.01),
}
"""Noise that gives equal times (ties), and the step to which they are rounded, as a share.

No level per block.
"""

BLOCKS = (6, 8, 10, 20, 40)
CELLS = 12
TRUTH = 0.1


def main(experiments: int) -> None:
    """Prints the tables."""
    for truth in (0.0, TRUTH):
        _print(f"coverage, truth {100 * truth:g} %", *map(str, BLOCKS))
        _print(*["---"] * (1 + len(BLOCKS)))
        for name in (*NOISES, *TIES):
            _print(name, *(_percent(coverage(name, count, experiments, truth)) for count in BLOCKS))
        sys.stdout.write("\n")
    _print(f"any verdict in {CELLS} cells without effect", *map(str, BLOCKS))
    _print(*["---"] * (1 + len(BLOCKS)))
    for name in (*NOISES, *TIES):
        _print(name, *(_percent(any_verdict(name, count, experiments)) for count in BLOCKS))
    sys.stdout.write("\n")
    _print("noise", "until", "holds the truth", "truth below", "truth above", "blocks, median", "at the cap")
    _print(*["---"] * 7)
    for name in NOISES:
        _print(*_until(name, experiments // 2))


def coverage(name: str, count: int, experiments: int, truth: float = 0.0) -> float:
    """The share of intervals that contain the true value."""
    tcp_ms, tfo_ms = blocks(name, np.random.default_rng(count), (experiments, count), truth)
    _, low, high = locate_all(np.log(tcp_ms) - np.log(tfo_ms))
    at = -np.log1p(-truth)
    return float(np.mean((low <= at + 1e-12) & (high >= at - 1e-12)))


def any_verdict(name: str, count: int, experiments: int, cells: int = CELLS) -> float:
    """The share of tables without any effect in which at least one cell is called faster or slower."""
    rng = np.random.default_rng(1000 + count)
    tcp_ms, tfo_ms = blocks(name, rng, (experiments * cells, count))
    log_ratios = np.log(tcp_ms) - np.log(tfo_ms)
    _, low, high = locate_all(log_ratios)
    ends = [*zip(map(as_improvement, low), map(as_improvement, high), p_values(log_ratios), strict=True)]
    wrong = 0
    for first in range(0, len(ends), cells):
        table = ends[first : first + cells]
        wrong += bool({FASTER, SLOWER} & {*verdicts(table, count)})
    return wrong / experiments


def verdicts(table: Sequence[tuple[float | None, float | None, float]], count: int) -> list[str]:
    """The verdicts of a table of proved cells, each given by the ends of its interval and its p value."""
    raised = adjusted_p_values([p for _, _, p in table])
    return [
        verdict(blocks=count, is_proved=True, is_exact=False, low=a, high=b, p_adjusted=p, family=len(table))
        for (a, b, _), p in zip(table, raised, strict=True)
    ]


def blocks(
    name: str, rng: np.random.Generator, size: tuple[int, ...], truth: float = 0.0
) -> tuple[Floats, Floats]:
    """Random PLTs without and with TFO, ms, in arrays of shape `size`."""
    if name in TIES:
        draw, grid = TIES[name]
        tcp_ms, tfo_ms = (1000 * grid * np.rint(draw(rng, size) / grid) for _ in range(2))
    else:
        draw, _ = NOISES[name]
        level = 1000 * np.exp(rng.normal(0, 0.005, size))
        tcp_ms, tfo_ms = (level * draw(rng, size) for _ in range(2))
    return tcp_ms, tfo_ms * (1 - truth)


def stopped(tcp_ms: Floats, tfo_ms: Floats, looks: Sequence[int], width: float) -> tuple[float, float, int]:
    """What a run with `--until` reports: its interval and its number of blocks.

    It stops at the first look at which the interval is narrow enough, or at the last look.
    """
    for count in looks:
        found = improvement(tcp_ms[:count].tolist(), tfo_ms[:count].tolist())
        low, high = found["low"], found["high"]
        assert low is not None and high is not None
        if high - low <= width or count == looks[-1]:
            return low, high, count
    raise AssertionError("there is no look")


def _until(name: str, experiments: int) -> list[str]:
    width = NOISES[name][1]
    plan = resolve({"until": width, "pages": ["page"], "rtt": "100"})
    looks = [numbers.stop for numbers in Schedule(plan, ["page"]).rounds]
    rng = np.random.default_rng(1)
    found = [stopped(*blocks(name, rng, (looks[-1],)), looks, float(plan.until)) for _ in range(experiments)]
    above = sum(low > 0 for low, _, _ in found) / experiments
    below = sum(high < 0 for _, high, _ in found) / experiments
    counts = [count for _, _, count in found]
    capped = sum(count == looks[-1] for count in counts) / experiments
    shares = map(_percent, (1 - above - below, above, below))
    return [name, width, *shares, f"{median(counts):.0f}", _percent(capped)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _print(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
