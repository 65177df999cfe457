"""Joins runs of one study, in the clear and under TLS, into Markdown tables and a figure.

    python scripts/tls_study.py clear=DIR classic=DIR post-quantum=DIR --figure FILE.svg

Each DIR is a results folder. Of several clients: `clear=DIR,DIR`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from firstflight.analysis import SIDES, words
from firstflight.report.figures.theme import INK, SOFT, Spec, styled, title
from firstflight.results import write_whole

NAMES = {
    "clear": "in the clear",
    "classic": "TLS, the ClientHello fits into a SYN",
    "post-quantum": "TLS with the post-quantum share",
}
COLORS = [SOFT, "#0072b2", "#d55e00"]
_NUDGE_MS = 9.0
"""The browser's points stand beside the loader's."""
_MODES = ("tcp", "tfo")
_COUNTS = ("first_byte_ms", "retransmits", "bytes_up")

Cell = Any
Runs = dict[str, list[Path]]


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="Join the runs of the TLS study.")
    parser.add_argument("runs", nargs="+", metavar="VARIANT=DIR[,DIR]")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    runs = parse_runs(options.runs)
    cells = {
        variant: [cell for folder in folders for cell in _cells(folder)] for variant, folders in runs.items()
    }
    sys.stdout.writelines(improvements(cells))
    sys.stdout.write("\n")
    sys.stdout.writelines(reasons(runs))
    if options.figure:
        write_whole(options.figure, vl_convert.vegalite_to_svg(figure(cells)).encode())
    return 0


def parse_runs(arguments: Sequence[str]) -> Runs:
    """Folders by variant, in the order of `NAMES`. Exits where a variant is none of them."""
    runs = {
        name: [Path(part) for part in rest.split(",")]
        for name, _, rest in (a.partition("=") for a in arguments)
    }
    if unknown := runs.keys() - NAMES.keys():
        sys.exit(f"error: no such variant: {', '.join(sorted(unknown))}\nhint: {', '.join(NAMES)}")
    return {name: runs[name] for name in NAMES if name in runs}


def improvements(cells: dict[str, list[Cell]]) -> Iterator[str]:
    """PLT in both modes and the improvement with its interval, a column per variant."""
    yield f"| client | page | RTT, ms | {' | '.join(NAMES[variant] for variant in cells)} |\n"
    yield f"|---|---|---:|{'---|' * len(cells)}\n"
    by_key = {variant: {_key(cell): cell for cell in found} for variant, found in cells.items()}
    for key in sorted({key for found in by_key.values() for key in found}):
        client, page, rtt_ms = key
        told = (_told(found[key]) if key in found else "" for found in by_key.values())
        yield f"| {client} | {page} | {words.rtt(rtt_ms)} | {' | '.join(told)} |\n"


def reasons(runs: Runs) -> Iterator[str]:
    """Medians over the loads of a cell, without and with TFO: what the improvement is made of."""
    yield "| client | page | RTT, ms | variant | first byte, ms | retransmitted segments | bytes up, kB |\n"
    yield "|---|---|---:|---|---|---|---|\n"
    for variant, folders in runs.items():
        for folder in folders:
            loads = pl.read_parquet(folder / "loads.parquet").filter(pl.col("status") == "ok")
            cells = loads.group_by("client", "page", "rtt_ms", "mode").agg(pl.col(_COUNTS).median())
            wide = cells.pivot("mode", index=["client", "page", "rtt_ms"], values=_COUNTS)
            for row in wide.sort("client", "page", "rtt_ms").iter_rows(named=True):
                columns = (
                    _pair(row, "first_byte_ms"),
                    _pair(row, "retransmits"),
                    _pair(row, "bytes_up", 1000),
                )
                place = f"{row['client']} | {row['page']} | {words.rtt(row['rtt_ms'])}"
                yield f"| {place} | {variant} | {' | '.join(columns)} |\n"


def figure(cells: dict[str, list[Cell]]) -> Spec:
    """Improvement against RTT: a panel per page, a colour per variant, a shape per client."""
    data = [_point(cell, variant) for variant, found in cells.items() for cell in found]
    names = [NAMES[variant] for variant in cells]
    rtts_ms = sorted({cell["rtt_ms"] for found in cells.values() for cell in found})
    x = alt.X("x:Q", title="RTT (ms)", axis=alt.Axis(values=rtts_ms, grid=False)).scale(
        domain=[0, rtts_ms[-1] * 1.1]
    )
    y = alt.Y("point:Q", title="improvement of the PLT (%)", axis=alt.Axis(grid=True)).scale(nice=True)
    base = alt.Chart().encode(
        x=x, color=alt.Color("variant:N", sort=None).scale(domain=names, range=COLORS[: len(names)])
    )
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.transform_filter("datum.client == 'loader'").mark_line().encode(y=y),
        base.mark_rule(strokeWidth=2.2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(size=60, filled=True, opacity=1).encode(y=y, shape=alt.Shape("client:N", sort=None)),
    ).properties(width=230, height=230)
    heading = title("What TLS leaves of Fast Open's gain", [_setting(cells)])
    facet = alt.Facet("panel:N", title=None, sort=None)
    chart = layers.facet(facet, columns=2, data=alt.NamedData("cells"), title=heading)
    return styled(chart.resolve_axis(x="independent").to_dict(validate=False), {"cells": data})


def _cells(folder: Path) -> list[Cell]:
    cells: list[Cell] = json.loads((folder / "summary.json").read_text())["cells"]
    return words.proved([cell for cell in cells if cell["n"]])


def _key(cell: Cell) -> tuple[str, str, float]:
    return cell["client"], cell["page"], cell["rtt_ms"]


def _told(cell: Cell) -> str:
    point, low, high = (cell["improvement"][name] for name in ("point", "low", "high"))
    medians = " → ".join(words.seconds(cell[f"{side}_ms"]["median"]) for side in SIDES)
    return f"{medians}, {words.percent(point)} ({words.interval(low, high)})"


def _pair(row: dict[str, Any], name: str, scale: float = 1.0) -> str:
    values = (row[f"{name}_{mode}"] for mode in _MODES)
    return " → ".join(words.DASH if value is None else f"{value / scale:,.0f}" for value in values)


def _point(cell: Cell, variant: str) -> dict[str, Any]:
    percents = {name: 100 * value for name, value in cell["improvement"].items() if value is not None}
    nudge_ms = 0.0 if cell["client"] == "loader" else _NUDGE_MS
    place = {"panel": cell["page"], "x": cell["rtt_ms"] + nudge_ms, "client": cell["client"]}
    return {**place, "variant": NAMES[variant], **percents}


def _setting(cells: dict[str, list[Cell]]) -> str:
    every = [cell for found in cells.values() for cell in found]
    link = f"{every[0]['down_mbps']:g} Mbit/s down, {1000 * every[0]['up_mbps']:g} kbit/s up"
    return (
        f"{link}; medians over {words.blocks(every)} per point; bars: 95 % interval. Above 0, TFO is faster."
    )


if __name__ == "__main__":
    sys.exit(main())
