"""How much of the course's gain is HTTP/1.0: Fast Open with and without keep-alive, simulated.

    python scripts/keep_alive_study.py plans/keep-alive.toml --figure FILE.svg

Results of the real kernel stand beside it: `--measured CLOSED KEPT`, two results folders.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
from simulated import Pair, Place, simulate, study_plan, write_svg

from firstflight.analysis import words
from firstflight.pages import load_page
from firstflight.report.figures.theme import INK, Spec, styled, title

LINKS: Mapping[str, Mapping[str, str]] = {
    "star of 4 Mbit/s (the course)": {},
    "access link of 4/0.256 Mbit/s (the paper)": {"topology": "access", "up": "256kbit"},
}
SERVERS = {"a connection per request": False, "keep-alive": True}
_COLORS = ["#d55e00", "#0072b2"]

Table = dict[tuple[str, str], dict[Place, Pair]]
"""By link and server."""


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="Hold keep-alive against close.")
    parser.add_argument("plan")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--measured", type=Path, nargs=2, metavar=("CLOSED", "KEPT"))
    options = parser.parse_args()
    table = simulated(options.plan)
    for link in LINKS:
        sys.stdout.writelines(shares(table, link))
        sys.stdout.write("\n")
    if options.measured:
        sys.stdout.writelines(measured(table, [_cells(folder) for folder in options.measured]))
    if options.figure:
        write_svg(options.figure, figure(table))
    return 0


def simulated(plan_file: str) -> Table:
    """Every page and RTT of the plan on both links, with both servers."""
    pages = {name: load_page(name)[0] for name in study_plan(plan_file).pages}
    return {
        (link, server): simulate(study_plan(plan_file, keep_alive=keep_alive, repeats="1", **keys), pages)
        for link, keys in LINKS.items()
        for server, keep_alive in SERVERS.items()
    }


def shares(table: Table, link: str) -> Iterator[str]:
    """What Fast Open saves without and with keep-alive, what keep-alive alone saves, and what both do."""
    closed, kept = (table[link, server] for server in SERVERS)
    yield f"| {link}: page | RTT, ms | connections | TFO, closing | TFO, keep-alive | left of the saving "
    yield "| keep-alive alone | both |\n|---|---:|---|---|---|---:|---:|---:|\n"
    for place, without in closed.items():
        within, base_ms = kept[place], without.tcp.plt_ms
        connections = " → ".join(f"{pair.tfo.counts['connections']:.0f}" for pair in (without, within))
        alone, both = ((base_ms - found.plt_ms) / base_ms for found in (within.tcp, within.tfo))
        left = f"{100 * within.saved_ms / without.saved_ms:.0f} %"
        columns = (_told(without, place[1]), _told(within, place[1]), left)
        ends = (words.percent(alone), words.percent(both))
        yield f"| {place[0]} | {place[1]:g} | {connections} | {' | '.join((*columns, *ends))} |\n"


def measured(table: Table, folders: Sequence[list[dict[str, Any]]]) -> Iterator[str]:
    """The improvement on the real kernel with its interval, beside the simulator's."""
    yield "| page | RTT, ms | closing, real kernel | simulated | keep-alive, real kernel | simulated |\n"
    yield "|---|---:|---|---:|---|---:|\n"
    cells = [{(cell["page"], cell["rtt_ms"]): cell["improvement"] for cell in found} for found in folders]
    link = next(iter(LINKS))
    for place in cells[0]:
        columns = []
        for found, server in zip(cells, SERVERS, strict=True):
            real = found[place]
            interval = words.interval(real["low"], real["high"])
            columns += [
                f"{words.percent(real['point'])} ({interval})",
                words.percent(table[link, server][place].improvement),
            ]
        yield f"| {place[0]} | {place[1]:g} | {' | '.join(columns)} |\n"


def figure(table: Table) -> Spec:
    """The improvement against the RTT: a panel per page and link, a colour per server."""
    data: list[dict[str, Any]] = [
        {
            "link": link.split(" of ")[0],
            "page": page,
            "server": server,
            "rtt": rtt_ms,
            "gain": 100 * pair.improvement,
        }
        for (link, server), found in table.items()
        for (page, rtt_ms), pair in found.items()
    ]
    rtts = sorted({row["rtt"] for row in data})
    x = alt.X("rtt:Q", title="RTT (ms)", axis=alt.Axis(values=rtts, grid=False))
    color = alt.Color("server:N", sort=None).scale(domain=list(SERVERS), range=_COLORS)
    base = alt.Chart().encode(x=x, y=alt.Y("gain:Q", title="improvement of the PLT (%)"), color=color)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.mark_line(),
        base.mark_point(filled=True, size=50, opacity=1),
    ).properties(width=180, height=180)
    heading = title(
        "How much of Fast Open's gain is servers that close",
        ["Simulated, warm cookies, in the clear. Above 0, TFO is faster."],
    )
    column = alt.Column("page:N", title=None, sort=None)
    chart = layers.facet(
        column=column,
        row=alt.Row("link:N", title=None, sort=None),
        data=alt.NamedData("cells"),
        title=heading,
    )
    return styled(chart.resolve_axis(x="independent").to_dict(validate=False), {"cells": data})


def _told(pair: Pair, rtt_ms: float) -> str:
    times = " → ".join(words.seconds(found.plt_ms) for found in (pair.tcp, pair.tfo))
    return f"{times}, {words.percent(pair.improvement)}, {pair.saved_ms / rtt_ms:.1f} RTT"


def _cells(folder: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())["cells"]
    return words.proved([cell for cell in cells if cell["n"]])


if __name__ == "__main__":
    raise SystemExit(main())
