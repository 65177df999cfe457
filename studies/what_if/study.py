"""What variants of Fast Open that no kernel has would bring, and cost: over many pages, simulated.

    python -m studies.what_if.study FOLDER

FOLDER holds recordings in `har/`, `warc/` and `mahimahi/`. The paper's four pages are loaded on the paper's
link as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
from scipy.stats import binom  # type: ignore[import-untyped]

import firstflight as ff
from studies.recordings import EVERY, pages
from studies.tables import COLORS, Figure, Frames, Study, gain, panels

FOLDER = Path(__file__).parent
PAPER_LINK = {"down": "4mbit", "up": "256kbit", "rtt": 100}
PAPER_REPEATS = 10
SHOWN_RTT_MS = 100.0
QUANTILES = {"p05": 0.05, "p25": 0.25, "p75": 0.75, "p95": 0.95}
SLOWER = -0.01
"""A page that loads later by less is not counted as slower."""
COUNTS = ("bytes_up", "bytes_down", "connections", "retransmits", "tfo_accepted")

Keys = Mapping[str, Any]


@dataclass(frozen=True)
class Condition:
    """Under which conditions variants are compared with Fast Open of today.

    Attributes:
        name: In words.
        keys: Of the plan.
        variants: What differs, by its name: keys of the plan.
        repeats: Loads of each page; several where random choices decide.
    """

    name: str
    keys: Keys
    variants: Mapping[str, Keys]
    repeats: int = 1

    def treatments(self) -> list[Keys]:
        """Today's modes, and both modes of each variant, numbered from 0.

        Plain TCP meets nothing of a variant but early data and the initial window.
        """
        found: list[Keys] = [{"name": f"today-{mode}", "mode": mode} for mode in ("tcp", "tfo")]
        for number, keys in enumerate(self.variants.values()):
            early = [
                part for part in str(keys.get("what_if", "")).split(",") if part.startswith("early-data")
            ]
            plain = {**keys, "what_if": ",".join(early) or "off"}
            found.append({"name": f"{number}-tcp", "mode": "tcp", **plain})
            found.append({"name": f"{number}-tfo", "mode": "tfo", **keys})
        return found


def _variants(*what_ifs: str, windows: Sequence[int] = ()) -> dict[str, Keys]:
    named: dict[str, Keys] = {name.replace(",", ", "): {"what_if": name} for name in what_ifs}
    return named | {f"initial window {segments}": {"initial_window": segments} for segments in windows}


TLS = {"scheme": "https"}
CONDITIONS = (
    Condition(
        "in the clear, warm cookies",
        {},
        _variants("one-time-cookies=1", "one-time-cookies=6", "syn-payload=4", windows=(3, 32)),
    ),
    Condition(
        "in the clear, cold cookies",
        {"cookies": "cold"},
        _variants("unproven=1460", "unproven=4380", "unproven=14600"),
    ),
    Condition(
        "in the clear, behind a NAT whose address has changed",
        {"cookies": "nat"},
        _variants("client-cookies"),
    ),
    Condition(
        "in the clear, 6 % of the paths drop SYNs with data",
        {"middlebox": "drop-data:0.06"},
        _variants("negative-cache", "negative-cache=visit"),
        repeats=10,
    ),
    Condition(
        "in the clear, 1 % loss",
        {"loss": 0.01},
        _variants("negative-cache", "one-time-cookies=6"),
        repeats=10,
    ),
    Condition(
        "TLS with the post-quantum share",
        TLS,
        _variants("early-data=0", "early-data", "syn-payload=2", "syn-payload=2,early-data", windows=(32,)),
    ),
    Condition(
        "TLS with it, cold cookies",
        {**TLS, "cookies": "cold"},
        _variants("early-data", "unproven=4380,syn-payload=2", "unproven=4380,syn-payload=2,early-data"),
    ),
    Condition("TLS without it", {**TLS, "post_quantum": False}, _variants("early-data=0", "early-data")),
)

COLUMNS = {
    "variants.csv": {
        "condition": "{condition}",
        "variant": "{variant}",
        **{
            f"{rtt} ms": f"{{median_{rtt}:+.1%}} ({{low_{rtt}:+.1%}} to {{high_{rtt}:+.1%}})"
            for rtt in (20, 100, 200)
        },
        "half of the pages": "{p25:+.1%} to {p75:+.1%}",
        "nine tenths": "{p05:+.1%} to {p95:+.1%}",
        "slower": "{slower:.0%}",
        "TFO over TCP": "{over_tcp_today:+.1%} → {over_tcp:+.1%}",
    },
    "costs.csv": {
        "condition": "{condition}",
        "variant": "{variant}",
        "bytes up": "{bytes_up:+.1%}",
        "bytes down": "{bytes_down:+.1%}",
        "connections a page": "{connections_today:.1f} → {connections:.1f}",
        "retransmissions a page": "{retransmits_today:.1f} → {retransmits:.1f}",
        "data taken in SYNs": "{taken_today:.0%} → {taken:.0%}",
    },
    "paper.csv": {
        "condition": "{condition}",
        "variant": "{variant}",
        **{page: f"{{{page}:+.1%}}" for page in ("amazon", "nytimes", "wsj", "wikipedia")},
    },
}


def measure(arguments: Sequence[str]) -> Frames:
    """Effects and costs over the recordings, and the improvement of the paper's pages."""
    [folder] = arguments
    recorded = pages(Path(folder), EVERY)
    effects, costs, paper = [], [], []
    for condition in CONDITIONS:
        cells = means(condition, pages=recorded)
        effects += [effect(condition, cells, number) for number in range(len(condition.variants))]
        costs += [cost(condition, cells, number) for number in range(len(condition.variants))]
        paper += on_the_papers_link(condition)
    return {name: pl.DataFrame(rows) for name, rows in zip(COLUMNS, (effects, costs, paper), strict=True)}


def means(condition: Condition, **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    """A row per page, RTT and treatment: means over its loads; a page that never loads takes for ever."""
    plan = {"repeats": condition.repeats, **keys, **condition.keys, "treatment": condition.treatments()}
    loads = ff.simulate(FOLDER / "plan.toml", **plan).loads
    plt_ms = pl.when(pl.col("status") == "ok").then(pl.col("plt_ms")).otherwise(float("inf"))
    counts = [pl.col(name).fill_null(0).mean() for name in COUNTS]
    cells = loads.group_by("page", "rtt_ms", "treatment", maintain_order=True)
    return cells.agg(plt_ms.mean().alias("plt_ms"), *counts)


def effect(condition: Condition, cells: pl.DataFrame, number: int) -> dict[str, Any]:
    """How much sooner pages load than with Fast Open of today, and how that is distributed over them."""
    row: dict[str, Any] = {"condition": condition.name, "variant": list(condition.variants)[number]}
    plts = cells.pivot("treatment", index=["page", "rtt_ms"], values="plt_ms")
    gains = plts.with_columns(
        sooner=gain("today-tfo", f"{number}-tfo"),
        today=gain("today-tcp", "today-tfo"),
        variant=gain(f"{number}-tcp", f"{number}-tfo"),
    )
    for rtt_ms in (20, 100, 200):
        low, median, high = centre(gains.filter(rtt_ms=rtt_ms)["sooner"])
        row |= {f"median_{rtt_ms}": median, f"low_{rtt_ms}": low, f"high_{rtt_ms}": high}
    shown = gains.filter(rtt_ms=SHOWN_RTT_MS)
    row |= {name: shown["sooner"].quantile(share, "linear") for name, share in QUANTILES.items()}
    row["slower"] = (shown["sooner"] < SLOWER).mean()
    return {**row, "over_tcp_today": shown["today"].median(), "over_tcp": shown["variant"].median()}


def centre(values: pl.Series) -> tuple[float, float, float]:
    """The median between the ends of its 95 % interval, by order statistics."""
    ordered = values.sort().to_list()
    first = max(int(binom.ppf(0.025, len(ordered), 0.5)) - 1, 0)
    return ordered[first], float(values.median()), ordered[-1 - first]  # type: ignore[arg-type]


def cost(condition: Condition, cells: pl.DataFrame, number: int) -> dict[str, Any]:
    """Bytes, connections, retransmissions and accepted SYN data, at one RTT over all pages."""
    shown = cells.filter(rtt_ms=SHOWN_RTT_MS)
    today, variant = (
        shown.filter(treatment=name).select(COUNTS).mean().row(0, named=True)
        for name in ("today-tfo", f"{number}-tfo")
    )
    row: dict[str, Any] = {"condition": condition.name, "variant": list(condition.variants)[number]}
    row |= {name: variant[name] / today[name] - 1 for name in ("bytes_up", "bytes_down")}
    for name in ("connections", "retransmits"):
        row |= {f"{name}_today": today[name], name: variant[name]}
    taken = {
        f"taken{end}": of["tfo_accepted"] / of["connections"]
        for end, of in (("_today", today), ("", variant))
    }
    return {**row, **taken}


def on_the_papers_link(condition: Condition) -> list[dict[str, Any]]:
    """The improvement of the paper's pages over plain TCP of today, a row per variant and one for today."""
    embedded = list(COLUMNS["paper.csv"])[2:]
    cells = means(condition, pages=embedded, **{**PAPER_LINK, "repeats": PAPER_REPEATS})
    plts = cells.pivot("treatment", index="page", values="plt_ms")
    names = {"today": "today-tfo"} | {name: f"{n}-tfo" for n, name in enumerate(condition.variants)}
    rows = []
    for variant, treatment in names.items():
        gains = plts.select("page", gain=gain("today-tcp", treatment))
        row = dict(gains.iter_rows())
        rows.append({"condition": condition.name if variant == "today" else "", "variant": variant, **row})
    return rows


def draw(tables: Frames) -> Figure:
    """How much sooner than with TFO of today: quantiles over the pages by variant, a panel per condition."""
    rows = tables["variants.csv"].with_columns(pl.col(*QUANTILES, "median_100") * 100).to_dicts()
    y = alt.Y("variant:N", title=None, sort=None, axis=alt.Axis(labelLimit=0, grid=False, ticks=False))
    base, color = alt.Chart().encode(y=y), COLORS[0]
    scale = alt.Scale(domain=[-25, 50], clamp=True)
    x = alt.X("p05:Q", title="sooner than with TFO of today (%)", scale=scale)
    layers = alt.layer(
        alt.Chart().mark_rule().encode(x=alt.datum(0)),
        base.mark_rule(strokeWidth=4, opacity=0.25, color=color).encode(x=x, x2="p95:Q"),
        base.mark_rule(strokeWidth=9, opacity=0.45, color=color).encode(x="p25:Q", x2="p75:Q"),
        base.mark_point(filled=True, size=70, color=color, opacity=1).encode(x="median_100:Q"),
    ).properties(width=330, height=alt.Step(24))
    return panels(
        layers,
        rows,
        "condition",
        "What a Fast Open that no kernel has would bring",
        "Simulated, RTT 100 ms. Over the pages: median, half and nine tenths of them.",
        "Above 0, the page loads sooner than with Fast Open of today under the same condition.",
        columns=2,
        order=[condition.name for condition in CONDITIONS],
        scales="y",
    )


STUDY = Study(FOLDER, measure, COLUMNS, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
