"""Prints results and comparisons on a terminal.

A result is a table with a row per page and RTT, then warnings and explanations. A comparison shows
differences of the set-up, then of the numbers. Both are readable without colour and in 100 columns: every
number that is marked by a colour also has a sign or a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firstflight.analysis import words
from firstflight.analysis.compare import Comparison, Pair
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.critical_path.steps import NOT_OF_THE_PAGE
from firstflight.analysis.critical_path.walk import COMPONENTS, CriticalPath
from firstflight.analysis.records import Cell, Summary, Warning
from firstflight.model.page import Page
from firstflight.text import plural, visible_lines


def plain(content: str, style: str = "") -> Text:
    """Text without markup and without control characters, which a hostile page could send to the terminal."""
    return Text(visible_lines(content), style=style)


_STYLES = {"faster": "green", "slower": "red", "not proved": "bold red"}


def print_summary(summary: Summary, console: Console) -> None:
    """Prints a summary.

    Args:
        summary: From `firstflight.analysis.summary.summarize`.
        console: The terminal; its width and colour settings apply.
    """
    console.print(render_summary(summary))


def render_summary(summary: Summary) -> RenderableType:
    """The summary as a `rich` renderable: a table per path and client, then warnings."""
    return Group(*_tables(summary["cells"]), *_warnings(summary["warnings"]))


def _tables(cells: Sequence[Cell]) -> Iterator[RenderableType]:
    for setting, group in words.by_setting(cells).items():
        yield _table(setting, group)
        yield Text("")


def _table(setting: str, cells: Sequence[Cell]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    table.title = _title(setting, cells)
    table.add_column("page\nRTT", no_wrap=True)
    baseline, treatment = words.column_names(cells[0])
    for name in (f"PLT {baseline}", f"PLT {treatment}", "improvement", f"{baseline} on {baseline}"):
        table.add_column(f"{name}\n95 %", justify="right", no_wrap=True)
    table.add_column("verdict", min_width=13)
    what = "first flight" if any(cell["proof"]["treatment"]["early"] for cell in cells) else "SYN data"
    table.add_column(f"{what}\naccepted", ratio=1)
    pages: dict[str, list[Cell]] = {}
    for cell in cells:
        pages.setdefault(str(cell["page"]), []).append(cell)
    for page, rows in pages.items():
        table.add_row(plain(page, "bold"))
        for cell in rows:
            table.add_row(*_row(cell), end_section=cell is rows[-1])
    return table


def _title(setting: str, cells: Sequence[Cell]) -> Text:
    count = words.blocks(cells)
    return plain(f"{setting}: {count} per row")


def _row(cell: Cell) -> list[Text]:
    found = cell["improvement"]
    verdict = words.short_verdict(cell)
    style = _STYLES.get(cell["verdict"], "")
    plt = (
        f"{words.seconds(cell[name]['median'])}\n{words.spread(cell[name])}"
        for name in ("baseline_ms", "treatment_ms")
    )
    change = f"{words.percent(found['point'])}\n{words.interval(found['low'], found['high'])}"
    null = f"{words.percent(cell['null_improvement'])}\n{words.interval(cell['null_low'], cell['null_high'])}"
    return [
        plain(f"  {words.rtt(cell['rtt_ms'])} ms"),
        *map(plain, plt),
        plain(change, style),
        plain(null),
        plain(verdict, style),
        plain(_proof(cell)),
    ]


def _proof(cell: Cell) -> str:
    """The proof in short: of the treatment's connections, those with accepted SYN data or early data."""
    baseline, treatment = cell["proof"]["baseline"], cell["proof"]["treatment"]
    leak = f", {baseline['leaked']} in {cell['baseline']}" if baseline["leaked"] else ""
    accepted = treatment["early_accepted"] if treatment["early"] else treatment["accepted"]
    return f"{accepted} of {treatment['connections']}{leak}"


def _warnings(warnings: Sequence[Warning]) -> Iterator[RenderableType]:
    for warning in warnings:
        yield Text.assemble(("warning: ", "yellow"), plain(f"{warning['kind']}: {warning['message']}"))
        yield Padding(plain(f"hint: {warning['advice']}", "dim"), (0, 0, 0, 2))


_LEAST_MS = 0.5
"""Shorter times are not printed."""


def print_explanations(explanations: Sequence[Explanation], console: Console) -> None:
    """Prints explanations, a block each."""
    for found in explanations:
        console.print(plain(explanation_heading(found), "bold"))
        for line in explanation_lines(found):
            console.print(Padding(plain(line), (0, 0, 0, 2), expand=False))
        console.print()


def explanation_heading(found: Explanation) -> str:
    """Page and path."""
    rtt = words.rtt(found.pair.key.rtt_ms)
    return f"{found.pair.page} at {rtt} ms RTT, {words.setting(found.pair.setting)}"


def explanation_lines(found: Explanation) -> Iterator[str]:
    """A block: for each side, what its PLT was spent on and by which requests; then what was saved."""
    phrases = found.pair.phrases
    width = max(map(len, [*phrases.values(), _TRIPS]))
    for side, load in found.loads.items():
        yield f"{phrases[side]:{width}} {words.seconds(load.path.plt_ms)} = {_composition(load.path)}"
        if trips := _round_trips(load.path):
            yield f"{_TRIPS:{width}} {trips}"
        yield f"{'path':{width}} {_requests(found.pages[side], load.path)}"
    if saving := _savings(found):
        yield saving


def _composition(path: CriticalPath) -> str:
    """What a PLT was spent on: ``TCP handshake 371 ms (4 of them) + ...``."""
    spent = path.spent_ms()
    parts = [
        f"{words.COMPONENT_NAMES[name]} {spent[name]:.0f} ms{_count(path) if name == 'tcp' else ''}"
        for name in COMPONENTS
        if spent.get(name, 0.0) >= _LEAST_MS
    ]
    return " + ".join(parts)


def _round_trips(path: CriticalPath) -> str:
    """What a path spent round trips on: ``4.0 of TCP handshakes, 3.0 of requests``."""
    return ", ".join(f"{count:.1f} {words.ROUND_TRIPS[kind]}" for kind, count in path.round_trips.items())


def _requests(page: Page, path: CriticalPath) -> str:
    """The requests on a path, with the time that each took of it."""
    resources = page.resources
    parts = []
    for index in path.requests:
        name = words.short_url(resources[index].url, 36) if index < len(resources) else NOT_OF_THE_PAGE
        parts.append(f"{index} {name} ({sum(path.spent_ms(index).values()):.0f} ms)")
    return " > ".join(parts)


def _savings(found: Explanation) -> str:
    """What the treatment saved, and for Fast Open what it could save at most. Empty without a baseline."""
    if found.could_save_ms is None:
        return ""
    if not found.bounds_the_saving:
        return "" if found.saved_ms is None else f"Measured: {_saved(found.saved_ms, found)}."
    handshakes = found.loads["baseline"].path.handshakes
    hidden = sum(handshake.inside_wait for handshake in handshakes)
    inside = f", {hidden} of them while it waited for a connection" if hidden else ""
    bound = (
        f"If nothing else changed, TFO could save {found.could_save_ms:.0f} ms at most: the path waited for "
        f"{plural(len(handshakes), 'handshake')}{inside}"
    )
    if found.saved_ms is None:
        return f"{bound}."
    return f"{bound}; measured: {found.saved_ms:.0f} ms{_beyond(found.saved_ms, found.could_save_ms)}."


def _saved(saved_ms: float, found: Explanation) -> str:
    return f"{abs(saved_ms):.0f} ms {'less' if saved_ms >= 0 else 'more'} {found.pair.phrases['treatment']}"


def _beyond(saved_ms: float, could_save_ms: float) -> str:
    if saved_ms <= could_save_ms + _LEAST_MS:
        return ""
    return ", more: requests that left sooner found shorter queues, or the critical path changed"


def _count(path: CriticalPath) -> str:
    count = sum(not handshake.inside_wait for handshake in path.handshakes)
    return f" ({count} of them)" if count > 1 else ""


_TRIPS = "round trips"
_UNITS = {"rtt_ms": " ms", "down_mbps": " Mbit/s down", "up_mbps": " Mbit/s up"}


def print_comparison(found: Comparison, console: Console) -> None:
    """Prints a comparison.

    Args:
        found: The comparison.
        console: The terminal; its width and colour settings apply.
    """
    for part in (*_captions(found), _setup(found), _cells(found), *_summary(found)):
        console.print(part)


def label(key: Any, value: Any) -> str:  # noqa: ANN401
    """A value of a cell's key, formatted for people."""
    if value is None:
        return "unlimited"
    return f"{value:g}{_UNITS.get(key, '')}" if isinstance(value, float) else str(value)


def _captions(found: Comparison) -> Iterator[RenderableType]:
    for side in (found.a, found.b):
        yield plain(f"{side.name}: {side.caption}")


def _setup(found: Comparison) -> Table:
    table = _plain_table("What differs in the set-up")
    for name in ("", found.a.name, found.b.name):
        table.add_column(plain(name), overflow="fold")
    for name, *values in found.setup:
        table.add_row(name, *(plain(value or words.DASH) for value in values))
    return table


def _cells(found: Comparison) -> Table:
    table = _plain_table("What differs in the numbers")
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
        table.add_row(*map(plain, _pair_row(pair)))
    return table


def _pair_row(pair: Pair) -> list[str]:
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


def _plain_table(name: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=name, title_justify="left", title_style="bold", pad_edge=False)
