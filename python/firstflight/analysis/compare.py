"""Compares two results, or a result and a published table: first how they were made, then each cell.

A dimension that only one side varies, or that both sides keep constant, does not identify a cell: it is a
difference of set-up. So an emulated run can be compared with a simulated one, and a run with the paper.
"""

from __future__ import annotations

import json
import math
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from firstflight.analysis import words
from firstflight.analysis.records import Cell, known, value_of
from firstflight.analysis.signed_rank import CONFIDENCE
from firstflight.analysis.statistics import (
    FALSE_VERDICTS,
    NO_DIFFERENCE,
    NOT_PROVED,
    TOO_FEW_REPEATS,
    adjusted_p_values,
)
from firstflight.analysis.student_t import two_sided_p, two_sided_quantile
from firstflight.analysis.summary import summarize
from firstflight.deferred import polars as pl
from firstflight.errors import UsageError
from firstflight.model.treatment import FAST_OPEN, PLAIN
from firstflight.published import PublishedTable, published_names, published_table
from firstflight.results.files import PLAN
from firstflight.text import plural

DIMENSIONS = ("page", "rtt_ms", "down_mbps", "up_mbps", "topology", "loss", "client", "engine", "treatment")
"""The dimensions that may identify a cell of a side; `None` if the side has no such value."""


@dataclass(frozen=True)
class SideCell:
    """One cell pair of a side.

    Attributes:
        key: The value of each of `DIMENSIONS`.
        baseline_ms: Median PLT of the baseline, ms.
        treatment_ms: Median PLT of the treatment, ms.
        improvement: (PLT_baseline - PLT_treatment) / PLT_baseline, signed.
        low: Lower end of its interval; `None`: not known.
        high: Upper end of its interval; `None`: not known.
        note: A known problem of the cell.
        blocks: Its number of paired blocks; `None`: the number is exact, or its spread is not known.
        is_proved: Whether its proof holds.
    """

    key: Mapping[str, Any]
    baseline_ms: float
    treatment_ms: float
    improvement: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    blocks: int | None = None
    is_proved: bool = True


@dataclass(frozen=True)
class Side:
    """One of the two sides.

    Attributes:
        name: Its name, as the user gave it.
        setup: How its loads were made, in words.
        cells: Its cells.
        caption: The settings of its numbers, as in its own tables; for a published table, those that are
            known.
    """

    name: str
    setup: Mapping[str, str]
    cells: tuple[SideCell, ...]
    caption: str = ""

    def varies(self, dimension: str) -> bool:
        """Whether a dimension has several values on this side."""
        return len({cell.key.get(dimension) for cell in self.cells}) > 1


def open_side(name: str) -> Side:
    """Opens a results folder, or a published table by its name. It writes nothing.

    Raises:
        UsageError: There is neither a folder nor a table of that name.
    """
    if name in published_names():
        return _published(published_table(name))
    folder = Path(name)
    if not folder.exists():
        tables = ", ".join(published_names())
        raise UsageError(f"{name}: no such results folder or table", f"published tables are {tables}")
    cells = [cell for cell in summarize(folder)["cells"] if cell["improvement"]["point"] is not None]
    if not cells:
        raise UsageError(
            f"{name}: no cell has a baseline and a treatment", f"run it with --mode {PLAIN},{FAST_OPEN}"
        )
    return Side(name, _setup(folder, cells), tuple(map(_cell, cells)), words.caption(*cells))


def _published(table: PublishedTable) -> Side:
    cells = tuple(
        SideCell(
            {name: getattr(cell, name, None) for name in DIMENSIONS},
            cell.tcp_ms,
            cell.tfo_ms,
            cell.improvement,
            note=cell.note,
        )
        for cell in table.cells
    )
    setup = {**table.facts, "compared": f"{FAST_OPEN} against {PLAIN}"}
    return Side(table.name, setup, cells, ", ".join(table.facts.values()))


def _cell(cell: Cell) -> SideCell:
    found = cell["improvement"]
    return SideCell(
        {name: value_of(cell, name) for name in DIMENSIONS},
        known(cell["baseline_ms"]["median"]),
        known(cell["treatment_ms"]["median"]),
        known(found["point"]),
        found["low"],
        found["high"],
        "" if cell["proof"]["ok"] else "not proved",
        blocks=None if cell["exact"] else cell["n"],
        is_proved=cell["proof"]["ok"],
    )


def _setup(folder: Path, cells: Sequence[Cell]) -> dict[str, str]:
    try:
        plan = tomllib.loads((folder / PLAN).read_text(encoding="utf-8"))
        environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder}: {error}", "give a folder that firstflight run made") from None
    keep_alive = "keep-alive" if plan["keep_alive"] else "a connection per request"
    return {
        "compared": "; ".join(dict.fromkeys(map(words.comparison, cells))),
        "client": plan["client"],
        "engine": plan["engine"],
        "path": f"{plan['topology']}, {_link(plan, 'down')} down, {_link(plan, 'up')} up, "
        f"queue {plan['queue']}{' that marks' if plan.get('ecn') else ''}, "
        f"loss {plan['loss']:g}{_unsteady(plan)}, "
        f"middlebox {plan.get('middlebox', 'off')}",
        "servers": f"{keep_alive}, {_list(plan['cookies'])} cookies, {plan['scheme']}",
        "TCP": f"initial window {plan.get('initial_window', 10)}, {plan.get('congestion_control', 'cubic')}",
        "what if": plan.get("what_if", "off"),
        "processing": _processing(plan),
        "spread": f"{plural(plan['repeats'], 'repeat')}, 95 % intervals",
        **{name: str(environment[name]) for name in ("kernel", "firstflight") if name in environment},
    }


def _link(plan: Mapping[str, Any], way: str) -> str:
    trace = plan.get(f"{way}_trace", "off")
    return _list(plan[way]) if trace == "off" else f"trace {PurePosixPath(trace).name.removesuffix('.gz')}"


def _unsteady(plan: Mapping[str, Any]) -> str:
    parts = ""
    if (burst := plan.get("loss_burst", "off")) != "off":
        parts = f" in bursts of {burst} packets that lose {plan['loss_in_burst']:g}"
    if jitter_ms := plan.get("jitter", 0):
        parts += f", jitter {jitter_ms:g} ms{' that reorders' if plan['reorder'] else ''}"
    if share := plan.get("duplicate", 0):
        parts += f", {share:g} twice"
    return parts


def _processing(plan: Mapping[str, Any]) -> str:
    servers = "" if plan.get("server_time", True) else ", servers at once"
    if plan["client"] != "loader":
        return f"the client's own{servers}"
    return f"as recorded, times {plan.get('processing', 1):g}{servers}"


def _list(values: list[Any] | Any) -> str:  # noqa: ANN401
    return ", ".join(map(str, values)) if isinstance(values, list) else str(values)


_ALWAYS = ("page", "rtt_ms")
_FEW = 3
"""With fewer common cells there is no rank correlation."""


@dataclass(frozen=True)
class Pair:
    """A cell that both sides have.

    Attributes:
        key: The dimensions that identify it.
        a: The cell of the first side.
        b: The cell of the second side.
        p_adjusted: `p_value` adjusted for the number of pairs.
    """

    key: Mapping[str, Any]
    a: SideCell
    b: SideCell
    p_adjusted: float | None = None

    @property
    def difference(self) -> float:
        """Improvement of the first side minus that of the second, a fraction."""
        return self.a.improvement - self.b.improvement

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of the difference; `None` if neither side has one, or a side has too few blocks for one.

        It is computed by the method of variance estimates recovery: each side's distances to its ends,
        squared and added (Zou and Donner, Statistics in Medicine 27, 2008). A side without an interval counts
        as exact.
        """
        ends = [_ends(cell) for cell in (self.a, self.b)]
        if all(end is None for end in ends) or self._has_too_few_blocks:
            return None
        (a_low, a_high), (b_low, b_high) = (end or (0.0, 0.0) for end in ends)
        return self.difference - math.hypot(a_low, b_high), self.difference + math.hypot(a_high, b_low)

    @property
    def verdict(self) -> str:
        """Whether the two differ. The rule is that of all verdicts: proof, interval and adjusted p value."""
        if not (self.a.is_proved and self.b.is_proved):
            return NOT_PROVED
        if self._has_too_few_blocks:
            return TOO_FEW_REPEATS
        if self.interval is None or self.p_adjusted is None:
            return "no interval"
        low, high = self.interval
        is_shown = (low > 0 or high < 0) and self.p_adjusted < FALSE_VERDICTS
        return "differs" if is_shown else NO_DIFFERENCE

    @property
    def p_value(self) -> float | None:
        """The level at which the interval would end at 0; `None` if there is no interval.

        The distance to 0 is divided by that to the end of the 95 % interval. The ratio is looked up in
        Student's t, with the degrees of freedom of the side with fewer blocks.
        """
        if self.interval is None:
            return None
        blocks = [cell.blocks for cell in (self.a, self.b) if cell.blocks and cell.low is not None]
        freedom = min(blocks) - 1 if blocks else math.inf
        low, high = self.interval
        margin = self.difference - low if self.difference > 0 else high - self.difference
        if margin == 0:
            return 0.0 if self.difference else 1.0
        away = two_sided_quantile(1 - CONFIDENCE, freedom) * abs(self.difference) / margin
        return two_sided_p(away, freedom)

    @property
    def _has_too_few_blocks(self) -> bool:
        return any(cell.blocks is not None and cell.low is None for cell in (self.a, self.b))


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sides.

    Attributes:
        a: The first side.
        b: The second side.
        setup: Set-up values that differ: name, value of the first side, value of the second.
        pairs: Cells that both sides have.
        only_a: Number of cells that only the first side has.
        only_b: Number of cells that only the second side has.
    """

    a: Side
    b: Side
    setup: tuple[tuple[str, str, str], ...]
    pairs: tuple[Pair, ...]
    only_a: int
    only_b: int

    @property
    def rank_correlation(self) -> float | None:
        """Spearman's correlation of the improvements; `None` below three cells or if a side is constant."""
        return _spearman([(pair.a.improvement, pair.b.improvement) for pair in self.pairs])

    @property
    def plt_rank_correlation(self) -> float | None:
        """Spearman's rank correlation of the baseline's load times, as `rank_correlation`."""
        return _spearman([(pair.a.baseline_ms, pair.b.baseline_ms) for pair in self.pairs])

    @property
    def median_difference(self) -> float:
        """Median of the absolute differences, a fraction."""
        return statistics.median(abs(pair.difference) for pair in self.pairs)

    @property
    def mean_difference(self) -> float:
        """Mean of the absolute differences, a fraction."""
        return statistics.mean(abs(pair.difference) for pair in self.pairs)

    @property
    def same_sign(self) -> int:
        """Number of cells in which the improvement is above 0 on both sides, or on neither."""
        return sum((pair.a.improvement > 0) == (pair.b.improvement > 0) for pair in self.pairs)


def compare(a: Side, b: Side) -> Comparison:
    """Compares two sides.

    Raises:
        UsageError: They have no cell in common.
    """
    names = [name for name in DIMENSIONS if name in _ALWAYS or (a.varies(name) and b.varies(name))]
    first, second = (_by_key(side, names) for side in (a, b))
    pairs = [
        Pair(dict(zip(names, key, strict=True)), first[key], second[key]) for key in first if key in second
    ]
    if not pairs:
        raise UsageError(
            f"{a.name} and {b.name} have no page and RTT in common", f"{_pages(a)} here, {_pages(b)} there"
        )
    raised = adjusted_p_values([pair.p_value for pair in pairs])
    pairs = [replace(pair, p_adjusted=value) for pair, value in zip(pairs, raised, strict=True)]
    return Comparison(
        a, b, _differences(a, b), tuple(pairs), len(first) - len(pairs), len(second) - len(pairs)
    )


def _by_key(side: Side, names: list[str]) -> dict[tuple[Any, ...], SideCell]:
    """Cells by the dimensions that identify them. Raises `UsageError` if several have the same key."""
    found: dict[tuple[Any, ...], SideCell] = {}
    for cell in side.cells:
        key = tuple(cell.key.get(name) for name in names)
        if key in found:
            varying = ", ".join(name for name in DIMENSIONS if name not in names and side.varies(name))
            raise UsageError(
                f"{side.name} has several cells of {cell.key['page']} at {cell.key['rtt_ms']:g} ms",
                f"the other side does not vary {varying}: compare a run of one value",
            )
        found[key] = cell
    return found


def _differences(a: Side, b: Side) -> tuple[tuple[str, str, str], ...]:
    names = list(dict.fromkeys([*a.setup, *b.setup]))
    rows = ((name, a.setup.get(name, ""), b.setup.get(name, "")) for name in names)
    return tuple(row for row in rows if row[1] != row[2])


def _pages(side: Side) -> str:
    cells = dict.fromkeys(f"{cell.key['page']} {cell.key['rtt_ms']:g} ms" for cell in side.cells)
    return ", ".join([*cells][:4]) + (", ..." if len(cells) > 4 else "")


def _ends(cell: SideCell) -> tuple[float, float] | None:
    """Distances from the improvement to the lower and the upper end of its interval."""
    if cell.low is None or cell.high is None:
        return None
    return cell.improvement - cell.low, cell.high - cell.improvement


def _spearman(values: list[tuple[float, float]]) -> float | None:
    first, second = zip(*values, strict=True)
    if len(values) < _FEW or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    sides = pl.DataFrame({"first": first, "second": second})
    return float(sides.select(pl.corr("first", "second", method="spearman")).item())
