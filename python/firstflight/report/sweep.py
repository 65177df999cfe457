"""A sweep on a terminal: how the improvement is distributed, a row per path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from firstflight.report import text


def print_sweep(sweep: Mapping[str, Any], console: Console) -> None:
    """Prints a sweep.

    Args:
        sweep: As `firstflight.analysis.sweep.summarize_sweep` gives it.
        console: Where to.
    """
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    failed = f", {sweep['failed_loads']} failed" if sweep["failed_loads"] else ""
    table.title = f"improvement by path: {text.plural(sweep['loads'], 'load')}{failed}"
    table.add_column("RTT\nms", justify="right")
    table.add_column("down/up\nMbit/s", justify="right")
    table.add_column("loss\n%", justify="right")
    table.add_column("topology")
    for name in ("cells", *(f"{share}" for share in sweep["all"]["improvement"]), "faster in", "slower in"):
        table.add_column(name, justify="right")
    for path in sweep["paths"]:
        table.add_row(*_path(path), *_numbers(path))
    table.add_section()
    table.add_row("all", "", "", "", *_numbers(sweep["all"]), style="bold")
    console.print(table)


def _path(path: Mapping[str, Any]) -> list[str]:
    rates = (path["down_mbps"], path["up_mbps"])
    rate = "/".join("unlimited" if mbps is None else f"{mbps:g}" for mbps in rates)
    return [text.rtt(path["rtt_ms"]), rate, f"{100 * path['loss']:g}", path["topology"]]


def _numbers(found: Mapping[str, Any]) -> list[str]:
    quantiles = [text.percent(value) for value in found["improvement"].values()]
    shares = [f"{100 * found[name]:.0f} %" for name in ("faster", "slower")]
    return [str(found["n"]), *quantiles, *shares]
