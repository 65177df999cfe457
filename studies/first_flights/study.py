"""What Fast Open, resumption, early data, QUIC and 0-RTT save of a page over TLS, with both key exchanges.

    python -m studies.first_flights.study RECORDINGS [RESULTS...]

RECORDINGS holds recordings in `har/`, `warc/` and `mahimahi/`. The results folders are of the commands in
README.md; what none is given of stays in the stored tables of the real kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
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
    "quic": "quic",
    "quic_0rtt": "quic-0rtt",
}
"""What is compared with `tcp`, TLS 1.3 with a full handshake and nothing in the SYN: columns, modes."""
LOSSES = (0.005, 0.02)
LOSSY_REPEATS = 5
BLOCKED_BY = {
    "tfo": ("drop-data", False),
    "tfo+early-data": ("drop-data", False),
    "quic": ("drop-udp", True),
    "quic-0rtt": ("drop-udp", True),
}
"""What stands in the way of a mode on some paths: its middlebox; whether the key share is post-quantum."""
BLOCKED = (0, 1, 3, 6, 10, 20, 40)
"""Shares of paths with that middlebox, %."""
_KEY = ["share", "page", "rtt_ms"]
_EFFECT = "{{{0}:+.1%}} ({{{0}_low:+.1%}} to {{{0}_high:+.1%}})"
_SPREAD = "{{{0}:+.1%}} ({{{0}_p25:+.1%}} to {{{0}_p75:+.1%}})"
COLUMNS = {
    "measured.csv": {
        "key share": "{share}",
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "tcp, s": "{tcp_s:.2f}",
    }
    | {mode: _EFFECT.format(name) for name, mode in MODES.items()},
    "chromium.csv": {"page": "{page}", "RTT, ms": "{rtt_ms:g}", "n": "{n}", "tcp, s": "{tcp_s:.2f}"}
    | {mode: _EFFECT.format(name) for name, mode in MODES.items()},
    "difference.csv": {"mode": "{mode}", "cells": "{cells}"}
    | {"median, points": "{median:.2f}", "largest, points": "{largest:.2f}", "same sign": "{same_sign}"},
    "accuracy.csv": {"HTTP": "{http:g}", "mode": "{mode}", "cells": "{cells}"}
    | {"median": "{median:.2%}", "95th percentile": "{p95:.2%}", "largest": "{largest:.2%}"},
    "recordings.csv": {
        "key share": "{share}",
        "RTT, ms": "{rtt_ms:g}",
        "loss": "{loss:.1%}",
        "tickets": "{cookies}",
        "pages": "{pages}",
    }
    | {mode: _SPREAD.format(name) for name, mode in MODES.items()},
    "http2.csv": {"key share": "{share}", "RTT, ms": "{rtt_ms:g}", "loss": "{loss:.1%}", "pages": "{pages}"}
    | {mode: _SPREAD.format(name) for name, mode in MODES.items()},
    "blocked.csv": {"mode": "{mode}", "middlebox": "{middlebox}", "pages": "{pages}"}
    | {f"{share} %": f"{{blocked_{share}:+.1%}}" for share in BLOCKED}
    | {"pays up to": "{pays_up_to:.0f} %"},
}


def measure(arguments: Sequence[str]) -> Frames:
    """The kernel's cells, how far the simulator is from them, and the recordings simulated."""
    recordings, *folders = arguments
    every = [ff.open_results(folder) for folder in folders]
    browser = [found for found in every if found.loads["client"][0] == "chromium"]
    results = [found for found in every if found not in browser]
    over_http1 = [found for found in results if _version(found) == "1.1"]
    measured = kernel(over_http1) if over_http1 else pl.read_csv(FOLDER / "measured.csv")
    chromium = cells(browser[0], "post-quantum") if browser else pl.read_csv(FOLDER / "chromium.csv")
    simulated = pl.concat(
        [cells(ff.simulate(FOLDER / "plan.toml", post_quantum=on), name) for name, on in SHARES.items()]
    )
    recorded = pages(Path(recordings), EVERY)
    return {
        "measured.csv": measured,
        "chromium.csv": chromium,
        "simulated.csv": simulated,
        "difference.csv": difference(measured, simulated),
        "accuracy.csv": accuracy(results),
        "recordings.csv": over_recordings(recorded),
        "http2.csv": over_http2(recorded),
        "blocked.csv": where_blocked(recorded),
    }


def kernel(results: Sequence[ff.Results]) -> pl.DataFrame:
    """The cells of results, by key share."""
    of_share = {bool(found.loads["post_quantum"][0]): found for found in results}
    return pl.concat([cells(of_share[on], name) for name, on in SHARES.items()])


def _version(results: ff.Results) -> str:
    return str(results.loads["http"][0])


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


def accuracy(results: Sequence[ff.Results]) -> pl.DataFrame:
    """How far the simulated page load times are from the medians of the kernel's, by mode, as shares."""
    stored = pl.read_csv(FOLDER / "accuracy.csv", schema_overrides={"http": pl.String})
    versions = dict.fromkeys([*stored["http"], *map(_version, results)])
    measured = {http: [found for found in results if _version(found) == http] for http in versions}
    tables = [_accuracy(http, of) if of else stored.filter(http=http) for http, of in measured.items()]
    return pl.concat(tables)


def _accuracy(http: str, results: Sequence[ff.Results]) -> pl.DataFrame:
    key = ["page", "rtt_ms", "mode"]
    median = pl.col("plt_ms").median()
    cells = []
    for found in results:
        kernel = found.loads.filter(status="ok").group_by(key).agg(median)
        modes = list(dict.fromkeys(found.loads["mode"]))
        on = bool(found.loads["post_quantum"][0])
        loads = ff.simulate(FOLDER / "plan.toml", post_quantum=on, http=http, mode=modes).loads
        cells.append(kernel.join(loads.group_by(key).agg(median), on=key, suffix="_simulated"))
    off = pl.concat(cells).with_columns(off=(pl.col("plt_ms_simulated") / pl.col("plt_ms") - 1).abs())
    of_modes = [(mode, off.filter(mode=mode)) for mode in ("tcp", *MODES.values())]
    by_mode = [("all", off), *((mode, of) for mode, of in of_modes if of.height)]
    return pl.DataFrame(
        {
            "http": http,
            "mode": mode,
            "cells": found.height,
            "median": found["off"].median(),
            "p95": found["off"].quantile(0.95),
            "largest": found["off"].max(),
        }
        for mode, found in by_mode
    )


def over_recordings(recorded: list[ff.Page]) -> pl.DataFrame:
    """The distribution of the improvement over recorded pages, by key share, RTT, loss and tickets."""
    conditions = [(rtt, 0.0, "warm", 1) for rtt in (20, 100, 200)]
    conditions += [(100, loss, "warm", LOSSY_REPEATS) for loss in LOSSES]
    conditions += [(100, 0.0, "cold", 1)]
    rows = []
    for share, on in SHARES.items():
        for rtt, loss, cookies, repeats in conditions:
            plt = page_load_times(
                recorded, rtt=rtt, loss=loss, cookies=cookies, repeats=repeats, post_quantum=on
            )
            row: dict[str, object] = {"share": share, "rtt_ms": rtt, "loss": loss, "cookies": cookies}
            rows.append(row | spread(plt, MODES))
    return pl.DataFrame(rows)


def over_http2(recorded: list[ff.Page]) -> pl.DataFrame:
    """The same where connections over TCP speak HTTP/2: one to each origin, as over QUIC."""
    conditions = [(rtt, 0.0, 1) for rtt in (20, 100, 200)]
    conditions += [(100, loss, LOSSY_REPEATS) for loss in LOSSES]
    rows = []
    for share, on in SHARES.items():
        for rtt, loss, repeats in conditions:
            plt = page_load_times(recorded, rtt=rtt, loss=loss, http="2", repeats=repeats, post_quantum=on)
            row: dict[str, object] = {"share": share, "rtt_ms": rtt, "loss": loss}
            rows.append(row | spread(plt, MODES))
    return pl.DataFrame(rows)


def where_blocked(recorded: list[ff.Page]) -> pl.DataFrame:
    """The mean improvement at 100 ms where some paths drop what is new, and where it ends."""
    rows = []
    for mode, (middlebox, post_quantum) in BLOCKED_BY.items():
        row: dict[str, object] = {"mode": mode, "middlebox": middlebox, "pages": len(recorded)}
        means = []
        for share in BLOCKED:
            plt = page_load_times(
                recorded,
                rtt=100,
                mode=["tcp", mode],
                middlebox=f"{middlebox}:{share / 100:g}" if share else "off",
                repeats=LOSSY_REPEATS if share else 1,
                post_quantum=post_quantum,
            )
            means.append(float(((plt["tcp"] - plt[mode]) / plt["tcp"]).to_numpy().mean()))
            row[f"blocked_{share}"] = means[-1]
        rows.append(row | {"pays_up_to": zero(BLOCKED, means)})
    return pl.DataFrame(rows)


def zero(places: Sequence[float], values: Sequence[float]) -> float | None:
    """Where falling values cross 0, by linear interpolation; None where they do not."""
    for (left, above), (right, below) in pairwise(zip(places, values, strict=True)):
        if above > 0 >= below:
            return left + (right - left) * above / (above - below)
    return None


def page_load_times(recorded: list[ff.Page], **keys: object) -> pl.DataFrame:
    """The median PLT of each page, a column for each mode."""
    loads = ff.simulate(FOLDER / "plan.toml", pages=recorded, keep="loads", **keys).loads.filter(status="ok")
    medians = loads.group_by("page", "mode").agg(pl.col("plt_ms").median())
    return medians.pivot("mode", index="page", values="plt_ms").drop_nulls()


def spread(plt: pl.DataFrame, modes: Mapping[str, str]) -> dict[str, object]:
    """How many pages there are, and the median and the quartiles of each mode's improvement."""
    row: dict[str, object] = {"pages": plt.height}
    for name, mode in modes.items():
        gain = (plt["tcp"] - plt[mode]) / plt["tcp"]
        row |= {name: gain.median(), f"{name}_p25": gain.quantile(0.25), f"{name}_p75": gain.quantile(0.75)}
    return row


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
    color = alt.Color("mode:N", sort=None).scale(domain=list(MODES.values()), range=["#8a94a0", *COLORS[:6]])
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
