"""Summarises a sweep: improvement and verdict of every cell, by the rule of all runs, and their distribution.

It keeps only a few numbers per block in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from firstflight.analysis.cells import SIDES
from firstflight.analysis.proof import ALWAYS_FAST
from firstflight.analysis.records import Distribution, OriginsGroup, Setting, Sweep, SweepPath, Warning
from firstflight.analysis.signed_rank import EXACT_BLOCKS, locate, locate_all, p_value, p_values
from firstflight.analysis.statistics import (
    EXACT,
    FASTER,
    NOT_PROVED,
    SLOWER,
    TOO_FEW_REPEATS,
    adjusted_p_values,
    as_improvement,
    blocks_needed,
    verdict,
)
from firstflight.analysis.warnings import caution, warn_of_what_if
from firstflight.analysis.words import caption
from firstflight.deferred import numpy as np
from firstflight.deferred import polars as pl
from firstflight.errors import UsageError
from firstflight.model.treatment import MODES
from firstflight.results.files import plan_keys, read_profile
from firstflight.results.schema import DRAWN_BY, TREATMENT, is_drawn
from firstflight.text import plural

SWEEP_FORMAT = "firstflight-sweep/3"
"""Format and version of sweep.json, and of cells.parquet in the same folder.

In version 2 the sides were the modes: `tcp_ms` and `tfo_ms`. In version 1 a cell with a point above 0 was
faster.
"""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_FIRST = ("rtt_ms", "down_mbps", "up_mbps", "loss", "topology")
_BY = (*_FIRST, *(column.name for column in TREATMENT if column.name not in _FIRST), *SIDES)
_CELL = ("page", *_BY)
_QUARTERS = 4


def summarize_sweep(folder: Path, loads: pl.LazyFrame) -> tuple[pl.DataFrame, Sweep]:
    """The cells of a sweep, and the distribution of the improvement over them.

    Args:
        folder: The results folder; its plan and profiles are read.
        loads: Its loads table.

    Returns:
        The cells, as `sweep_cells` gives them, with `origins`, the number of the page's origins; and what
        ``sweep.json`` holds: counts, warnings, and over the proved cells of all paths, of each path, and
        of each quarter of the pages by their number of origins at each RTT: quantiles of the improvement
        (fractions), and the shares with each verdict and sign.

    Raises:
        UsageError: There is no load, or a page's profile cannot be read.
    """
    counts = loads.select(pl.len(), failed=(pl.col("status") == "failed").sum()).collect().row(0)
    if not counts[0]:
        raise UsageError(
            f"{folder}: no load has ended yet", "run the experiment, or continue with `--resume`"
        )
    cells = _with_origins(sweep_cells(loads), folder)
    engines = cells["engine"].unique().sort().to_list()
    settings = [cast(Setting, row) for row in cells.select(_BY).unique(maintain_order=True).to_dicts()]
    found: Sweep = {
        "format": SWEEP_FORMAT,
        "loads": counts[0],
        "failed_loads": counts[1],
        "cells": cells.height,
        "engines": engines,
        "caption": caption(*settings) if settings else "",
        "caution": _caution(engines, folder),
        "warnings": _warnings(cells, loads),
        "all": _distribution(cells),
        "paths": [
            cast(SweepPath, {**dict(zip(_BY, key, strict=True)), **_distribution(group)})
            for key, group in cells.group_by(_BY, maintain_order=True)
        ],
        "origins": list(_by_origins(cells)),
    }
    return cells, found


def _caution(engines: list[str], folder: Path) -> str | None:
    if "simulate" not in engines:
        return None
    return "; ".join([caution(), *(warning["message"] for warning in warn_of_what_if(plan_keys(folder)))])


def sweep_cells(loads: pl.LazyFrame) -> pl.DataFrame:
    """A row per page, path and treatment: `n` paired blocks, the estimates from them, and the verdict.

    Args:
        loads: The loads table.

    Returns:
        The keys of a cell (of the treatment), `baseline`, `treatment`, `n`, medians `baseline_ms` and
        `treatment_ms`, `tfo_connections` and `tfo_accepted` of the treatment, `proved`, `exact`,
        `improvement` (a fraction, positive: the treatment is faster) with its interval `low` and `high`,
        `p_value`, `p_adjusted` and `verdict`; ordered by path, then page.
    """
    ok = loads.filter(pl.col("status") == "ok")
    proved = pl.col("proved").fill_null(value=False) & _keeps_its_mode()
    is_baseline = pl.col("treatment") == pl.col("baseline")
    treated = ok.filter(~is_baseline).select(
        *_CELL,
        *(set(DRAWN_BY) - set(_CELL)),
        "block",
        pl.col("connections").alias("tfo_connections"),
        "tfo_accepted",
        treatment_ms="plt_ms",
        treatment_proved=proved,
    )
    drawn_beside = [f"{name}_of_baseline" for name in DRAWN_BY]
    baseline = ok.filter(is_baseline).select(
        "block",
        baseline_ms="plt_ms",
        baseline_proved=proved,
        **dict(zip(drawn_beside, DRAWN_BY, strict=True)),
    )
    cells = (
        treated.join(baseline, on="block")
        .sort("block")
        .group_by(_CELL)
        .agg(
            pl.len().alias("n"),
            pl.col("baseline_ms", "treatment_ms").median(),
            pl.col("tfo_connections", "tfo_accepted").sum(),
            (pl.col("treatment_proved") & pl.col("baseline_proved")).all().alias("proved"),
            *(pl.col(name).first() for name in DRAWN_BY if name not in _CELL),
            *(pl.col(name).first() for name in drawn_beside),
            (pl.col("baseline_ms").log() - pl.col("treatment_ms").log()).alias("log_ratios"),
        )
        .sort(*_BY, "page", "client", "engine", "cookies")
        .collect(engine="streaming")
    )
    sides = (
        cells.select(DRAWN_BY),
        cells.select(drawn_beside).rename(dict(zip(drawn_beside, DRAWN_BY, strict=True))),
    )
    drawn = zip(*(map(is_drawn, side.iter_rows(named=True)) for side in sides), strict=True)
    cells = cells.with_columns(exact=pl.Series([not any(both) for both in drawn], dtype=pl.Boolean))
    hidden = [name for name in ("log_ratios", *DRAWN_BY, *drawn_beside) if name not in _CELL]
    return _judged(cells.with_columns(_inferred(cells))).drop(hidden)


def _keeps_its_mode() -> pl.Expr:
    """Whether a load carried data in its SYNs as its mode promises."""
    fast_open = pl.col("mode").is_in([mode.name for mode in MODES.values() if mode.fast_open])
    return pl.when(fast_open).then(_without_tfo() == 0).otherwise(pl.col("tfo_offered").fill_null(0) == 0)


def _without_tfo() -> pl.Expr:
    """Counts as `proof.prove` does for loads whose rows were not kept; behind a middlebox all are excused."""
    missing = pl.col("connections") - pl.col("tfo_accepted") - pl.col("retransmits")
    promised = pl.col("cookies").is_in(ALWAYS_FAST) & (pl.col("middlebox").fill_null("off") == "off")
    return pl.when(promised).then(missing.clip(0)).otherwise(0).fill_null(1)


def _inferred(cells: pl.DataFrame) -> list[pl.Series]:
    """Improvement, interval and p value of every cell, computed at once for cells with as many blocks."""
    found = np.full((4, cells.height), np.nan)
    counts, exact = cells["n"].to_numpy(), cells["exact"].to_numpy()
    for count in np.unique(counts):
        places = np.flatnonzero(counts == count)
        rows = cells["log_ratios"].gather(places).to_list()
        if count <= EXACT_BLOCKS:
            differences = np.array(rows)
            found[:3, places], found[3, places] = locate_all(differences), p_values(differences)
        else:
            found[:3, places] = np.transpose([locate(row) for row in rows])
            found[3, places] = [p_value(row) for row in rows]
    found[1:, exact] = np.nan
    point, low, high, p = found
    return [
        pl.Series(name, values, dtype=pl.Float64)
        for name, values in (
            ("improvement", [as_improvement(value) for value in point]),
            ("low", [as_improvement(value) for value in low]),
            ("high", [as_improvement(value) for value in high]),
            ("p_value", [None if np.isnan(value) else value for value in p]),
        )
    ]


def _judged(cells: pl.DataFrame) -> pl.DataFrame:
    """Adds adjusted p values and verdicts; the family is all cells of the sweep that are tested."""
    raised = adjusted_p_values(cells["p_value"].to_list())
    family = sum(value is not None for value in raised)
    said = [
        verdict(blocks=n, is_proved=proved, is_exact=exact, low=low, high=high, p_adjusted=p, family=family)
        for (n, proved, exact, low, high), p in zip(
            cells.select("n", "proved", "exact", "low", "high").iter_rows(), raised, strict=True
        )
    ]
    return cells.with_columns(
        p_adjusted=pl.Series(raised, dtype=pl.Float64), verdict=pl.Series(said, dtype=pl.String)
    )


def _warnings(cells: pl.DataFrame, loads: pl.LazyFrame) -> list[Warning]:
    """The warnings of the sweep, the most serious first."""
    counted = ("unmatched_requests", "failed_requests")
    late = pl.col("relay_late").fill_null(value=False)
    ok = loads.filter(pl.col("status") == "ok")
    unmatched, failed, late_loads, worst_ms = (
        ok.select(
            *((pl.col(name) > 0).sum() for name in counted),
            late.sum().alias("late"),
            worst=pl.col("relay_late_ms").max(),
        )
        .collect()
        .row(0)
    )
    lost = loads.select((pl.col("status") == "failed").sum()).collect().item()
    unproved = cells.filter(verdict=NOT_PROVED).height
    few = cells.filter(verdict=TOO_FEW_REPEATS)
    needed = blocks_needed(cells["p_value"].count())
    said: list[tuple[object, str, str, str]] = [
        (
            unproved,
            "no proof",
            f"not proved that loads did what their treatment promises: {plural(unproved, 'cell')}, left out",
            "see proved in cells.parquet and loads.parquet; run `firstflight doctor`",
        ),
        (
            lost,
            "failed loads",
            f"{plural(lost, 'load')} failed; their blocks do not count",
            "see error in loads.parquet",
        ),
        (
            unmatched,
            "unmatched requests",
            f"{plural(unmatched, 'load')} requested something that is not in the recording",
            "see unmatched_requests in loads.parquet; record the page again with this client",
        ),
        (
            failed,
            "failed requests",
            f"requests of {plural(failed, 'load')} got no complete response",
            "see failed_requests in loads.parquet; a page that breaks off early looks fast",
        ),
        (
            late_loads,
            "late relay",
            f"the relay was late beyond its bound in {plural(late_loads, 'load')} (worst {worst_ms or 0:.1f} ms)",  # noqa: E501
            "leave the machine alone while it measures, or run fewer labs at once (`--jobs`)",
        ),
        (
            few.height,
            "too few repeats",
            f"{plural(few.height, 'cell')} of {cells.height}: in a table of so many a verdict takes {needed}",
            f"`--repeats {needed}` or more, or fewer cells",
        ),
    ]
    return [
        {"kind": kind, "message": text, "advice": advice} for is_seen, kind, text, advice in said if is_seen
    ]


def _with_origins(cells: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Adds the number of origins of each page; null if its profile is not in the folder."""
    names = cells["page"].unique()
    pages = (read_profile(folder, name) for name in names)
    counts = [None if page is None else len(page.origins) for page in pages]
    known = pl.DataFrame({"page": names, "origins": pl.Series(counts, dtype=pl.Int64)})
    return cells.join(known, on="page", how="left", maintain_order="left")


def _by_origins(cells: pl.DataFrame) -> Iterator[OriginsGroup]:
    """The distribution over quarters of the pages, the fewest origins first; empty with too few pages."""
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


def _distribution(cells: pl.DataFrame) -> Distribution:
    """The distribution over proved cells: number, improvement quantiles, shares of verdicts and signs."""
    proved = cells.filter(pl.col("verdict") != NOT_PROVED)
    values, verdicts = proved["improvement"], proved["verdict"]
    quantiles = {f"p{round(100 * share):02d}": values.quantile(share, "linear") for share in QUANTILES}
    of = max(1, proved.height)
    shares = {name: int((verdicts == name).sum()) / of for name in (FASTER, SLOWER, EXACT, TOO_FEW_REPEATS)}
    return {
        "n": proved.height,
        "improvement": quantiles,
        "faster": shares[FASTER],
        "slower": shares[SLOWER],
        "exact": shares[EXACT],
        "too_few_repeats": shares[TOO_FEW_REPEATS],
        "above_zero": int((values > 0).sum()) / of,
        "below_zero": int((values < 0).sum()) / of,
    }
