import polars as pl
import pytest
from accuracy import accuracy, compare
from hypothesis import given
from hypothesis import strategies as st


def cells(*plts_ms: tuple[float, float], **more: list[float | None]) -> pl.DataFrame:
    tcp, tfo = zip(*plts_ms, strict=True)
    names = [f"p{n}" for n in range(len(tcp))]
    return pl.DataFrame({"page": names, "tcp_ms": tcp, "tfo_ms": tfo, **more})


def test_a_perfect_prediction_has_no_error() -> None:
    measured = cells((100.0, 80.0), (200.0, 190.0), (300.0, 310.0))
    found = accuracy(measured, measured, on=["page"])
    assert found.to_json() == {
        "cells": 3,
        "plt_error_median": 0.0,
        "plt_error_p95": 0.0,
        "plt_spearman": pytest.approx(1.0),
        "improvement_error_median_pp": 0.0,
        "improvement_error_p95_pp": 0.0,
        "clear_cells": 3,
        "sign_agreement": 1.0,
    }


def test_errors_are_relative_for_plts_and_percentage_points_for_improvements() -> None:
    measured = cells((100.0, 80.0), (100.0, 90.0), (100.0, 100.0))
    predicted = cells((110.0, 80.0), (100.0, 99.0), (100.0, 103.0))
    found = accuracy(predicted, measured, on=["page"])
    assert found.plt_error_median == pytest.approx((0.0 + 0.03) / 2)
    assert found.plt_error_p95 == pytest.approx(0.1)
    worse = sorted([abs((110 - 80) / 110 - 0.2) * 100, 9.0, 3.0])
    assert found.improvement_error_median_pp == pytest.approx(worse[1])
    assert (found.clear_cells, found.sign_agreement) == (2, 1.0)


def test_signs_count_only_where_the_measured_improvement_is_clear_of_zero() -> None:
    measured = cells(
        (100.0, 80.0),
        (100.0, 99.0),
        (100.0, 110.0),
        improvement_low=[0.1, -0.02, None],
        improvement_high=[0.3, 0.04, None],
    )
    predicted = cells((100.0, 120.0), (100.0, 120.0), (100.0, 120.0))
    found = accuracy(predicted, measured, on=["page"])
    assert (found.clear_cells, found.sign_agreement) == (2, 0.5)
    assert accuracy(predicted, measured, on=["page"], clear_pp=15).sign_agreement == 0.0
    assert accuracy(predicted, measured, on=["page"], clear_pp=50).sign_agreement is None


def test_ranks_that_are_turned_round_correlate_negatively() -> None:
    measured, predicted = cells((100.0, 100.0), (200.0, 200.0)), cells((200.0, 200.0), (100.0, 100.0))
    assert accuracy(predicted, measured, on=["page"]).plt_spearman == pytest.approx(-1.0)


def test_only_common_cells_count_and_an_unlimited_rate_is_a_rate() -> None:
    rate = pl.Series("down_mbps", [None, 4.0], pl.Float64())
    measured = cells((100.0, 80.0), (100.0, 90.0)).with_columns(rate)
    found = compare(measured.head(1), measured, on=["page", "down_mbps"])
    assert found["page"].to_list() == ["p0"]


def test_the_worst_cell_comes_first() -> None:
    measured = cells((100.0, 80.0), (100.0, 80.0), (100.0, 80.0))
    found = compare(cells((101.0, 80.0), (100.0, 40.0), (110.0, 80.0)), measured, on=["page"])
    assert found["page"].to_list() == ["p1", "p2", "p0"]
    assert found["plt_error"].to_list() == pytest.approx([0.5, 0.1, 0.01])
    assert found["improvement_error_pp"][0] == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("predicted", "problem"),
    [
        (cells((1.0, 1.0)).drop("tfo_ms"), "predicted: no column tfo_ms"),
        (pl.concat([cells((1.0, 1.0))] * 2), "predicted: a cell is given twice"),
        (cells((1.0, 1.0)).with_columns(page=pl.lit("other")), "no cell in common"),
    ],
)
def test_what_cannot_be_compared_is_refused(predicted: pl.DataFrame, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        accuracy(predicted, cells((1.0, 1.0)), on=["page"])


@given(st.lists(st.tuples(*[st.floats(1, 1e5)] * 4), min_size=1, max_size=30))
def test_figures_stay_within_their_bounds(rows: list[tuple[float, float, float, float]]) -> None:
    found = accuracy(cells(*(row[:2] for row in rows)), cells(*(row[2:] for row in rows)), on=["page"])
    assert 0 <= found.plt_error_median <= found.plt_error_p95
    assert 0 <= found.improvement_error_median_pp <= found.improvement_error_p95_pp
    assert found.sign_agreement is None or 0 <= found.sign_agreement <= 1
    assert found.clear_cells <= found.cells == len(rows)
