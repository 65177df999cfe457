"""What a sweep says: the improvement of every cell, and how it is distributed.

Nothing of the run is held but some numbers per block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.analysis.doubts import doubt_of_what_if
from firstflight.analysis.simulated import caution
from firstflight.analysis.words import caption
from firstflight.errors import UsageError
from firstflight.results import write_tables, write_whole
from firstflight.results.files import plan_keys
from firstflight.results.profiles import read_profile
from firstflight.results.schema import TREATMENT

SWEEP_FORMAT = "firstflight-sweep/2"
"""Format and version of sweep.json."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_FIRST = ("rtt_ms", "down_mbps", "up_mbps", "loss", "topology")
_BY = (*_FIRST, *(column.name for column in TREATMENT if column.name not in _FIRST))
_CELL = ("page", *_BY)
_QUARTERS = 4


def summarize_sweep(folder: Path) -> dict[str, Any]:
    """Writes the tables, ``cells.parquet`` and ``sweep.json`` of a results folder.

    Args:
        folder: The results folder; its journal is read.

    Returns:
        What ``sweep.json`` holds: counts, and quantiles of the improvement (fractions) over the cells of all
        paths, of each path, and of each quarter of the pages by their number of origins at each RTT.

    Raises:
        UsageError: The folder has no readable journal or no load, or cannot be written to.
    """
    loads = pl.scan_parquet(write_tables(folder)[0])
    counts = loads.select(pl.len(), failed=(pl.col("status") == "failed").sum()).collect().row(0)
    if not counts[0]:
        raise UsageError(f"{folder}: no load has ended yet", "run the experiment, or go on with `--resume`")
    cells = _with_origins(sweep_cells(loads), folder)
    cells.write_parquet(folder / "cells.parquet")
    engines = cells["engine"].unique().sort().to_list()
    found = {
        "format": SWEEP_FORMAT,
        "loads": counts[0],
        "failed_loads": counts[1],
        "cells": cells.height,
        "engines": engines,
        "caption": caption(*cells.select(_BY).unique(maintain_order=True).to_dicts()) if cells.height else "",
        "caution": _caution(engines, folder),
        "all": _distribution(cells),
        "paths": [
            {**dict(zip(_BY, key, strict=True)), **_distribution(group)}
            for key, group in cells.group_by(_BY, maintain_order=True)
        ],
        "origins": list(_by_origins(cells)),
    }
    write_whole(folder / "sweep.json", (json.dumps(found, indent=2) + "\n").encode())
    return found


def _caution(engines: list[str], folder: Path) -> str | None:
    if "simulate" not in engines:
        return None
    return "; ".join([caution(), *(doubt["message"] for doubt in doubt_of_what_if(plan_keys(folder)))])


def sweep_cells(loads: pl.LazyFrame) -> pl.DataFrame:
    """A row per page and path: `n` blocks with an ok load of both modes, their medians, the improvement.

    Args:
        loads: The loads table.

    Returns:
        The keys of a cell, `n`, `tcp_ms`, `tfo_ms`, `improvement` (a fraction, positive: TFO is faster),
        `tfo_connections`, `tfo_accepted`; ordered by path, then page.
    """
    ok = loads.filter(pl.col("status") == "ok")
    counted = pl.col("connections").alias("tfo_connections"), pl.col("tfo_accepted")
    tfo = ok.filter(pl.col("mode") == "tfo").select(*_CELL, "block", *counted, tfo_ms="plt_ms")
    tcp = ok.filter(pl.col("mode") == "tcp").select("block", tcp_ms="plt_ms")
    medians = pl.len().alias("n"), pl.col("tcp_ms", "tfo_ms").median()
    cells = (
        tfo.join(tcp, on="block")
        .group_by(_CELL)
        .agg(*medians, pl.col("tfo_connections", "tfo_accepted").sum())
    )
    improvement = 1 - pl.col("tfo_ms") / pl.col("tcp_ms")
    return cells.with_columns(improvement=improvement).sort(*_BY, "page").collect(engine="streaming")


def _with_origins(cells: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """With the number of origins of each page; null where its profile is not in the folder."""
    names = cells["page"].unique()
    pages = (read_profile(folder, name) for name in names)
    counts = [None if page is None else len(page.origins) for page in pages]
    known = pl.DataFrame({"page": names, "origins": pl.Series(counts, dtype=pl.Int64)})
    return cells.join(known, on="page", how="left", maintain_order="left")


def _by_origins(cells: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Quarters of the pages, the fewest origins first; none where there are too few pages to tell."""
    known = cells.filter(pl.col("origins").is_not_null())
    counts = sorted(known.unique("page")["origins"].to_list())
    if len(set(counts)) < _QUARTERS:
        return
    last = sorted({counts[len(counts) * n // _QUARTERS - 1] for n in range(1, _QUARTERS + 1)})
    first = [counts[0], *(min(count for count in counts if count > most) for most in last[:-1])]
    for fewest, most in zip(first, last, strict=True):
        group = known.filter(pl.col("origins").is_between(fewest, most))
        for (rtt_ms,), found in group.group_by("rtt_ms", maintain_order=True):
            yield {"from": fewest, "to": most, "rtt_ms": rtt_ms, **_distribution(found)}


def _distribution(cells: pl.DataFrame) -> dict[str, Any]:
    """Cells with an improvement, its quantiles, and the shares of cells in which TFO is faster and slower."""
    values = cells["improvement"]
    quantiles = {f"p{round(100 * share):02d}": values.quantile(share, "linear") for share in QUANTILES}
    return {
        "n": cells.height,
        "improvement": quantiles,
        "faster": int((values > 0).sum()) / max(1, cells.height),
        "slower": int((values < 0).sum()) / max(1, cells.height),
    }
