"""Student's t: our two functions agree with SciPy's over the range that comparisons use."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from firstflight.analysis.student_t import two_sided_p, two_sided_quantile

FREEDOM = st.integers(min_value=1, max_value=5_000)


@given(away=st.floats(min_value=0, max_value=1e6), freedom=FREEDOM)
def test_p_values_are_those_of_scipy(away: float, freedom: int) -> None:
    assert two_sided_p(away, freedom) == pytest.approx(2 * stats.t(freedom).sf(away), rel=1e-10, abs=1e-280)


@given(p=st.floats(min_value=1e-12, max_value=0.999), freedom=FREEDOM)
def test_quantiles_are_those_of_scipy(p: float, freedom: int) -> None:
    assert two_sided_quantile(p, freedom) == pytest.approx(-stats.t(freedom).ppf(p / 2), rel=1e-8, abs=1e-9)


def test_infinite_freedom_is_the_normal_distribution() -> None:
    assert two_sided_quantile(0.05, math.inf) == pytest.approx(1.959963984540054)
    assert two_sided_p(1.959963984540054, math.inf) == pytest.approx(0.05)


def test_what_is_infinitely_far_has_no_probability_and_what_is_at_0_has_all() -> None:
    assert two_sided_p(math.inf, 9) == 0
    assert two_sided_p(1e200, 9) == 0
    assert two_sided_p(0, 9) == 1
