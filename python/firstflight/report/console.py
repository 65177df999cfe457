"""The result on a terminal: a table with the pages' RTTs as rows, and below it all that makes it doubtful.

Readable without colour and in 100 columns: every number that a colour marks also has a sign or a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firstflight.analysis import SIDES, words
from firstflight.report.plain import plain

_STYLES = {"faster": "green", "slower": "red", "not proved": "bold red"}


def print_summary(summary: Mapping[str, Any], console: Console) -> None:
    """Print a summary.

    Args:
        summary: As `firstflight.analysis.summarize` gives it.
        console: Where to; its width and colour are honoured.
    """
    console.print(render_summary(summary))


def render_summary(summary: Mapping[str, Any]) -> RenderableType:
    """The summary as something `rich` can print: a table per path and client, warnings."""
    return Group(*_tables(summary["cells"]), *_warnings(summary["warnings"]))


def _tables(cells: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    settings: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        settings.setdefault(words.setting(cell), []).append(cell)
    for setting, group in settings.items():
        yield _table(setting, group)
        yield Text("")


def _table(setting: str, cells: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    table.title = _title(setting, cells)
    table.add_column("page\nRTT", no_wrap=True)
    baseline, treatment = words.column_names(cells[0])
    for name in (f"PLT {baseline}", f"PLT {treatment}", "improvement", f"{baseline} on {baseline}"):
        table.add_column(f"{name}\n95 %", justify="right", no_wrap=True)
    table.add_column("verdict", min_width=13)
    table.add_column("SYN data\naccepted", ratio=1)
    pages: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        pages.setdefault(str(cell["page"]), []).append(cell)
    for page, rows in pages.items():
        table.add_row(plain(page, "bold"))
        for cell in rows:
            table.add_row(*_row(cell), end_section=cell is rows[-1])
    return table


def _title(setting: str, cells: Sequence[Mapping[str, Any]]) -> Text:
    count = words.blocks(cells)
    return plain(f"{setting}: {count} per row")


def _row(cell: Mapping[str, Any]) -> list[Text]:
    found = cell["improvement"]
    verdict = words.verdict(cell)
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


def _proof(cell: Mapping[str, Any]) -> str:
    """The proof in short: of all connections of the treatment, those with data of the SYN accepted."""
    baseline, treatment = (cell["proof"][side] for side in SIDES)
    leak = f", {baseline['leaked']} in {cell['baseline']}" if baseline["leaked"] else ""
    return f"{treatment['accepted']} of {treatment['connections']}{leak}"


def _warnings(warnings: Sequence[Mapping[str, str]]) -> Iterator[RenderableType]:
    for warning in warnings:
        yield Text.assemble(("warning: ", "yellow"), plain(f"{warning['kind']}: {warning['message']}"))
        yield Padding(plain(f"hint: {warning['advice']}", "dim"), (0, 0, 0, 2))
