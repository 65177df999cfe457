"""What TLS leaves of Fast Open's gain, where the ClientHello fits into a SYN and where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import polars as pl

import firstflight as ff
from studies.tables import COLORS, Figure, Frames, Study, by_treatment, gain, panels, zero_line

FOLDER = Path(__file__).parent
VARIANTS = {
    "clear": "in the clear",
    "classic": "TLS, the ClientHello fits into a SYN",
    "post_quantum": "TLS with the post-quantum share",
}
_TIMES = "{{{0}_tcp_s:.2f}} s → {{{0}_tfo_s:.2f}} s, {{{0}:+.1%}}"
_PLACE = {"client": "{client}", "page": "{page}", "RTT, ms": "{rtt_ms:g}"}
COLUMNS = {
    "measured.csv": _PLACE
    | {
        name: f"{_TIMES.format(key)} ({{{key}_low:+.1%}} to {{{key}_high:+.1%}})"
        for key, name in VARIANTS.items()
    },
    "reasons.csv": _PLACE
    | {
        "variant": "{variant}",
        "first byte, ms": "{first_byte_tcp_ms:,.0f} → {first_byte_tfo_ms:,.0f}",
        "retransmitted segments": "{retransmits_tcp:.0f} → {retransmits_tfo:.0f}",
        "bytes up, kB": "{up_tcp_kb:.0f} → {up_tfo_kb:.0f}",
    },
    "simulated.csv": {"page": "{page}", "RTT, ms": "{rtt_ms:g}"}
    | {name: _TIMES.format(key) for key, name in VARIANTS.items()},
}
_NUDGE_MS = 9.0
"""The browser's points are drawn next to the loader's."""


def measure(_: Sequence[str]) -> Frames:
    """The improvement of each variant, simulated."""
    cells = by_treatment(ff.simulate(FOLDER / "plan.toml", repeats=1, keep="loads").loads)
    columns: dict[str, pl.Expr] = {}
    for key in VARIANTS:
        tcp, tfo = (f"plt_ms_{key.replace('_', '-')}{mode}" for mode in ("", "-tfo"))
        columns |= {
            f"{key}_tcp_s": pl.col(tcp) / 1000,
            f"{key}_tfo_s": pl.col(tfo) / 1000,
            key: gain(tcp, tfo),
        }
    return {"simulated.csv": cells.select("page", "rtt_ms", **columns)}


def draw(tables: Frames) -> Figure:
    """Improvement on the real kernel: a panel per page, a colour per variant, a shape per client."""
    rows = [
        {
            "page": row["page"],
            "x": row["rtt_ms"] + (0.0 if row["client"] == "loader" else _NUDGE_MS),
            "client": row["client"],
            "variant": name,
            "point": 100 * row[key],
            "low": 100 * row[f"{key}_low"],
            "high": 100 * row[f"{key}_high"],
        }
        for row in tables["measured.csv"].iter_rows(named=True)
        for key, name in VARIANTS.items()
        if row[key] is not None
    ]
    x = alt.X("x:Q", title="RTT (ms)", axis=alt.Axis(values=[20, 100, 200], grid=False))
    y = alt.Y("point:Q", title="improvement of the PLT (%)")
    color = alt.Color("variant:N", sort=None).scale(
        domain=list(VARIANTS.values()), range=["#5f6b76", *COLORS[:2]]
    )
    base = alt.Chart().encode(x=x.scale(domain=[0, 220]), color=color)
    layers = alt.layer(
        zero_line(),
        base.transform_filter("datum.client == 'loader'").mark_line().encode(y=y),
        base.mark_rule(strokeWidth=2.2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(size=60, filled=True, opacity=1).encode(y=y, shape=alt.Shape("client:N", sort=None)),
    ).properties(width=230, height=230)
    return panels(
        layers,
        rows,
        "page",
        "What TLS leaves of Fast Open's gain",
        "4 Mbit/s down, 256 kbit/s up; the real kernel, medians over 5 blocks; bars: 95 % interval.",
        "Above 0, TFO is faster.",
        columns=2,
    )


STUDY = Study(FOLDER, measure, COLUMNS, draw)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
