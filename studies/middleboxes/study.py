"""What middleboxes cost, simulated: every type, and the share of broken paths that cancels the gain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

import firstflight as ff
from studies.tables import Frames, Study, by_treatment, gain

FOLDER = Path(__file__).parent
BOXES = ("drop-data", "drop-option", "strip-option", "strip-data", "reset", "black-hole", "duplicate-syn")
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
SHOWN = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)

COLUMNS = {
    "types.csv": {
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "TCP, s": "{tcp_s:.2f}",
        "no box": "{no_box:+.1%}",
        **{box: f"{{{box.replace('-', '_')}:+.1%}}" for box in BOXES},
    },
    "shares.csv": {
        "page": "{page}",
        "RTT, ms": "{rtt_ms:g}",
        "no box": "{no_box:+.1%}",
        **{f"{share:.0%}": f"{{{f'share_{share:g}'.replace('.', '_')}:+.1%}}" for share in SHOWN},
        "gain is 0 at": "{cancelled_at:.1%}",
    },
}


def measure(_: Sequence[str]) -> Frames:
    """Both tables."""
    return {"types.csv": types(), "shares.csv": shares()}


def types() -> pl.DataFrame:
    """The improvement with every path behind a box of a type; none where the page never loads."""
    loads = ff.simulate(FOLDER / "plan.toml", keep="loads").loads
    plt_ms = pl.col("plt_ms").filter(pl.col("status") == "ok").mean()
    cells = by_treatment(loads, plt_ms)
    plain = {box: "plt_ms_duplicate-syn-plain" if box == "duplicate-syn" else "plt_ms_plain" for box in BOXES}
    gains = {box.replace("-", "_"): gain(plain[box], f"plt_ms_{box}") for box in BOXES}
    no_box = gain("plt_ms_plain", "plt_ms_no-box")
    times = pl.col("plt_ms_drop-data") / pl.col("plt_ms_plain")
    return cells.select(
        "page", "rtt_ms", tcp_s=pl.col("plt_ms_plain") / 1000, no_box=no_box, **gains, drop_data_times=times
    )


def shares() -> pl.DataFrame:
    """The improvement of the mean PLT by share of paths that drop SYNs with data, and where it is 0."""
    cells = by_treatment(ff.simulate(FOLDER / "shares.toml", keep="loads").loads, pl.col("plt_ms").mean())
    gains = {_column(share): gain("plt_ms_plain", f"plt_ms_share-{share:g}") for share in SHARES}
    table = cells.select("page", "rtt_ms", no_box=gain("plt_ms_plain", "plt_ms_no-box"), **gains)
    crossings = [
        cancelled_at([(0.0, row["no_box"]), *((share, row[_column(share)]) for share in SHARES)])
        for row in table.iter_rows(named=True)
    ]
    return table.with_columns(cancelled_at=pl.Series(crossings, dtype=pl.Float64))


def _column(share: float) -> str:
    return f"share_{share:g}".replace(".", "_")


def cancelled_at(gains: Sequence[tuple[float, float]]) -> float | None:
    """Where the gain reaches 0, between two simulated shares; None if it does not."""
    for (below, more), (above, less) in pairwise(gains):
        if less <= 0 < more:
            return below + (above - below) * more / (more - less)
    return None


STUDY = Study(FOLDER, measure, COLUMNS)

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
