"""What loss makes of Fast Open's gain: whole distributions of the page load time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import altair as alt
import polars as pl

import firstflight as ff
from studies.tables import COLORS, Figure, Frames, Study, panels

FOLDER = Path(__file__).parent
REPEATS = 250
SERVERS = {"keep-alive": ("keep", "keep-tfo"), "a connection per request": ("close", "close-tfo")}
QUARTILES = {"lower": 0.25, "median": 0.5, "upper": 0.75}
STEPS = [(step + 0.5) / 40 for step in range(40)]
"""Shares of the loads at which the figure shows when they are done."""

COLUMNS = {
    "servers": "{servers}",
    "page": "{page}",
    "pairs": "{pairs}",
    "without TFO, s": "{lower_tcp_s:.2f}, {median_tcp_s:.2f}, {upper_tcp_s:.2f}",
    "with TFO, s": "{lower_tfo_s:.2f}, {median_tfo_s:.2f}, {upper_tfo_s:.2f}",
    "median": "{gain_median:+.1%}",
    "upper quartile": "{gain_upper:+.1%}",
    "slower": "{slower:.0%}",
}
_MODES = {"without TFO": COLORS[1], "with TFO": COLORS[0]}
_UP_TO_S = 9.0


def measure(folders: Sequence[str]) -> Frames:
    """Quartiles by page and kind of server, simulated; of the real kernel where `folders` has results."""
    simulated = ff.simulate(FOLDER / "plan.toml", repeats=REPEATS, keep="loads").loads
    tables = {"simulated.csv": quartiles(simulated), "distributions.csv": distributions(simulated)}
    if folders:
        tables["measured.csv"] = quartiles(pl.concat(ff.open_results(folder).loads for folder in folders))
    return tables


def cells(loads: pl.DataFrame) -> Iterator[tuple[str, str, pl.Series, pl.Series]]:
    """Kind of server, page, and the PLTs of its loads without and with Fast Open, s."""
    good = last_attempts(loads).filter(status="ok")
    for servers, (tcp, tfo) in SERVERS.items():
        for page in good["page"].unique().sort():
            of_page = good.filter(page=page)
            tcp_s, tfo_s = (of_page.filter(treatment=name)["plt_ms"] / 1000 for name in (tcp, tfo))
            yield servers, page, tcp_s, tfo_s


def last_attempts(loads: pl.DataFrame) -> pl.DataFrame:
    """The loads without those that were made again."""
    return loads.unique("load_id", keep="last", maintain_order=True)


def quartiles(loads: pl.DataFrame) -> pl.DataFrame:
    """A row per page and kind of server."""
    rows = []
    for servers, page, tcp_s, tfo_s in cells(loads):
        row: dict[str, Any] = {"servers": servers, "page": page, "pairs": min(len(tcp_s), len(tfo_s))}
        for name, share in QUARTILES.items():
            before, after = (plt_s.quantile(share, "linear") for plt_s in (tcp_s, tfo_s))
            assert before is not None
            assert after is not None
            row |= {
                f"{name}_tcp_s": before,
                f"{name}_tfo_s": after,
                f"gain_{name}": (before - after) / before,
            }
        # Of all pairs of a load without and a load with Fast Open, not of those of a block alone.
        slower = fmean(after > before for before, after in product(tcp_s, tfo_s))
        rows.append({**row, "slower": slower})
    return pl.DataFrame(rows)


def distributions(loads: pl.DataFrame) -> pl.DataFrame:
    """By when each share of the loads is done."""
    return pl.DataFrame(
        [
            {
                "servers": servers,
                "page": page,
                "mode": mode,
                "share": share,
                "plt_s": plt_s.quantile(share, "linear"),
            }
            for servers, page, *both in cells(loads)
            for mode, plt_s in zip(_MODES, both, strict=True)
            for share in STEPS
        ]
    )


def draw(tables: Frames) -> Figure:
    """The share of loads that are done by a time."""
    base = alt.Chart().encode(
        x=alt.X("plt_s:Q", title="PLT (s)", scale=alt.Scale(domain=[1.5, _UP_TO_S])),
        y=alt.Y("share:Q", title="share of loads", axis=alt.Axis(format="%")),
        color=alt.Color("mode:N", title=None).scale(domain=list(_MODES), range=list(_MODES.values())),
    )
    lines = base.mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
    return panels(
        lines.properties(width=170, height=150),
        tables["distributions.csv"].to_dicts(),
        "page",
        "Page load times at 1 % loss",
        "Simulated, RTT 100 ms.",
        down="servers",
        axes="",
    )


STUDY = Study(FOLDER, measure, {"simulated.csv": COLUMNS, "measured.csv": COLUMNS}, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
