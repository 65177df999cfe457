"""What ``summary.json`` and ``sweep.json`` hold, typed: cells with numbers, proof and verdict; warnings.

docs/results.md and docs/sweeps.md say what each key means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast

from firstflight.results.records import Factors

if TYPE_CHECKING:
    from typing_extensions import ReadOnly

Side = Literal["baseline", "treatment"]
"""A side of a comparison: without or with what is compared."""


class Estimate(TypedDict):
    """A median in ms with its interval; null where there is too little data."""

    median: ReadOnly[float | None]
    low: ReadOnly[float | None]
    high: ReadOnly[float | None]


class Effect(TypedDict):
    """A signed difference with its interval, a fraction or ms; positive: the treatment is faster."""

    point: ReadOnly[float | None]
    low: ReadOnly[float | None]
    high: ReadOnly[float | None]


class Seen(TypedDict):
    """Connections of one side's loads that count.

    All; with data in the SYN; with that data accepted; with such data though the mode has none; with early
    data of TLS; with that accepted. Early data is not counted in loads whose connections were not kept.
    """

    connections: ReadOnly[int]
    offered: ReadOnly[int]
    accepted: ReadOnly[int]
    leaked: ReadOnly[int]
    early: ReadOnly[int]
    early_accepted: ReadOnly[int]


class Measure(TypedDict):
    """One thing measured on both sides of the paired blocks, in the unit of its column.

    The medians of both, and how much more the treatment has in a typical block: `point`, `low`, `high`.
    """

    baseline: ReadOnly[float]
    treatment: ReadOnly[float]
    difference: ReadOnly[Effect]


class CellProof(TypedDict):
    """What was seen of both sides, and whether every load's own proof held."""

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
    """Loads of one side."""

    ok: ReadOnly[int]
    failed: ReadOnly[int]


class Setting(Factors):
    """All that decides the numbers of a cell but its page; of the treatment where the two sides differ."""

    baseline: str
    treatment: str
    url: NotRequired[str | None]
    differs: NotRequired[dict[str, list[Any]]]


class CellSetting(Setting):
    """A setting with its page."""

    page: str


class Cell(CellSetting):
    """One pair of cells: the loads of a treatment and those of the baseline."""

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
    """How intervals are made."""

    confidence: ReadOnly[float]
    method: ReadOnly[str]


class InstrumentFailures(TypedDict):
    """How often the laboratory gave no result, and the loads that have none yet."""

    attempts: ReadOnly[int]
    loads_without_result: ReadOnly[int]


class Summary(TypedDict):
    """A run in numbers."""

    format: ReadOnly[str]
    interval: ReadOnly[Interval]
    cells: ReadOnly[list[Cell]]
    instrument_failures: ReadOnly[InstrumentFailures]
    warnings: ReadOnly[list[Warning]]


class Distribution(TypedDict):
    """Of cells: how many, quantiles of the improvement, shares with each verdict and sign."""

    n: ReadOnly[int]
    improvement: ReadOnly[dict[str, float | None]]
    faster: ReadOnly[float]
    slower: ReadOnly[float]
    exact: ReadOnly[float]
    too_few_repeats: ReadOnly[float]
    above_zero: ReadOnly[float]
    below_zero: ReadOnly[float]


class SweepPath(Setting, Distribution):
    """The cells of one path."""


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
"""The cells of the pages that have `from` to `to` origins, at one RTT."""


class Sweep(TypedDict):
    """A sweep in numbers."""

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
    """The loads of a side, counted."""
    return cell["baseline_loads"] if side == "baseline" else cell["treatment_loads"]


def value_of(cell: Setting, column: str) -> Any:  # noqa: ANN401 (of any column)
    """A column by its name."""
    return cast(Mapping[str, Any], cell)[column]


def known(value: float | None) -> float:
    """A number of a cell that has one, such as the improvement of a cell with paired blocks.

    Raises:
        ValueError: There is none.
    """
    if value is None:
        raise ValueError("a cell without this number")
    return value
