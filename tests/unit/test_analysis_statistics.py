"""Estimates, intervals, p values and verdicts.

Their error rates are checked by simulation, where the truth is known.
"""

import interval_coverage as simulation
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from firstflight.analysis.signed_rank import least_p_value, locate, locate_all, p_values
from firstflight.analysis.signed_rank import p_value as signed_rank_p_value
from firstflight.analysis.statistics import (
    adjusted_p_values,
    blocks_needed,
    coefficient_of_variation,
    improvement,
    median,
    null_improvement,
    outliers,
    p_value,
    shift,
    verdict,
)
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.schedule import Schedule

SLOW = [100.0, 102.0, 98.0, 101.0, 99.0, 103.0]
FAST = [80.0, 81.0, 79.0, 82.0, 78.0, 80.5]
times_ms = st.lists(st.floats(1, 1e5), min_size=1, max_size=12)


def judged(tcp_ms: list[float], tfo_ms: list[float], *, family: int = 1, **changes: bool) -> str:
    """The verdict of a proved cell in a table of `family` cells with the same p value."""
    found, p = improvement(tcp_ms, tfo_ms), p_value(tcp_ms, tfo_ms)
    return verdict(
        blocks=len(tcp_ms),
        is_proved=changes.get("is_proved", True),
        is_exact=changes.get("is_exact", False),
        low=found["low"],
        high=found["high"],
        p_adjusted=adjusted_p_values([p] * family)[0],
        family=family,
    )


def test_improvement_is_signed_and_positive_when_tfo_is_faster() -> None:
    assert improvement([1000.0], [900.0])["point"] == pytest.approx(0.1)
    assert improvement([900.0], [1000.0])["point"] == pytest.approx(-1 / 9)


def test_a_verdict_takes_proof_an_interval_clear_of_zero_and_a_small_adjusted_p() -> None:
    assert judged(SLOW, FAST) == "faster"
    assert judged(FAST, SLOW) == "slower"
    assert judged(SLOW, FAST, is_proved=False) == "not proved"
    assert judged(SLOW, FAST, is_exact=True) == "exact"
    assert judged(SLOW, FAST, family=2) == "too few repeats"
    assert judged(SLOW[:5], FAST[:5]) == "too few repeats"
    assert judged(SLOW, list(reversed(SLOW))) == "no difference shown"
    assert judged(SLOW, SLOW) == "no difference shown"
    assert judged([], []) == "not compared"


def test_an_interval_that_leaves_zero_out_is_no_verdict_without_a_small_p() -> None:
    """Of eight differences, one of rank 1 has the other sign: p is 4/256, adjusted for four cells 16/256."""
    tcp_ms = [1000.0] * 8
    tfo_ms = [1001.0, *(990.0 - n for n in range(7))]
    assert improvement(tcp_ms, tfo_ms)["low"] > 0  # type: ignore[operator]
    assert judged(tcp_ms, tfo_ms) == "faster"
    assert judged(tcp_ms, tfo_ms, family=4) == "no difference shown"
    assert judged(tcp_ms, tfo_ms, family=12) == "too few repeats"


@pytest.mark.parametrize(
    ("family", "needed"), [(0, 6), (1, 6), (2, 7), (12, 9), (25, 10), (26, 11), (10_000, 19)]
)
def test_the_blocks_needed_are_the_fewest_whose_smallest_p_survives_the_correction(
    family: int, needed: int
) -> None:
    assert blocks_needed(family) == needed
    assert least_p_value(needed) * max(1, family) < 0.05 <= least_p_value(needed - 1) * max(1, family)


def test_ten_repeats_of_the_paper_suffice_for_its_table() -> None:
    plan = resolve({})
    assert plan.repeats >= blocks_needed(len(plan.pages) * len(plan.settings()))


def test_one_block_has_a_point_but_no_interval_and_no_verdict() -> None:
    assert improvement([100.0], [50.0]) == {"point": pytest.approx(0.5), "low": None, "high": None}
    assert judged([100.0], [50.0]) == "too few repeats"
    assert median([100.0]) == {"median": 100.0, "low": None, "high": None}
    assert null_improvement([100.0])["point"] is None
    assert coefficient_of_variation([100.0]) is None


def test_no_block_has_no_numbers() -> None:
    assert improvement([], []) == {"point": None, "low": None, "high": None}
    assert median([]) == {"median": None, "low": None, "high": None}
    assert p_value([], []) is None


def test_the_null_improvement_compares_every_second_tcp_load_with_the_others() -> None:
    assert null_improvement([100.0, 90.0, 100.0, 90.0, 100.0])["point"] == pytest.approx(0.1)
    assert null_improvement([90.0, 100.0])["point"] == pytest.approx(-1 / 9)
    assert null_improvement([100.0, 90.0] * 5)["low"] is None
    assert null_improvement([100.0, 90.0] * 6)["low"] == pytest.approx(0.1)


@given(times_ms, st.randoms(use_true_random=False))
def test_p_values_are_those_of_flipping_every_sign(tcp_ms: list[float], rng: np.random.Generator) -> None:
    tfo_ms = [value * (0.5 + round(rng.random(), 1)) for value in tcp_ms][:8]
    differences = np.subtract(tcp_ms[:8], tfo_ms)
    ranks = stats.rankdata(np.abs(differences[differences != 0]))
    if not len(ranks):
        assert signed_rank_p_value(differences) == p_values(differences[None, :])[0] == 1.0
        return
    signs = np.array(np.meshgrid(*[[0, 1]] * len(ranks))).reshape(len(ranks), -1)
    sums = ranks @ signs
    seen = float(ranks[differences[differences != 0] > 0].sum())
    tail = min(np.mean(sums <= seen + 1e-9), np.mean(sums >= seen - 1e-9))
    assert signed_rank_p_value(differences) == pytest.approx(min(1.0, 2 * tail))
    assert p_values(differences[None, :])[0] == signed_rank_p_value(differences)


def test_p_values_without_ties_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for count in (5, 8, 20, 300):
        differences = rng.normal(0.2, 1, count)
        expected = stats.wilcoxon(differences, correction=False).pvalue
        assert signed_rank_p_value(differences) == pytest.approx(expected, rel=1e-9)


@given(times_ms, st.randoms(use_true_random=False))
def test_the_interval_holds_the_point_and_agrees_with_the_p_value(
    tcp_ms: list[float], rng: np.random.Generator
) -> None:
    tfo_ms = [value * (0.5 + rng.random()) for value in tcp_ms]
    # The p value omits blocks without a difference and takes ties into account. The interval does neither.
    sizes = np.abs(np.log(np.divide(tcp_ms, tfo_ms)))
    assume(sizes.all() and len(np.unique(sizes.round(9))) == len(sizes))
    found, p = improvement(tcp_ms, tfo_ms), p_value(tcp_ms, tfo_ms)
    assert (found["low"] is None) == (len(tcp_ms) < 6)
    if found["low"] is not None:
        assert found["low"] <= found["point"] <= found["high"]  # type: ignore[operator]
        if p is not None and p < 0.05:
            assert found["low"] >= 0 or found["high"] <= 0  # type: ignore[operator]


def test_a_cell_of_equal_loads_shows_no_difference() -> None:
    assert judged([1000.0] * 20, [1000.0] * 20) == "no difference shown"
    assert p_value([1000.0] * 20, [1000.0] * 20) == 1.0


def test_outliers_are_far_in_spread_and_in_share() -> None:
    assert outliers([100.0, 101.0, 99.0, 100.5, 180.0]) == [4]
    assert outliers([100.0, 100.0, 100.0, 100.0, 101.0]) == []
    assert outliers([100.0, 150.0, 60.0, 120.0, 80.0]) == []
    assert outliers([]) == []


def test_the_shift_is_the_median_of_the_means_of_differences() -> None:
    assert shift([10.0, 20.0, 40.0], [9.0, 18.0, 31.0])["point"] == pytest.approx(3.5)


def test_the_ends_of_an_interval_lie_between_the_levels_that_enclose_95_percent() -> None:
    """The outermost means of six values enclose 96.9 %, the next ones 93.75 %; the ends lie between them."""
    found = shift([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], [0.0] * 6)
    assert dict(found) == pytest.approx({"point": 8.5, "low": 1.3, "high": 27.2})


def test_the_interval_of_many_blocks_goes_on_from_the_exact_one() -> None:
    few, more = (shift([float(n) for n in range(count)], [0.0] * count) for count in (200, 201))
    assert more == {
        "point": 100.0,
        "low": pytest.approx(few["low"], abs=1),
        "high": pytest.approx(few["high"], abs=1),
    }


def test_many_cells_at_once_are_located_like_each_alone() -> None:
    differences = np.random.default_rng(1).normal(size=(7, 12))
    assert np.transpose(locate_all(differences)) == pytest.approx(
        np.array([locate(row) for row in differences])
    )


def test_p_values_of_many_cells_are_raised_by_holms_method() -> None:
    assert adjusted_p_values([0.01, None, 0.02, 0.04]) == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.04),
        pytest.approx(0.04),
    ]
    assert adjusted_p_values([0.6, 0.9]) == [1.0, 1.0]
    assert adjusted_p_values([None]) == [None]


EXPERIMENTS = 5000
"""Simulated experiments. A share near 95 % then has a standard error of 0.3 percentage points."""


@pytest.mark.parametrize("blocks", [8, 10, 20, 40])
@pytest.mark.parametrize("noise", [*simulation.NOISES, "tied: normal, 1 %, rounded to 0.1 %"])
def test_intervals_cover_the_truth_as_often_as_they_say(noise: str, blocks: int) -> None:
    assert 0.94 <= simulation.coverage(noise, blocks, EXPERIMENTS, truth=0.1) <= 0.96


@pytest.mark.parametrize(
    ("noise", "least"), [("rounded to 1 %", 0.965), ("two values only, 5 % apart", 0.99)]
)
def test_where_half_of_the_times_are_alike_intervals_are_too_wide_but_never_too_narrow(
    noise: str, least: float
) -> None:
    name = next(name for name in simulation.TIES if noise in name)
    assert all(simulation.coverage(name, blocks, EXPERIMENTS) >= least for blocks in (8, 10, 20, 40))


@pytest.mark.parametrize("noise", simulation.NOISES)
def test_twelve_cells_without_effect_show_any_verdict_in_five_percent_of_experiments(noise: str) -> None:
    """The expected share is at most 4.9 %; three standard errors are 0.9 percentage points."""
    assert 0.03 <= simulation.any_verdict(noise, 10, EXPERIMENTS) <= 0.058
    assert simulation.any_verdict(noise, 8, 200) == 0


@pytest.mark.parametrize("blocks", [8, 10, 20, 40])
def test_intervals_of_a_median_cover_it_as_often_as_they_say(blocks: int) -> None:
    rng, held = np.random.default_rng(blocks), 0
    for values in 1000 * np.exp(0.05 * rng.standard_normal((4000, blocks))):
        found = median(values.tolist())
        held += found["low"] <= 1000 <= found["high"]  # type: ignore[operator]
    assert 0.94 <= held / 4000 <= 0.96


@pytest.mark.parametrize(
    "noise", ["normal, 1 %", "heavy tails (t, 3 degrees), 1 %", "skewed (exponential), 3 %"]
)
def test_intervals_that_decided_when_to_stop_lose_two_points_of_coverage_at_most(noise: str) -> None:
    width = simulation.NOISES[noise][1]
    plan = resolve({"until": width, "pages": ["page"], "rtt": "100"})
    looks = [numbers.stop for numbers in Schedule(plan, ["page"]).rounds]
    rng, held, counts = np.random.default_rng(2), 0, set()
    for _ in range(1500):
        blocks = simulation.blocks(noise, rng, (looks[-1],))
        low, high, count = simulation.stopped(*blocks, looks, float(plan.until))
        held += low <= 0 <= high
        counts.add(count)
    assert 0.92 <= held / 1500 <= 0.965
    assert len(counts) > 3
