"""How well a model predicts load times: figures of its error from predicted and measured cells.

A cell has a PLT in both modes. This module does not depend on which model predicted them, or on which pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

CELL = ("page", "rtt_ms", "down_mbps", "up_mbps", "loss", "topology", "cookies")
"""The columns that identify a cell, unless the caller names others."""


@dataclass(frozen=True)
class Accuracy:
    """Figures of a model over cells.

    Attributes:
        cells: How many cells both sides have.
        plt_error_median: Relative error of the PLT, absolute value, over both modes; a fraction.
        plt_error_p95: As before, 95th percentile.
        plt_spearman: Rank correlation of predicted and measured PLT over both modes; null if all are alike.
        improvement_error_median_pp: Absolute error of the improvement, percentage points.
        improvement_error_p95_pp: As before, 95th percentile.
        clear_cells: Cells whose measured improvement is clear of zero.
        sign_agreement: Of those, the share whose predicted improvement has the same sign; null without any.
    """

    cells: int
    plt_error_median: float
    plt_error_p95: float
    plt_spearman: float | None
    improvement_error_median_pp: float
    improvement_error_p95_pp: float
    clear_cells: int
    sign_agreement: float | None

    def to_json(self) -> dict[str, float | int | None]:
        """The figures by name."""
        return asdict(self)


def accuracy(
    predicted: pl.DataFrame, measured: pl.DataFrame, *, on: Sequence[str] = CELL, clear_pp: float = 0.0
) -> Accuracy:
    """How far predictions are from measurements.

    Args:
        predicted: A row per cell: the columns of `on`, `tcp_ms` and `tfo_ms`.
        measured: The same, and, where known, `improvement_low` and `improvement_high`, the interval of the
            improvement as a fraction.
        on: Columns that name a cell.
        clear_pp: A measured improvement is clear of zero if its interval, where it has one, excludes zero,
            and it is larger than this many percentage points.

    Raises:
        ValueError: A column is missing, a cell is given twice, or the two have no cell in common.
    """
    cells = compare(predicted, measured, on=on)
    measured_ms, predicted_ms = (_both_modes(cells, side) for side in ("", "_predicted"))
    error = np.abs(predicted_ms - measured_ms) / measured_ms
    difference_pp = cells["improvement_error_pp"].abs().to_numpy()
    clear = cells.filter(_is_clear(cells, clear_pp))
    same = clear["improvement"].sign() == clear["improvement_predicted"].sign()
    return Accuracy(
        cells=cells.height,
        plt_error_median=float(np.median(error)),
        plt_error_p95=float(np.percentile(error, 95)),
        plt_spearman=_spearman(predicted_ms, measured_ms),
        improvement_error_median_pp=float(np.median(difference_pp)),
        improvement_error_p95_pp=float(np.percentile(difference_pp, 95)),
        clear_cells=clear.height,
        sign_agreement=float(same.sum() / clear.height) if clear.height else None,
    )


def compare(predicted: pl.DataFrame, measured: pl.DataFrame, *, on: Sequence[str] = CELL) -> pl.DataFrame:
    """Both sides of every common cell: a row each, worst first.

    Adds `tcp_ms_predicted` and `tfo_ms_predicted`, `improvement` and `improvement_predicted` (fractions),
    `improvement_error_pp` (signed) and `plt_error` (fraction, the larger of both modes), by which it sorts.

    Args:
        predicted: As `accuracy` takes it.
        measured: As `accuracy` takes it.
        on: Columns that name a cell.

    Raises:
        ValueError: As `accuracy`.
    """
    _check("predicted", predicted, on)
    _check("measured", measured, on)
    both = measured.join(
        predicted.select(*on, "tcp_ms", "tfo_ms"),
        on=list(on),
        how="inner",
        suffix="_predicted",
        nulls_equal=True,
    )
    if both.is_empty():
        raise ValueError("predicted and measured have no cell in common")
    tcp, tfo = pl.col("tcp_ms"), pl.col("tfo_ms")
    tcp_predicted, tfo_predicted = pl.col("tcp_ms_predicted"), pl.col("tfo_ms_predicted")
    return (
        both.with_columns(
            improvement=(tcp - tfo) / tcp,
            improvement_predicted=(tcp_predicted - tfo_predicted) / tcp_predicted,
            plt_error=pl.max_horizontal((tcp_predicted - tcp).abs() / tcp, (tfo_predicted - tfo).abs() / tfo),
        )
        .with_columns(improvement_error_pp=100 * (pl.col("improvement_predicted") - pl.col("improvement")))
        .sort("plt_error", descending=True, maintain_order=True)
    )


def _check(side: str, frame: pl.DataFrame, on: Sequence[str]) -> None:
    if missing := [name for name in (*on, "tcp_ms", "tfo_ms") if name not in frame.columns]:
        raise ValueError(f"{side}: no column {', '.join(missing)}")
    if frame.select(on).is_duplicated().any():
        raise ValueError(f"{side}: a cell is given twice; name more columns with `on`")


def _both_modes(cells: pl.DataFrame, suffix: str) -> NDArray[np.float64]:
    return np.concatenate([cells[f"{mode}_ms{suffix}"].to_numpy() for mode in ("tcp", "tfo")])


def _is_clear(cells: pl.DataFrame, clear_pp: float) -> pl.Expr:
    clear = (100 * pl.col("improvement")).abs() > clear_pp
    if not {"improvement_low", "improvement_high"} <= set(cells.columns):
        return clear
    excludes = (pl.col("improvement_low") > 0) | (pl.col("improvement_high") < 0)
    return clear & excludes.fill_null(value=True)


def _spearman(predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> float | None:
    if np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return None
    return float(stats.spearmanr(predicted, measured).statistic)
