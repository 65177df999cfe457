"""A comparison on a terminal: what differs in the set-up, then in the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from firstflight.analysis import words
from firstflight.analysis.compare import Comparison, Pair
from firstflight.plural import plural
from firstflight.report.console import plain

_UNITS = {"rtt_ms": " ms", "down_mbps": " Mbit/s down", "up_mbps": " Mbit/s up"}


def print_comparison(found: Comparison, console: Console) -> None:
    """Prints a comparison.

    Args:
        found: The comparison.
        console: Where to; its width and colour are honoured.
    """
    for part in (*_captions(found), _setup(found), _cells(found), *_summary(found)):
        console.print(part)


def label(key: Any, value: Any) -> str:  # noqa: ANN401
    """A value of a cell's key, for people."""
    if value is None:
        return "unlimited"
    return f"{value:g}{_UNITS.get(key, '')}" if isinstance(value, float) else str(value)


def _captions(found: Comparison) -> Iterator[RenderableType]:
    for side in (found.a, found.b):
        yield plain(f"{side.name}: {side.caption}")


def _setup(found: Comparison) -> Table:
    table = _table("What differs in the set-up")
    for name in ("", found.a.name, found.b.name):
        table.add_column(plain(name), overflow="fold")
    for name, *values in found.setup:
        table.add_row(name, *(plain(value or words.DASH) for value in values))
    return table


def _cells(found: Comparison) -> Table:
    table = _table("What differs in the numbers")
    table.add_column("cell", no_wrap=True)
    for name in (
        f"PLT baseline\n{found.a.name}",
        f"PLT baseline\n{found.b.name}",
        f"improvement\n{found.a.name}",
    ):
        table.add_column(plain(name), justify="right", overflow="fold")
    table.add_column(plain(f"improvement\n{found.b.name}"), justify="right", overflow="fold")
    table.add_column("difference\npercentage points", justify="right", no_wrap=True)
    table.add_column("verdict")
    for pair in found.pairs:
        table.add_row(*map(plain, _row(pair)))
    return table


def _row(pair: Pair) -> list[str]:
    sides = (pair.a, pair.b)
    changes = (_with_interval(words.percent(s.improvement), s.low, s.high) for s in sides)
    ends = pair.interval or (None, None)
    notes = "; ".join(filter(None, (pair.a.note, pair.b.note)))
    return [
        " ".join(label(key, value) for key, value in pair.key.items()),
        *(words.seconds(side.baseline_ms) for side in sides),
        *changes,
        _with_interval(words.percent(pair.difference)[:-2], *ends),
        f"{pair.verdict} ({notes})" if notes else pair.verdict,
    ]


def _summary(found: Comparison) -> Iterator[RenderableType]:
    count = len(found.pairs)
    yield plain(
        f"{plural(count, 'cell')} in common; "
        f"only in {found.a.name}: {found.only_a}, in {found.b.name}: {found.only_b}"
    )
    yield plain(f"same sign: {found.same_sign} of {count}")
    middle, mean = (f"{100 * size:.1f}" for size in (found.median_difference, found.mean_difference))
    yield plain(f"size of the difference: median {middle}, mean {mean} percentage points")
    for name, value in (
        ("improvements", found.rank_correlation),
        ("PLTs of the baseline", found.plt_rank_correlation),
    ):
        yield plain(
            f"rank correlation of {name} (Spearman): {words.DASH if value is None else f'{value:+.2f}'}"
        )


def _with_interval(point: str, low: float | None, high: float | None) -> str:
    spread = words.interval(low, high)
    return f"{point} ({spread})" if spread else point


def _table(name: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=name, title_justify="left", title_style="bold", pad_edge=False)
