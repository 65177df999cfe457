"""What a Fast Open that no kernel has would bring, and cost: over many pages, simulated.

    python scripts/what_if_study.py studies/what_if/plan.toml --figure FILE.svg

The plan's pages on its link, and the paper's four on the paper's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from simulated import Pair, Place, simulate, study_plan, write_svg
from what_if_worlds import CONDITIONS, Condition, Keys

from firstflight.analysis import words
from firstflight.analysis.statistics import median
from firstflight.experiment.catalogue import read_catalogue
from firstflight.model.plan import PAPER_PAGES
from firstflight.pages import LoadedPage, load_page, under
from firstflight.report.figures.theme import INK, SIDE_COLORS, Spec, styled, title

TODAY = "today"
PAPER_LINK = {"down": "4mbit", "up": "256kbit"}
_SHOWN_RTT_MS = 100.0
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NOTHING = -0.01
"""A page that loads later by less is not counted as slower."""
_PAPER_DRAWS = 10
"""Loads of each of the paper's pages, which differ in where the kernel's tick falls."""

Pages = Mapping[str, LoadedPage]
Worlds = dict[str, dict[Place, Pair]]
"""By what is otherwise; `TODAY` among them."""
Results = dict[str, Worlds]
"""By condition."""


@dataclass(frozen=True)
class Effect:
    """What is otherwise, over all pages at one RTT.

    Attributes:
        gains: How much sooner pages load than with TFO of today, fractions, by page.
        today: Loads with TFO of today, and without TFO.
        otherwise: The same in the other world.
    """

    gains: list[float]
    today: list[Pair]
    otherwise: list[Pair]

    def change(self, count: str) -> float:
        """By how much a count of all loads with TFO differs from today's, a fraction."""
        return _total(self.otherwise, count) / _total(self.today, count) - 1

    def mean(self, count: str) -> tuple[float, float]:
        """A count of one page's load with TFO in the mean, today and otherwise."""
        return _total(self.today, count) / len(self.today), _total(self.otherwise, count) / len(self.today)

    @property
    def over_tcp(self) -> tuple[float, float]:
        """The median improvement over plain TCP of the same world, fractions, today and otherwise."""
        return _improvement(self.today), _improvement(self.otherwise)


def main() -> int:
    """Prints the tables; draws the figure if one is wanted."""
    parser = argparse.ArgumentParser(description="Load pages in worlds that are not there.")
    parser.add_argument("plan")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    paper = made(options.plan, {name: load_page(name)[0] for name in PAPER_PAGES}, PAPER_LINK, _PAPER_DRAWS)
    catalogue = read_catalogue(study_plan(options.plan).pages, ["recorded"], _quiet, _say)
    corpus = made(options.plan, {page.page.name: page for page in catalogue}, {})
    sys.stdout.writelines(by_page(paper))
    sys.stdout.write(f"\n{len(catalogue.names)} pages.\n\n")
    sys.stdout.writelines(distributions(corpus))
    sys.stdout.write("\n")
    sys.stdout.writelines(costs(corpus))
    if options.figure:
        write_svg(options.figure, figure(corpus))
    return 0


def made(plan_file: str, pages: Pages, link: Keys, draws: int = 1) -> Results:
    """Every page at every RTT of the plan under every condition, so often, today and otherwise."""
    bare = {name: LoadedPage(page.page) for name, page in pages.items()}
    return {
        condition.name: _worlds(
            plan_file, bare, {**link, "repeats": str(max(draws, condition.draws))}, condition
        )
        for condition in CONDITIONS
    }


def _worlds(plan_file: str, bare: Pages, link: Keys, condition: Condition) -> Worlds:
    scheme = str(condition.keys.get("scheme", "http"))
    pages = {name: under(scheme, page) for name, page in bare.items()}
    keys = {**link, **condition.keys, "pages": list(pages)}
    worlds = {TODAY: {}, **condition.worlds}
    return {name: simulate(study_plan(plan_file, **keys, **world), pages) for name, world in worlds.items()}


def by_page(results: Results) -> Iterator[str]:
    """A row per world, a column per page: the improvement over plain TCP of today."""
    pages = dict.fromkeys(page for page, _ in next(iter(results.values()))[TODAY])
    yield f"| | | {' | '.join(pages)} |\n|---|---|{'---:|' * len(pages)}\n"
    for condition, worlds in results.items():
        for name, found in worlds.items():
            told = [_over_today(worlds, found, (page, _SHOWN_RTT_MS)) for page in pages]
            yield f"| {condition if name == TODAY else ''} | {_named(name)} | {' | '.join(told)} |\n"


def _over_today(worlds: Worlds, found: Mapping[Place, Pair], place: Place) -> str:
    tcp_ms = worlds[TODAY][place].tcp.plt_ms
    return words.percent((tcp_ms - found[place].tfo.plt_ms) / tcp_ms)


def distributions(results: Results) -> Iterator[str]:
    """A row per world: how much sooner than with TFO of today, and how that is distributed over the pages."""
    rtts = [f"{rtt_ms:g} ms" for rtt_ms in _rtts(results)]
    yield f"| | | {' | '.join(rtts)} | half of the pages | nine tenths | slower | TFO over TCP |\n"
    yield f"|---|---|{'---|' * len(rtts)}---|---|---:|---|\n"
    for condition, name in _others(results):
        by_rtt = {rtt_ms: effect(results[condition], name, rtt_ms) for rtt_ms in _rtts(results)}
        shown = by_rtt[_SHOWN_RTT_MS]
        low, p25, _, p75, high = np.quantile(shown.gains, _QUANTILES)
        slower = sum(gain < _NOTHING for gain in shown.gains) / len(shown.gains)
        columns = (
            *(_centre(found.gains) for found in by_rtt.values()),
            f"{words.interval(p25, p75)} %",
            f"{words.interval(low, high)} %",
            f"{100 * slower:.0f} %",
            " → ".join(words.percent(value) for value in shown.over_tcp),
        )
        yield f"| {condition} | {_named(name)} | {' | '.join(columns)} |\n"


def _centre(gains: list[float]) -> str:
    found = median(gains)
    return f"{words.percent(found['median'] or 0.0)} ({words.interval(found['low'], found['high'])})"


def costs(results: Results) -> Iterator[str]:
    """A row per world: bytes, connections, segments sent again and SYNs whose data was taken."""
    yield "| | | bytes up | bytes down | connections a page | retransmissions a page | data taken in SYNs |\n"
    yield "|---|---|---:|---:|---|---|---|\n"
    for condition, name in _others(results):
        found = effect(results[condition], name, _SHOWN_RTT_MS)
        taken = zip(found.mean("tfo_accepted"), found.mean("connections"), strict=True)
        columns = (
            *(words.percent(found.change(count)) for count in ("bytes_up", "bytes_down")),
            *(_both(found.mean(count)) for count in ("connections", "retransmits")),
            " → ".join(f"{100 * accepted / opened:.0f} %" for accepted, opened in taken),
        )
        yield f"| {condition} | {_named(name)} | {' | '.join(columns)} |\n"


def effect(worlds: Worlds, name: str, rtt_ms: float) -> Effect:
    """One world beside today's."""
    places = [place for place in worlds[TODAY] if place[1] == rtt_ms]
    today, otherwise = ([worlds[world][place] for place in places] for world in (TODAY, name))
    pairs = zip(today, otherwise, strict=True)
    return Effect([1 - new.tfo.plt_ms / old.tfo.plt_ms for old, new in pairs], today, otherwise)


def _others(results: Results) -> Iterator[tuple[str, str]]:
    return ((condition, name) for condition, worlds in results.items() for name in worlds if name != TODAY)


def _rtts(results: Results) -> list[float]:
    return list(dict.fromkeys(rtt_ms for _, rtt_ms in next(iter(results.values()))[TODAY]))


def _improvement(pairs: list[Pair]) -> float:
    return float(np.median([pair.improvement for pair in pairs]))


def _total(pairs: list[Pair], count: str) -> float:
    return sum(pair.tfo.counts[count] for pair in pairs)


def _both(values: tuple[float, float]) -> str:
    return " → ".join(f"{value:.1f}" for value in values)


def figure(results: Results) -> Spec:
    """How much sooner than with TFO of today: quantiles over the pages by world, a panel per condition."""
    data = [
        {"panel": condition, "world": _named(name), **_percents(results[condition], name)}
        for condition, name in _others(results)
    ]
    y = alt.Y("world:N", title=None, sort=None, axis=alt.Axis(labelLimit=0, grid=False, ticks=False))
    base = alt.Chart().encode(y=y)
    color = SIDE_COLORS["treatment"]
    scale = alt.Scale(domain=[-25, 50], clamp=True)
    x = alt.X("p05:Q", title="sooner than with TFO of today (%)", scale=scale)
    layers = alt.layer(
        alt.Chart().mark_rule(color=INK).encode(x=alt.datum(0)),
        base.mark_rule(strokeWidth=4, opacity=0.25, color=color).encode(x=x, x2="p95:Q"),
        base.mark_rule(strokeWidth=9, opacity=0.45, color=color).encode(x=alt.X("p25:Q"), x2="p75:Q"),
        base.mark_point(filled=True, size=70, color=color, opacity=1).encode(x=alt.X("p50:Q")),
    ).properties(width=330, height=alt.Step(24))
    heading = title(
        "What a Fast Open that no kernel has would bring",
        [
            f"Simulated, RTT {_SHOWN_RTT_MS:g} ms. Over the pages: median, half and nine tenths of them.",
            "Above 0, the page loads sooner than with Fast Open of today under the same condition.",
        ],
    )
    facet = alt.Facet("panel:N", title=None, sort=[condition.name for condition in CONDITIONS])
    chart = layers.facet(facet, columns=2, data=alt.NamedData("cells"), title=heading)
    return styled(
        chart.resolve_scale(y="independent").resolve_axis(x="independent").to_dict(validate=False),
        {"cells": data},
    )


def _percents(worlds: Worlds, name: str) -> dict[str, Any]:
    found = np.quantile(effect(worlds, name, _SHOWN_RTT_MS).gains, _QUANTILES)
    return {
        f"p{round(100 * at):02d}": 100 * float(value) for at, value in zip(_QUANTILES, found, strict=True)
    }


def _named(name: str) -> str:
    return name.replace(",", ", ")


def _quiet(_: str) -> None:
    """What readers decided is not this study's."""


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


if __name__ == "__main__":
    raise SystemExit(main())
