"""The results of a sweep on a terminal and as a figure: the distribution of the improvement."""

from __future__ import annotations

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from firstflight.analysis import words
from firstflight.analysis.records import Distribution, OriginsGroup, Sweep, SweepPath
from firstflight.analysis.sweep import summarize_sweep
from firstflight.deferred import polars as pl
from firstflight.report.console import plain
from firstflight.report.figures.draw import save_figure
from firstflight.report.figures.sweep import improvement_of_sweep
from firstflight.results import write_whole
from firstflight.results.tables import write_tables
from firstflight.text import plural

_SHARES = ("faster", "slower", "above 0", "below 0")
"""Columns of shares: cells with a verdict, and cells by the sign of the estimate, whatever the verdict."""


def caption_lines(sweep: Sweep) -> list[str]:
    """The settings of a sweep, as `firstflight.analysis.words.caption` formats them."""
    paths = sweep["paths"]
    compared = dict.fromkeys(words.comparison(path) for path in paths if not words.is_of_fast_open(path))
    return [*compared, *(words.caption_lines(*paths) if paths else [])]


def print_sweep(sweep: Sweep, console: Console) -> None:
    """Prints a sweep.

    Args:
        sweep: From `firstflight.analysis.sweep.summarize_sweep`.
        console: The terminal.
    """
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    failed = f", {sweep['failed_loads']} failed" if sweep["failed_loads"] else ""
    caption = "\n".join(caption_lines(sweep))
    table.title = escape(f"improvement by path: {plural(sweep['loads'], 'load')}{failed}\n{caption}")
    table.add_column("RTT\nms", justify="right")
    table.add_column("down/up\nMbit/s", justify="right")
    table.add_column("loss\n%", justify="right")
    table.add_column("topology")
    several = len({path["treatment"] for path in sweep["paths"]}) > 1
    if several:
        table.add_column("treatment")
    for name in ("cells", *(f"{share}" for share in sweep["all"]["improvement"]), *_SHARES):
        table.add_column(name, justify="right")
    for path in sweep["paths"]:
        treatment = [path["treatment"]] if several else []
        table.add_row(*_path(path), *treatment, *_numbers(path))
    table.add_section()
    table.add_row("all", "", "", "", *([""] if several else []), *_numbers(sweep["all"]), style="bold")
    console.print(table)
    if sweep["origins"]:
        console.print(_by_origins(sweep))
    if sweep["caution"]:
        console.print(Text("simulated:", "yellow"), plain(sweep["caution"]))
    for warning in sweep["warnings"]:
        console.print(Text("warning:", "yellow"), plain(f"{warning['kind']}: {warning['message']}"))
        console.print(plain(f"  hint: {warning['advice']}", "dim"))


def _by_origins(sweep: Sweep) -> Table:
    groups = sweep["origins"]
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    caption = "\n".join(caption_lines(sweep))
    table.title = escape(f"improvement by origins of the page\n{caption}")
    for name in ("origins", "RTT\nms", "cells", *groups[0]["improvement"], *_SHARES):
        table.add_column(name, justify="right")
    for group in groups:
        name = f"{group['from']}\N{EN DASH}{group['to']}"
        table.add_row(name, words.rtt(group["rtt_ms"]), *_numbers(group))
    return table


def write_sweep(folder: Path) -> Sweep:
    """Writes the tables, ``cells.parquet`` and ``sweep.json`` of a results folder from its journal.

    Returns:
        The contents of ``sweep.json``.

    Raises:
        UsageError: The folder has no readable journal or no load, or cannot be written to.
    """
    loads, *_ = write_tables(folder)
    cells, sweep = summarize_sweep(folder, pl.scan_parquet(loads))
    cells.write_parquet(folder / "cells.parquet")
    write_whole(folder / "sweep.json", (json.dumps(sweep, indent=2) + "\n").encode())
    return sweep


def draw_sweep(folder: Path, sweep: Sweep) -> list[Path]:
    """Draws ``figures/sweep.svg``, ``.png`` and ``.pdf``; nothing if there is no cell.

    Raises:
        UsageError: The folder cannot be written to.
    """
    if not sweep["cells"]:
        return []
    spec = improvement_of_sweep(sweep)
    return [save_figure(spec, folder / "figures" / f"sweep{suffix}") for suffix in (".svg", ".png", ".pdf")]


def _path(path: SweepPath) -> list[str]:
    return [words.rtt(path["rtt_ms"]), words.rates(path), f"{100 * path['loss']:g}", path["topology"]]


def _numbers(found: Distribution | SweepPath | OriginsGroup) -> list[str]:
    quantiles = [words.percent(value) for value in found["improvement"].values()]
    known = (found["faster"], found["slower"], found["above_zero"], found["below_zero"])
    shares = [f"{100 * share:.0f} %" for share in known]
    return [str(found["n"]), *quantiles, *shares]
