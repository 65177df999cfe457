"""Cookie states and middleboxes: the loader and Chromium on the real kernel, and the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

import firstflight as ff
from studies.tables import Frames, Study

FOLDER = Path(__file__).parent
BOXES = FOLDER.parent / "middleboxes" / "plan.toml"
COLUMNS = {
    "cookies, or box": "`{state}`",
    "loader: TCP, gain": "{loader_tcp_s:.2f} s, {loader:+.1%}",
    "loader: SYN data taken": "{loader_taken} of {loader_syns}",
    "Chromium: TCP, gain": "{chromium_tcp_s:.2f} s, {chromium:+.1%}",
    "Chromium: SYN data taken": "{chromium_taken} of {chromium_syns}",
    "simulator: gain": "{simulated:+.1%}",
}


def measure(folders: Sequence[str]) -> Frames:
    """The measured tables with the simulated gain of each state and box.

    `folders`: new results of the plan by the loader, and by Chromium; without them the stored ones are kept.
    """
    boxes = ff.simulate(BOXES, pages=["wikipedia"], rtt=100, keep="loads")
    states = pl.read_csv(FOLDER / "states.csv")
    for client, folder in zip(("loader", "chromium"), folders, strict=False):
        found = clients_gains(client, ff.open_results(folder))
        states = states.drop(found.columns[1:]).join(found, on="state", how="left", maintain_order="left")
    return {
        "states.csv": with_simulated(states, ff.simulate(FOLDER / "plan.toml", keep="loads")),
        "boxes.csv": with_simulated(pl.read_csv(FOLDER / "boxes.csv"), boxes),
    }


def clients_gains(client: str, results: ff.Results) -> pl.DataFrame:
    """The gain in each state by a client, and how many SYNs had their data taken."""
    taken = results.loads.group_by(pl.col("treatment").alias("state")).agg(
        pl.col("tfo_accepted").sum().alias(f"{client}_taken"),
        pl.col("connections").sum().alias(f"{client}_syns"),
    )
    gains = results.cells.select(
        pl.col("treatment").alias("state"),
        (pl.col("baseline_ms") / 1000).alias(f"{client}_tcp_s"),
        pl.col("improvement").alias(client),
    )
    return gains.join(taken, on="state", how="left")


def with_simulated(table: pl.DataFrame, results: ff.Results) -> pl.DataFrame:
    """The table with the simulator's gain; none where the page never loads."""
    plts = results.loads.filter(status="ok").group_by("treatment").agg(pl.col("plt_ms").median())
    plt_ms: dict[str, float] = dict(plts.iter_rows())
    plain = [plt_ms.get(f"{state}-plain", plt_ms["plain"]) for state in table["state"]]
    gains = [
        (before - plt_ms[state]) / before if state in plt_ms else None
        for state, before in zip(table["state"], plain, strict=True)
    ]
    return table.with_columns(simulated=pl.Series(gains, dtype=pl.Float64))


STUDY = Study(FOLDER, measure, {"states.csv": COLUMNS, "boxes.csv": COLUMNS})

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
