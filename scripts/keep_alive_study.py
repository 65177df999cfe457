"""How much of the course's gain is HTTP/1.0: Fast Open with and without keep-alive.

    python scripts/keep_alive_study.py studies/keep_alive/plan.toml --figure FILE.svg

Simulates the plan on its own link and on the paper's. `--measured DIR`, a results folder of the plan, sets
the real kernel beside them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
from simulated import write_svg

import firstflight as ff
from firstflight.analysis import words
from firstflight.analysis.statistics import improvement
from firstflight.report.figures.theme import INK, Spec, styled, title

LINKS: Mapping[str, Mapping[str, Any]] = {
    "star of 4 Mbit/s (the course)": {},
    "access link of 4/0.256 Mbit/s (the paper)": {"topology": "access", "up": "256kbit"},
}
SERVERS = {"a connection per request": ("close", "close-tfo"), "keep-alive": ("keep", "keep-tfo")}
"""The plan's treatments without and with Fast Open, by server."""

_COLORS = ["#d55e00", "#0072b2"]

Place = tuple[str, float]
"""A page and an RTT, ms."""

Row = Mapping[str, Any]
Table = Mapping[Place, Row]
"""A row per place: PLT in ms and connections of each treatment, as `close_plt_ms`."""


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="Hold keep-alive against close.")
    parser.add_argument("plan")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--measured", type=Path, metavar="DIR")
    options = parser.parse_args()
    tables = {link: simulated(options.plan, keys) for link, keys in LINKS.items()}
    for link, table in tables.items():
        sys.stdout.writelines(shares(table, link))
        sys.stdout.write("\n")
    if options.measured:
        sys.stdout.writelines(measured(tables[next(iter(LINKS))], ff.open_results(options.measured)))
    if options.figure:
        write_svg(options.figure, figure(tables))
    return 0


def simulated(plan_file: str, keys: Mapping[str, Any]) -> Table:
    """What the plan gives on the virtual clock, on the link that `keys` describe."""
    with tempfile.TemporaryDirectory() as folder:
        results = ff.run(
            plan_file, out=Path(folder) / "results", engine="simulate", keep="loads", say=_quiet, **keys
        )
        medians = results.loads.filter(status="ok").group_by(
            "page", "rtt_ms", "treatment", maintain_order=True
        )
        rows = medians.agg(pl.col("plt_ms", "connections").median())
        wide = rows.pivot("treatment", index=["page", "rtt_ms"], values=["plt_ms", "connections"])
        return {(row["page"], row["rtt_ms"]): row for row in wide.iter_rows(named=True)}


def shares(table: Table, link: str) -> Iterator[str]:
    """What Fast Open saves without and with keep-alive, what keep-alive alone saves, and what both do."""
    yield f"| {link}: page | RTT, ms | connections | TFO, closing | TFO, keep-alive | left of the saving "
    yield "| keep-alive alone | both |\n|---|---:|---|---|---|---:|---:|---:|\n"
    for (page, rtt_ms), row in table.items():
        connections = " → ".join(f"{row[f'connections_{name}']:.0f}" for name in ("close-tfo", "keep-tfo"))
        left = f"{100 * _saved_ms(row, 'keep', 'keep-tfo') / _saved_ms(row, 'close', 'close-tfo'):.0f} %"
        told = [_told(row, *pair, rtt_ms) for pair in SERVERS.values()]
        ends = [words.percent(_gain(row, "close", name)) for name in ("keep", "keep-tfo")]
        yield f"| {page} | {rtt_ms:g} | {connections} | {' | '.join((*told, left, *ends))} |\n"


def measured(table: Table, results: ff.Results) -> Iterator[str]:
    """The improvement on the real kernel with its interval, beside the simulator's."""
    yield "| page | RTT, ms | closing, real kernel | simulated | keep-alive, real kernel | simulated |\n"
    yield "|---|---:|---|---:|---|---:|\n"
    loads = results.loads.filter(status="ok", proved=True)
    blocks = loads.pivot("treatment", index=["page", "rtt_ms", "block"], values="plt_ms").drop_nulls()
    for (page, rtt_ms), of_place in blocks.sort("page", "rtt_ms", "block").group_by(
        "page", "rtt_ms", maintain_order=True
    ):
        columns = []
        for without, with_tfo in SERVERS.values():
            real = improvement(of_place[without].to_list(), of_place[with_tfo].to_list())
            interval = words.interval(real["low"], real["high"]) or f"{of_place.height} blocks"
            place = (str(page), float(str(rtt_ms)))
            columns += [
                f"{words.percent(real['point'])} ({interval})",
                words.percent(_gain(table[place], without, with_tfo)),
            ]
        yield f"| {page} | {rtt_ms:g} | {' | '.join(columns)} |\n"


def figure(tables: Mapping[str, Table]) -> Spec:
    """The improvement against the RTT: a panel per page and link, a colour per server."""
    data: list[dict[str, Any]] = [
        {
            "link": link.split(" of ")[0],
            "page": page,
            "server": server,
            "rtt": rtt_ms,
            "gain": 100 * _gain(row, *pair),
        }
        for link, table in tables.items()
        for server, pair in SERVERS.items()
        for (page, rtt_ms), row in table.items()
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


def _told(row: Row, without: str, with_tfo: str, rtt_ms: float) -> str:
    times = " → ".join(words.seconds(row[f"plt_ms_{name}"]) for name in (without, with_tfo))
    round_trips = _saved_ms(row, without, with_tfo) / rtt_ms
    return f"{times}, {words.percent(_gain(row, without, with_tfo))}, {round_trips:.1f} RTT"


def _saved_ms(row: Row, without: str, treated: str) -> float:
    return float(row[f"plt_ms_{without}"] - row[f"plt_ms_{treated}"])


def _gain(row: Row, without: str, treated: str) -> float:
    return _saved_ms(row, without, treated) / float(row[f"plt_ms_{without}"])


def _quiet(text: str) -> None:
    """A warning that the loads are simulated is no news here."""


if __name__ == "__main__":
    raise SystemExit(main())
