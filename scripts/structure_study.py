"""Which pages Fast Open helps: made-up pages that differ in one thing each, simulated.

    python scripts/structure_study.py studies/structure/plan.toml --figure FILE.svg

`--write DIR` leaves the pages as profiles, for a run on the real kernel; `--measured DIR` shows its results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
from simulated import Pair, Place, simulate, study_plan, write_svg

from firstflight.analysis import words
from firstflight.pages import LoadedPage, Page
from firstflight.report.figures.theme import INK, Spec, styled, title

_COLORS = ["#79bfe8", "#0072b2", "#1f2933"]


@dataclass(frozen=True)
class Structure:
    """What a made-up page is like.

    Attributes:
        objects: Images and scripts beside the document.
        size: Bytes of each of them.
        padding: Bytes of the document.
        hosts: Hosts that all of them are spread over, the document's among them.
        depth: Objects in a row, each asked for by the one before.
        request: Bytes of each request.
    """

    objects: int = 24
    size: int = 8_000
    padding: int = 30_000
    hosts: int = 4
    depth: int = 1
    request: int = 400


BASE = Structure()
FACTORS: Mapping[str, tuple[int, ...]] = {
    "objects": (1, 3, 6, 12, 24, 48, 96, 192),
    "size": (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000),
    "padding": (1_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000, 240_000),
    "hosts": (1, 2, 4, 8, 12, 24),
    "depth": (1, 2, 3, 4, 6, 8, 12, 24),
    "request": (200, 400, 800, 1_400, 1_500, 2_000, 4_000),
}
NAMES = {
    "objects": "objects",
    "size": "bytes of an object",
    "padding": "bytes of the document",
    "hosts": "hosts",
    "depth": "objects in a row",
    "request": "bytes of a request",
}

Table = dict[tuple[str, int], dict[float, Pair]]
"""By factor and its value, by RTT in ms."""


def main() -> int:
    """Prints the tables; writes the pages and draws the figure if they are wanted."""
    parser = argparse.ArgumentParser(description="Vary one thing of a page at a time.")
    parser.add_argument("plan")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--write", type=Path, metavar="DIR")
    parser.add_argument("--measured", type=Path, metavar="DIR")
    options = parser.parse_args()
    pages = {name: made(name, structure) for name, structure in structures().items()}
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        for name, page in pages.items():
            (options.write / f"{name}.json").write_text(page.to_json())
    table = simulated(options.plan, pages)
    sys.stdout.writelines(rows(table))
    if options.measured:
        sys.stdout.write("\n")
        sys.stdout.writelines(measured(table, options.measured))
    if options.figure:
        write_svg(options.figure, figure(table))
    return 0


def structures() -> dict[str, Structure]:
    """Every page by its name."""
    return {
        page_name(factor, value): replace(BASE, **{factor: value})
        for factor, values in FACTORS.items()
        for value in values
    }


def page_name(factor: str, value: int) -> str:
    """Sorts by value."""
    return f"{factor}-{value:06d}"


def made(name: str, structure: Structure) -> Page:
    """A page of that structure: the document first, then level by level."""
    width = -(-structure.objects // structure.depth)
    objects = [_object(structure, number, width) for number in range(structure.objects)]
    document = {**_fields(structure, 0), "kind": "document", "mime": "text/html"}
    return Page.from_fields(
        {"name": name, "resources": [{**document, "body_bytes": structure.padding}, *objects]}
    )


def _object(structure: Structure, number: int, width: int) -> dict[str, Any]:
    """Those of the first level stand in the document, evenly; each other one is asked for by a script."""
    fields = _fields(structure, number + 1)
    if number + width < structure.objects:
        fields |= {"kind": "script", "mime": "text/javascript"}
    if number >= width:
        return {**fields, "initiator": {"resource": number + 1 - width, "via": "script"}}
    at_byte = structure.padding * (number + 1) // (width + 1)
    return {**fields, "initiator": {"resource": 0, "via": "parser", "at_byte": at_byte}}


def _fields(structure: Structure, index: int) -> dict[str, Any]:
    return {
        "url": f"http://h{index % structure.hosts}.test/{index}",
        "kind": "image",
        "mime": "image/png",
        "request_bytes": structure.request,
        "header_bytes": 250,
        "body_bytes": structure.size,
    }


def simulated(plan_file: str, pages: Mapping[str, Page]) -> Table:
    """Every page at every RTT of the plan."""
    plan = study_plan(plan_file, pages=list(pages), repeats="1")
    found = simulate(plan, {name: LoadedPage(page) for name, page in pages.items()})
    return {
        (factor, value): {rtt_ms: found[page_name(factor, value), rtt_ms] for rtt_ms in plan.rtt}
        for factor, values in FACTORS.items()
        for value in values
    }


def rows(table: Table) -> Iterator[str]:
    """A row per page: its connections, and at each RTT the improvement and the round trips saved."""
    rtts = list(next(iter(table.values())))
    yield f"| what differs | | connections | {' | '.join(f'{rtt:g} ms' for rtt in rtts)} |\n"
    yield f"|---|---:|---:|{'---|' * len(rtts)}\n"
    for (factor, value), pairs in table.items():
        mark = " (the page itself)" if getattr(BASE, factor) == value else ""
        connections = f"{pairs[rtts[-1]].tfo.counts['connections']:.0f}"
        told = (f"{words.percent(p.improvement)}, {p.saved_ms / rtt:.1f} RTT" for rtt, p in pairs.items())
        yield f"| {NAMES[factor]} | {value:,}{mark} | {connections} | {' | '.join(told)} |\n"


def measured(table: Table, folder: Path) -> Iterator[str]:
    """The improvement on the real kernel with its interval, beside the simulator's."""
    cells = json.loads((folder / "summary.json").read_text())["cells"]
    simulated = {
        (page_name(factor, value), rtt): pair
        for (factor, value), pairs in table.items()
        for rtt, pair in pairs.items()
    }
    yield "| page | RTT, ms | TCP, s | improvement, real kernel | simulated |\n|---|---:|---:|---|---:|\n"
    for cell in words.proved([cell for cell in cells if cell["n"]]):
        place: Place = (cell["page"], cell["rtt_ms"])
        point, low, high = (cell["improvement"][name] for name in ("point", "low", "high"))
        columns = (
            f"{(cell['baseline_ms']['median'] or 0) / 1000:.2f}",
            f"{words.percent(point)} ({words.interval(low, high)})",
            words.percent(simulated[place].improvement),
        )
        yield f"| {place[0]} | {place[1]:g} | {' | '.join(columns)} |\n"


def figure(table: Table) -> Spec:
    """Improvement against the value, a panel per factor, a colour per RTT."""
    data: list[dict[str, Any]] = [
        {"panel": NAMES[factor], "x": value, "rtt": f"{rtt_ms:g} ms", "y": 100 * pair.improvement}
        for (factor, value), pairs in table.items()
        for rtt_ms, pair in pairs.items()
    ]
    rtts = list(dict.fromkeys(row["rtt"] for row in data))
    x = alt.X(
        "x:Q", title=None, axis=alt.Axis(grid=False, format="~s", labelOverlap=True, labelSeparation=8)
    ).scale(type="log", nice=False)
    color = alt.Color("rtt:N", sort=None).scale(domain=rtts, range=_COLORS)
    base = alt.Chart().encode(x=x, y=alt.Y("y:Q", title="improvement of the PLT (%)"), color=color)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK, strokeWidth=1).encode(y=alt.datum(0)),
        base.mark_line(),
        base.mark_point(filled=True, size=40, opacity=1),
    ).properties(width=250, height=190)
    page = (
        f"{BASE.objects} objects of {BASE.size:,} bytes on {BASE.hosts} hosts, a document of {BASE.padding:,}"
    )
    heading = title(
        "Which pages Fast Open helps",
        [f"One thing of a page varied: else {page}. By RTT; simulated. Above 0, TFO is faster."],
    )
    facet = alt.Facet("panel:N", title=None, sort=list(NAMES.values()))
    chart = layers.facet(facet, columns=3, data=alt.NamedData("cells"), title=heading)
    return styled(
        chart.resolve_scale(x="independent").resolve_axis(x="independent").to_dict(validate=False),
        {"cells": data},
    )


if __name__ == "__main__":
    raise SystemExit(main())
