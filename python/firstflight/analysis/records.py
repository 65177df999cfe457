"""Types of ``summary.json`` and ``sweep.json``: cells with numbers, proof and verdict; warnings.

docs/results.md and docs/sweeps.md explain each key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast

from firstflight.results.records import Factors

if TYPE_CHECKING:
    from typing_extensions import ReadOnly

Side = Literal["baseline", "treatment"]
"""A side of a comparison: the baseline or the treatment."""


class Estimate(TypedDict):
    """A median in ms with its interval; null if there is too little data."""

    median: ReadOnly[float | None]
    low: ReadOnly[float | None]
    high: ReadOnly[float | None]


class Effect(TypedDict):
    """A signed difference with its interval, a fraction or ms; positive: the treatment is faster."""

    point: ReadOnly[float | None]
    low: ReadOnly[float | None]
    high: ReadOnly[float | None]


class Seen(TypedDict):
    """Numbers of connections in one side's loads.

    In the order of the keys: all; with data in the SYN; with accepted SYN data; with SYN data in a mode
    without Fast Open; with TLS early data; with accepted early data. Early data is counted only in loads
    whose connections were kept.
    """

    connections: ReadOnly[int]
    offered: ReadOnly[int]
    accepted: ReadOnly[int]
    leaked: ReadOnly[int]
    early: ReadOnly[int]
    early_accepted: ReadOnly[int]


class Measure(TypedDict):
    """A quantity of both sides, over the paired blocks, in the unit of its column.

    It has the median of each side, and the treatment's difference in a typical block: `point`, `low`, `high`.
    """

    baseline: ReadOnly[float]
    treatment: ReadOnly[float]
    difference: ReadOnly[Effect]


class CellProof(TypedDict):
    """What was seen of both sides, and whether the proof holds."""

    baseline: ReadOnly[Seen]
    treatment: ReadOnly[Seen]
    ok: ReadOnly[bool]
    text: ReadOnly[str]


class Warning(TypedDict):
    """A reason to check a result: its kind, what was seen and where, and what to do."""

    kind: ReadOnly[str]
    message: ReadOnly[str]
    advice: ReadOnly[str]


class Counts(TypedDict):
    """Numbers of loads of one side."""

    ok: ReadOnly[int]
    failed: ReadOnly[int]


class Setting(Factors):
    """All settings of a cell except its page; if the two sides differ, those of the treatment."""

    baseline: str
    treatment: str
    url: NotRequired[str | None]
    differs: NotRequired[dict[str, list[Any]]]


class CellSetting(Setting):
    """The settings of a cell with its page."""

    page: str


class Cell(CellSetting):
    """A cell pair: the loads of a treatment and those of the baseline."""

    caption: str
    n: int
    exact: bool
    baseline_loads: Counts
    treatment_loads: Counts
    baseline_ms: Estimate
    treatment_ms: Estimate
    baseline_cv: float | None
    treatment_cv: float | None
    improvement: Effect
    shift_ms: Effect
    measures: dict[str, Measure]
    same_within_ms: float | None
    p_value: float | None
    null_improvement: float | None
    null_ms: list[float | None]
    null_low: float | None
    null_high: float | None
    proof: CellProof
    p_adjusted: float | None
    verdict: str
    blocks_needed: int | None


class Interval(TypedDict):
    """How intervals are computed."""

    confidence: ReadOnly[float]
    method: ReadOnly[str]


class InstrumentFailures(TypedDict):
    """How often the laboratory gave no result, and the loads that still have none."""

    attempts: ReadOnly[int]
    loads_without_result: ReadOnly[int]


class Summary(TypedDict):
    """The summary of a run."""

    format: ReadOnly[str]
    interval: ReadOnly[Interval]
    cells: ReadOnly[list[Cell]]
    instrument_failures: ReadOnly[InstrumentFailures]
    warnings: ReadOnly[list[Warning]]


class Distribution(TypedDict):
    """The distribution over cells: number, quantiles of the improvement, shares of each verdict and sign."""

    n: ReadOnly[int]
    improvement: ReadOnly[dict[str, float | None]]
    faster: ReadOnly[float]
    slower: ReadOnly[float]
    exact: ReadOnly[float]
    too_few_repeats: ReadOnly[float]
    above_zero: ReadOnly[float]
    below_zero: ReadOnly[float]


class SweepPath(Setting, Distribution):
    """The distribution over the cells of one path."""


OriginsGroup = TypedDict(
    "OriginsGroup",
    {
        "from": int,
        "to": int,
        "rtt_ms": float,
        "n": int,
        "improvement": dict[str, float | None],
        "faster": float,
        "slower": float,
        "exact": float,
        "too_few_repeats": float,
        "above_zero": float,
        "below_zero": float,
    },
)
"""The distribution over the cells of pages with `from` to `to` origins, at one RTT."""


class Sweep(TypedDict):
    """The summary of a sweep."""

    format: ReadOnly[str]
    loads: ReadOnly[int]
    failed_loads: ReadOnly[int]
    cells: ReadOnly[int]
    engines: ReadOnly[list[str]]
    caption: ReadOnly[str]
    caution: ReadOnly[str | None]
    warnings: ReadOnly[list[Warning]]
    all: ReadOnly[Distribution]
    paths: ReadOnly[list[SweepPath]]
    origins: ReadOnly[list[OriginsGroup]]


def plt_of(cell: Cell, side: Side) -> Estimate:
    """The median page load time of a side."""
    return cell["baseline_ms"] if side == "baseline" else cell["treatment_ms"]


def loads_of(cell: Cell, side: Side) -> Counts:
    """The numbers of loads of a side."""
    return cell["baseline_loads"] if side == "baseline" else cell["treatment_loads"]


def value_of(cell: Setting, column: str) -> Any:  # noqa: ANN401 (of any column)
    """A column by its name."""
    return cast(Mapping[str, Any], cell)[column]


def known(value: float | None) -> float:
    """A value that must exist, such as the improvement of a cell with paired blocks.

    Raises:
        ValueError: It is `None`.
    """
    if value is None:
        raise ValueError("a cell without this number")
    return value
