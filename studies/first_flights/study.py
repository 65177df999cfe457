"""What Fast Open, session resumption and early data save of a page over TLS, with both key exchanges.

    python -m studies.first_flights.study RECORDINGS [CLASSIC POST_QUANTUM]

RECORDINGS holds recordings in `har/`, `warc/` and `mahimahi/`. The two results folders are of the commands in
README.md, in their order; without them the stored tables of the real kernel stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

import firstflight as ff
from studies.recordings import EVERY, pages
from studies.tables import COLORS, Figure, Frames, Study, panels, zero_line

FOLDER = Path(__file__).parent
SHARES = {"classic": False, "post-quantum": True}
MODES = {
    "tls12": "tls12",
    "resumption": "resumption",
    "tfo": "tfo",
    "early_data": "early-data",
    "tfo_early_data": "tfo+early-data",
}
"""What is compared with `tcp`, TLS 1.3 with a full handshake and nothing in the SYN: columns, modes."""
LOSSES = (0.005, 0.02)
LOSSY_REPEATS = 5
_KEY = ["share", "page", "rtt_ms"]
_EFFECT = "{{{0}:+.1%}} ({{{0}_low:+.1%}} to {{{0}_high:+.1%}})"
COLUMNS = {
    "measured.csv": {
        "key share": "{share}",
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "tcp, s": "{tcp_s:.2f}",
    }
    | {mode: _EFFECT.format(name) for name, mode in MODES.items()},
    "difference.csv": {"mode": "{mode}", "cells": "{cells}"}
    | {"median, points": "{median:.2f}", "largest, points": "{largest:.2f}", "same sign": "{same_sign}"},
    "recordings.csv": {
        "key share": "{share}",
        "RTT, ms": "{rtt_ms:g}",
        "loss": "{loss:.1%}",
        "pages": "{pages}",
    }
    | {mode: f"{{{name}:+.1%}} ({{{name}_p25:+.1%}} to {{{name}_p75:+.1%}})" for name, mode in MODES.items()},
}


def measure(arguments: Sequence[str]) -> Frames:
    """The kernel's cells, how far the simulator is from them, and the recordings simulated."""
    recordings, *folders = arguments
    measured = kernel(folders) if folders else pl.read_csv(FOLDER / "measured.csv")
    simulated = pl.concat(
        [cells(ff.simulate(FOLDER / "plan.toml", post_quantum=on), name) for name, on in SHARES.items()]
    )
    return {
        "measured.csv": measured,
        "simulated.csv": simulated,
        "difference.csv": difference(measured, simulated),
        "recordings.csv": over_recordings(Path(recordings)),
    }


def kernel(folders: Sequence[str]) -> pl.DataFrame:
    """The cells of two results folders, by key share."""
    found = zip(SHARES, map(ff.open_results, folders), strict=True)
    return pl.concat([cells(results, name) for name, results in found])


def cells(results: ff.Results, share: str) -> pl.DataFrame:
    """A row for each page and RTT, with the improvement by each mode."""
    frame = results.cells
    assert frame["proved"].all(), "a cell is not proved"
    base = frame.group_by("page", "rtt_ms", maintain_order=True).agg(
        tcp_s=pl.col("baseline_ms").first() / 1000, n=pl.col("n").min()
    )
    for name, mode in MODES.items():
        effect = frame.filter(treatment=mode).select(
            "page", "rtt_ms", **{name: "improvement", f"{name}_low": "low", f"{name}_high": "high"}
        )
        base = base.join(effect, on=["page", "rtt_ms"], how="left", maintain_order="left")
    return base.select(pl.lit(share).alias("share"), pl.all())


def difference(measured: pl.DataFrame, simulated: pl.DataFrame) -> pl.DataFrame:
    """How far the simulated improvements are from the kernel's, by mode, points."""
    both = measured.join(simulated, on=_KEY, suffix="_simulated")
    rows = []
    for name, mode in MODES.items():
        off = (both[name] - both[f"{name}_simulated"]).abs() * 100
        clear = both.filter((pl.col(f"{name}_low") > 0) | (pl.col(f"{name}_high") < 0))
        same = (clear[name].sign() == clear[f"{name}_simulated"].sign()).sum()
        rows.append(
            {
                "mode": mode,
                "cells": both.height,
                "median": off.median(),
                "largest": off.max(),
                "same_sign": f"{same} of {clear.height}",
            }
        )
    return pl.DataFrame(rows)


def over_recordings(folder: Path) -> pl.DataFrame:
    """The distribution of the improvement over recorded pages, by key share, RTT and loss."""
    recorded = pages(folder, EVERY)
    conditions = [(rtt, 0.0, 1) for rtt in (20, 100, 200)]
    conditions += [(100, loss, LOSSY_REPEATS) for loss in LOSSES]
    rows = []
    for share, on in SHARES.items():
        for rtt, loss, repeats in conditions:
            loads = ff.simulate(
                FOLDER / "plan.toml",
                pages=recorded,
                rtt=rtt,
                loss=loss,
                repeats=repeats,
                post_quantum=on,
                keep="loads",
            ).loads.filter(status="ok")
            plt = (
                loads.group_by("page", "mode")
                .agg(pl.col("plt_ms").median())
                .pivot("mode", index="page", values="plt_ms")
            )
            row: dict[str, object] = {"share": share, "rtt_ms": rtt, "loss": loss, "pages": plt.height}
            for name, mode in MODES.items():
                gain = ((plt["tcp"] - plt[mode]) / plt["tcp"]).drop_nulls()
                row |= {
                    name: gain.median(),
                    f"{name}_p25": gain.quantile(0.25),
                    f"{name}_p75": gain.quantile(0.75),
                }
            rows.append(row)
    return pl.DataFrame(rows)


def draw(tables: Frames) -> Figure:
    """Improvement on the real kernel by RTT: a panel per page and key share, a colour per mode."""
    rows = [
        {
            "page": row["page"],
            "share": row["share"],
            "rtt": row["rtt_ms"],
            "mode": mode,
            "point": 100 * row[name],
            "low": 100 * row[f"{name}_low"],
            "high": 100 * row[f"{name}_high"],
        }
        for row in tables["measured.csv"].iter_rows(named=True)
        for name, mode in MODES.items()
    ]
    x = alt.X("rtt:Q", title="RTT (ms)", axis=alt.Axis(values=[20, 100, 200], grid=False)).scale(
        domain=[0, 220]
    )
    y = alt.Y("point:Q", title="improvement of the PLT (%)")
    color = alt.Color("mode:N", sort=None).scale(domain=list(MODES.values()), range=["#8a94a0", *COLORS[:4]])
    base = alt.Chart().encode(x=x, color=color)
    layers = alt.layer(
        zero_line(),
        base.mark_line().encode(y=y),
        base.mark_rule(strokeWidth=2.2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(size=50, filled=True, opacity=1).encode(y=y),
    ).properties(width=170, height=190)
    return panels(
        layers,
        rows,
        "page",
        "What each first flight saves of a page over TLS",
        "Against TLS 1.3 with a full handshake; 10 Mbit/s down, 2 Mbit/s up.",
        "The real kernel, the loader; bars: 95 % interval.",
        down="share",
    )


STUDY = Study(FOLDER, measure, COLUMNS, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
