import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstflight.analysis import statistics
from firstflight.analysis.shift import shift
from firstflight.analysis.statistics import (
    NO_DIFFERENCE,
    adjusted_p_values,
    chance_of_sign,
    coefficient_of_variation,
    improvement,
    median,
    null_improvement,
    outliers,
    p_value,
    verdict,
)
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.sources import resolve

SLOW, FAST = [100.0, 102.0, 98.0, 101.0, 99.0], [80.0, 81.0, 79.0, 82.0, 78.0]
times_ms = st.lists(st.floats(1, 1e5), min_size=1, max_size=12)


def test_improvement_is_signed_and_positive_when_tfo_is_faster() -> None:
    assert improvement(SLOW, FAST)["point"] == pytest.approx(0.2)
    assert improvement(FAST, SLOW)["point"] == pytest.approx(-0.25)


def test_verdict_follows_the_interval() -> None:
    assert verdict(improvement(SLOW, FAST)) == "faster"
    assert verdict(improvement(FAST, SLOW)) == "slower"
    assert verdict(improvement(SLOW, list(reversed(SLOW)))) == "no difference shown"
    assert verdict(improvement(SLOW, SLOW)) == "no difference shown"


def test_one_block_has_a_point_but_no_interval_and_no_verdict() -> None:
    found = improvement([100.0], [50.0])
    assert found == {"point": 0.5, "low": None, "high": None}
    assert verdict(found) == "no difference shown"
    assert median([100.0]) == {"median": 100.0, "low": None, "high": None}
    assert null_improvement([100.0])["point"] is None
    assert coefficient_of_variation([100.0]) is None


def test_no_block_has_no_numbers() -> None:
    assert improvement([], []) == {"point": None, "low": None, "high": None}
    assert median([]) == {"median": None, "low": None, "high": None}
    assert p_value([], []) is None


def test_the_null_improvement_compares_every_second_tcp_load_with_the_others() -> None:
    assert null_improvement([100.0, 90.0, 100.0, 90.0, 100.0])["point"] == pytest.approx(0.1)
    assert null_improvement([90.0, 100.0]) == {"point": pytest.approx(-1 / 9), "low": None, "high": None}
    assert null_improvement([100.0, 90.0] * 5)["low"] == pytest.approx(0.1)


def test_p_value_is_that_of_the_exact_signed_rank_test() -> None:
    assert p_value(SLOW, FAST) == pytest.approx(2 * 0.5**5)
    assert p_value(SLOW, SLOW) == 1.0


def test_pairing_takes_out_what_moves_both_loads_of_a_block() -> None:
    drift = np.linspace(1, 3, 9)
    paired = improvement(list(1000 * drift), list(900 * drift))
    assert paired["low"] == pytest.approx(0.1)
    assert paired["high"] == pytest.approx(0.1)


@given(times_ms, st.randoms(use_true_random=False))
def test_the_interval_holds_the_point_and_is_the_same_every_time(
    tcp_ms: list[float], dice: np.random.Generator
) -> None:
    tfo_ms = [value * (0.5 + dice.random()) for value in tcp_ms]
    found = improvement(tcp_ms, tfo_ms)
    assert found == improvement(tcp_ms, tfo_ms)
    assert -1e9 < float(found["point"] or 0) < 1
    if len(tcp_ms) > 1:
        assert found["low"] is not None
        assert found["high"] is not None
        assert found["low"] <= found["high"]


@given(times_ms)
def test_equal_modes_never_show_a_difference(tcp_ms: list[float]) -> None:
    assert verdict(improvement(tcp_ms, tcp_ms)) == "no difference shown"


def test_intervals_of_equal_modes_exclude_zero_about_as_often_as_is_said() -> None:
    dice = np.random.default_rng(1)
    rounds, blocks = 150, 5
    wrong = sum(
        verdict(improvement(list(dice.lognormal(7, 0.05, blocks)), list(dice.lognormal(7, 0.05, blocks))))
        != "no difference shown"
        for _ in range(rounds)
    )
    assert wrong / rounds < 2 * chance_of_sign(blocks)


def test_two_blocks_agree_by_chance_half_the_time() -> None:
    assert chance_of_sign(2) == 0.5
    assert chance_of_sign(5) == 1 / 16


def test_outliers_are_far_in_spread_and_in_share() -> None:
    assert outliers([100.0, 101.0, 99.0, 100.5, 180.0]) == [4]
    assert outliers([100.0, 100.0, 100.0, 100.0, 101.0]) == []
    assert outliers([100.0, 150.0, 60.0, 120.0, 80.0]) == []
    assert outliers([]) == []


def test_the_shift_is_the_median_of_the_means_of_differences() -> None:
    assert shift([10.0, 20.0, 40.0], [9.0, 18.0, 31.0])["point"] == pytest.approx(3.5)


def test_the_interval_of_the_shift_is_exact() -> None:
    tcp_ms = [float(value) for value in (1, 2, 4, 8, 16, 32)]
    assert shift(tcp_ms, [0.0] * 6) == {"point": pytest.approx(8.5), "low": 1.0, "high": 32.0}
    assert shift(tcp_ms[:5], [0.0] * 5)["low"] is None


def test_the_interval_of_many_blocks_goes_on_from_the_exact_one() -> None:
    few, more = (shift([float(n) for n in range(count)], [0.0] * count) for count in (200, 201))
    assert more == {
        "point": 100.0,
        "low": pytest.approx(few["low"], abs=1),
        "high": pytest.approx(few["high"], abs=1),
    }


def test_p_values_of_many_cells_are_raised() -> None:
    assert adjusted_p_values([0.01, None, 0.02, 0.04]) == [
        pytest.approx(0.03),
        None,
        pytest.approx(0.03),
        pytest.approx(0.04),
    ]
    assert adjusted_p_values([None]) == [None]


@pytest.fixture(name="fewer_resamples")
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the resamples: what they add to an interval's ends is small beside what blocks do."""
    monkeypatch.setattr(statistics, "RESAMPLES", 999)


def noisy_blocks(dice: np.random.Generator, count: int) -> tuple[list[float], list[float]]:
    """Loads as a noisy machine makes them: a level per block, heavy tails, no difference between modes."""
    level = 1000 * np.exp(dice.normal(0, 0.005, count))
    tcp_ms, tfo_ms = (list(level * np.exp(0.01 * dice.standard_t(3, count))) for _ in range(2))
    return tcp_ms, tfo_ms


def check_coverage(verdicts: list[str]) -> None:
    assert 0.93 <= verdicts.count(NO_DIFFERENCE) / len(verdicts) <= 0.97
    assert verdicts.count("faster") / len(verdicts) <= 0.05


@pytest.mark.usefixtures("fewer_resamples")
@pytest.mark.parametrize("blocks", [5, 6, 10, 20])
def test_intervals_cover_the_truth_as_often_as_they_say(blocks: int) -> None:
    dice = np.random.default_rng(blocks)
    check_coverage([verdict(improvement(*noisy_blocks(dice, blocks))) for _ in range(1000)])


@pytest.mark.usefixtures("fewer_resamples")
def test_intervals_cover_a_large_effect_as_well() -> None:
    dice, held = np.random.default_rng(10), 0
    for _ in range(1000):
        tcp_ms, tfo_ms = noisy_blocks(dice, 10)
        found = improvement(tcp_ms, [0.7 * ms for ms in tfo_ms])
        held += found["low"] <= 0.3 <= found["high"]  # type: ignore[operator]
    assert 930 <= held <= 970


@pytest.mark.usefixtures("fewer_resamples")
def test_intervals_cover_the_truth_when_they_decided_when_to_stop() -> None:
    plan = resolve({"until": "2%", "pages": ["page"], "rtt": "100"})
    looks = [numbers.stop for numbers in Schedule(plan, ["page"]).rounds]
    dice, verdicts, counts = np.random.default_rng(2), [], []
    for _ in range(600):
        tcp_ms, tfo_ms = noisy_blocks(dice, looks[-1])
        for count in looks:
            found = improvement(tcp_ms[:count], tfo_ms[:count])
            if found["high"] - found["low"] <= plan.until:  # type: ignore[operator]
                break
        verdicts.append(verdict(found))
        counts.append(count)
    check_coverage(verdicts)
    assert len(set(counts)) > 3
