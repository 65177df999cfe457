"""The results of a server under load as a table, a CSV file and figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from firstflight.analysis import words
from firstflight.report.figures.draw import save_figure
from firstflight.report.figures.stress import FIGURES
from firstflight.results import write_whole
from firstflight.stress.rows import Row, Saving, by_cell, middle_latency, mostly, savings

CSV = "stress.csv"


def write_stress(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Writes ``stress.csv`` and the figures for which there are enough rows.

    Returns:
        The figures' SVG files.

    Raises:
        UsageError: The folder cannot be written to.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / CSV, text.getvalue().encode())
    quiet = [row for row in rows if row["flood"] == "none"]
    figures: list[tuple[str, Sequence[Row]]] = []
    if len({row["rate"] for row in quiet}) > 1:
        figures += [("cost-by-rate", quiet), ("latency-by-rate", quiet)]
    if len(quiet) < len(rows):
        figures.append(("floods", rows))
    return [_draw(folder, name, shown) for name, shown in figures]


def print_stress(rows: Sequence[Row], console: Console) -> None:
    """Prints a line per cell, with medians over its repeats."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("server", "flood", "qlen", "backlog", "SYN\ncookies"):
        table.add_column(name)
    for name in (
        "clients\n/s",
        "mode",
        "served\n%",
        "median\nms",
        "99 %\nms",
        "CPU\nus/request",
        "server\nbusy %",
        "clients\nbusy %",
        "packets\n/request",
        "SYN data\ntaken %",
        "keeps\nup",
    ):
        table.add_column(name, justify="right")
    for cell in by_cell(rows):
        table.add_row(*_line(cell))
    console.print(table)
    if saved := savings(rows):
        console.print(_savings(saved))


def _savings(saved: Sequence[Saving]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    table.title = "processor time that TFO saves"
    table.add_column("server")
    for name in ("clients\n/s", "pairs", "saved", "95 %"):
        table.add_column(name, justify="right")
    for row in saved:
        rate = "all" if row["rate"] is None else f"{row['rate']:g}"
        point, low, high = (row["saved"][key] for key in ("median", "low", "high"))
        shown = words.percent(point), words.interval(low, high)
        table.add_row(row["server"], rate, str(row["pairs"]), *shown)
    return table


def _line(cell: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    first = cell[0]
    yield from (first["server"], first["flood"], str(first["qlen"]))
    yield from (str(first["backlog"]), first["syn_cookies"])
    yield from (f"{first['rate']:g}", first["mode"])
    yield f"{100 * _middle(cell, 'answered') / first['requests']:.1f}"
    for name in ("p50_ms", "p99_ms"):
        latency = middle_latency([row[name] for row in cell])
        yield "never" if latency is None else f"{latency:.1f}"
    yield f"{_middle(cell, 'cpu_us'):.1f}"
    for name in ("server_busy", "clients_busy"):
        yield f"{100 * _middle(cell, name):.0f}"
    yield f"{median((row['packets_up'] + row['packets_down']) / row['requests'] for row in cell):.1f}"
    yield f"{100 * median(row['syn_data_acked'] / row['requests'] for row in cell):.1f}"
    yield "yes" if mostly(cell, "keeps_up") else "no"


def _middle(cell: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(median(row[name] for row in cell))


def _draw(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    spec = FIGURES[name](rows)
    drawn = [save_figure(spec, folder / "figures" / f"{name}{suffix}") for suffix in (".svg", ".png")]
    return drawn[0]
