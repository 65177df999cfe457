"""What Fast Open costs a server: processor time per request, rates that it keeps up with, what floods leave.

Takes the three folders of the commands in README.md, in their order: `cost floods pending`. Without them the
stored tables stay, and the document is written from them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import polars as pl

from firstflight.stress.rows import Row, by_cell, mostly, savings
from studies.tables import Frames, Study, fields

FOLDER = Path(__file__).parent

COST = {
    "server": "{server}",
    "packets per request, tcp and tfo": "{packets_tcp:.0f} and {packets_tfo:.0f}",
    "processor time saved by TFO": "{saved:+.1%} ({low:+.1%} to {high:+.1%})",
    "pairs": "{pairs}",
    "keeps up with, tcp": "{keeps_up_tcp:,.0f}/s",
    "tfo": "{keeps_up_tfo:,.0f}/s",
}
_SERVED = {
    "clients served, tcp and tfo": "{served_tcp:.0%} and {served_tfo:.0%}",
    "median latency, ms": "{p50_ms_tcp:.0f} and {p50_ms_tfo:.0f}",
}
FLOODS = {
    "SYN cookies": "{syn_cookies}",
    "flood": "{flood}",
    **_SERVED,
    "SYN cookies sent and received, tfo": "{syn_cookies_sent_tfo:,} and {syn_cookies_received_tfo:,}",
    "SYNs dropped, tfo": "{dropped_syns_tfo:,}",
}
PENDING = {
    "flood": "{flood}",
    "pending limit": "{qlen:,}",
    **_SERVED,
    "SYN data of clients taken": "{syn_data_acked_tfo} of {requests_tfo}",
    "refused, and at the limit": "{fast_open_refused_in_all_tfo:,}, {pending_limit_hits_in_all_tfo:,}",
    "server and flood, share of a processor": "{server_cpu_share_tfo:.1%} + {flood_cpu_share_tfo:.1%}",
    "reflected, MB": "{victims_bytes_tfo:.1f}",
}


def measure(folders: Sequence[str]) -> Frames:
    """The three tables, from the folders of three runs of `firstflight stress`."""
    if not folders:
        return {}
    cost, floods, pending = (pl.read_csv(Path(folder) / "stress.csv") for folder in folders)
    return {
        "cost.csv": cost_of(cost),
        "floods.csv": by_mode(floods, "syn_cookies", "flood"),
        "pending.csv": by_mode(pending, "flood", "qlen").with_columns(pl.col("victims_bytes_tfo") / 1e6),
    }


def cost_of(rows: pl.DataFrame) -> pl.DataFrame:
    """By server: what Fast Open saves in pairs of measurements at all rates, and the rates kept up with."""
    measured = cast(list[Row], rows.to_dicts())
    keeping = [cell[0] for cell in by_cell(measured) if mostly(cell, "keeps_up")]
    fastest = pl.DataFrame(keeping).group_by("server", "mode").agg(pl.col("rate").max().alias("keeps_up"))
    packets = (pl.col("packets_up") + pl.col("packets_down")) / pl.col("answered")
    per_request = rows.filter("keeps_up").group_by("server", "mode").agg(packets.median().alias("packets"))
    saved = [
        {
            "server": found["server"],
            "pairs": found["pairs"],
            "saved": found["saved"]["median"],
            "low": found["saved"]["low"],
            "high": found["saved"]["high"],
        }
        for found in savings(measured)
        if found["rate"] is None
    ]
    wide = per_request.join(fastest, on=["server", "mode"]).pivot("mode", index="server")
    return wide.join(pl.DataFrame(saved), on="server").sort("server")


def by_mode(rows: pl.DataFrame, *cell: str) -> pl.DataFrame:
    """A row for each cell, its single measurements without and with Fast Open side by side."""
    columns = {
        name.removesuffix("_tfo")
        for shown in (FLOODS, PENDING)
        for text in shown.values()
        for name in fields(text)
        if name.endswith("_tfo")
    }
    values = sorted(columns - {"served"})
    chosen = rows.with_columns(pl.col("success").alias("served")).select(*cell, "mode", "served", *values)
    return chosen.pivot("mode", index=list(cell), values=["served", *values]).sort(*cell)


STUDY = Study(FOLDER, measure, {"cost.csv": COST, "floods.csv": FLOODS, "pending.csv": PENDING})

if __name__ == "__main__":
    raise SystemExit(STUDY.main())
