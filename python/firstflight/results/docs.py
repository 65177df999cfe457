"""Makes docs/results.md from the schema: ``python -m firstflight.results.docs > docs/results.md``."""

from __future__ import annotations

import sys

from firstflight.results.schema import TABLES, TREATMENT, Table

_HEAD = """\
# Results folder

<!-- Made by `python -m firstflight.results.docs > docs/results.md`; a test checks that it is current. -->

`firstflight run --out DIR` writes these files into `DIR`. Everything from `loads.parquet` on is made from the files above
it, so `firstflight report DIR` can make it again.

| file | content |
|---|---|
| `plan.toml` | the plan as it was run, with every default written out |
| `environment.json` | kernel, CPU, client versions, calibration of the path |
| `traces/` | the traces of the links, if the plan names any ([path.md](path.md)) |
| `pages/` | the profile of every page as it was loaded, used to explain load times |
| `journal.jsonl` | one JSON object per load, written to disk before the next load starts ([below](#journaljsonl)) |
| `loads.parquet`, `requests.parquet`, `connections.parquet` | the journal as tables; their columns are below |
| `summary.json` | medians, improvement with interval, verdict and proof per cell pair; warnings |
| `observations.txt` | the table in the course's own format, with correct signs; empty unless `tcp` and `tfo` are compared |
| `analysis.md` | answers to the course's questions for each page, made from this run ([course.md](course.md)) |
| `figures/` | waterfalls, curves, distributions and critical paths as files; `firstflight report DIR` or `run --figures` draws them |
| `report.html` | all results on one page that needs no network, with interactive waterfalls ([report.md](report.md)) |
| `cells.parquet`, `sweep.json`, `figures/sweep.svg` | only if the plan has `keep = "loads"`, instead of `summary.json` and the files after it: medians and improvement per page and path, and the distribution of the improvement ([sweeps.md](sweeps.md)) |

Times are in milliseconds, rates in Mbit/s, sizes in bytes. The column "null" says when a value is missing. `loads` has a column for every key of
the plan in which two loads can differ. So the tables of several runs can be concatenated:
`polars.concat([polars.read_parquet(f"{run}/loads.parquet") for run in runs])`.

## journal.jsonl

Each line has `load`, `requests`, `connections`, `proof` and `relay` of one load. If a load was repeated, only its last line counts. A line with
`instrument_failure` is not a load: the laboratory failed, and `error` and `hint` give the cause and the fix.

The format is `firstflight-journal/7`. firstflight also reads earlier formats:

| format | difference |
|---|---|
| 6 | all treatments load the same version of a page |
| 5 | all loads use IPv4 |
| 4 | all connections use TCP |
| 3 | connections have no columns about TLS |
| 2 | a load names only its mode, which is its treatment; the baseline is `tcp` |
| 1 | a load names fewer keys of the plan; the tables take the others from `plan.toml` |
"""  # noqa: E501

_SUMMARY = """
## summary.json

`cells` has one entry per page, path and treatment. Its loads are paired by block with those of the baseline.
`warnings` lists everything that limits the result: `kind`, `message`, `advice`. `instrument_failures` counts how often the
laboratory gave no result (`attempts`), and the loads that still have no result (`loads_without_result`). No cell includes them.

| key of a cell | meaning |
|---|---|
| `baseline`, `treatment` | names of the two treatments that are compared; `treatment` is empty if the plan has only one |
| `differs` | the columns of `loads` in which the two differ, each with the baseline's value and the treatment's value |
| KEYS | identify the cell, as in `loads`; if the two differ in one, it has the treatment's value |
| `caption` | the same in words, for tables and figures; without page, RTT and the keys in which the two differ |
| `url` | URL of the page's first request; null if no load sent it |
| `n` | number of paired blocks, that is, of blocks whose two loads ended ok |
| `exact` | true if nothing in the loads was random (a simulation without loss, jitter, or randomly assigned cookies or middleboxes). Such a cell has one load on each side. All its intervals and p values are null |
| `baseline_loads`, `treatment_loads` | number of `ok` and `failed` loads of each side |
| `baseline_ms`, `treatment_ms` | PLT: `median`, and `low` to `high`, its 95 % interval from order statistics (null below 6 loads). Over the paired blocks, or over all ok loads if no block is paired |
| `baseline_cv`, `treatment_cv` | coefficient of variation of the PLT (standard deviation / mean); null below 2 loads |
| `improvement` | 1 - PLT_treatment / PLT_baseline of a typical block (Hodges-Lehmann estimate of the log ratios), as a signed fraction; positive means that the treatment is faster: `point`, and the 95 % interval `low` to `high` (null below 6 blocks) |
| `shift_ms` | PLT_baseline - PLT_treatment of a typical block, ms, by the same method: `point`, `low`, `high` |
| `measures` | PLT, first byte, paints (of a browser), requests, connections and bytes, by the column of `loads`. `baseline` and `treatment` are medians over the paired blocks. `difference` is the treatment minus the baseline in a typical block (`point`, `low`, `high`, by the same method). The intervals are not corrected for multiple comparisons |
| `same_within_ms` | the largest difference that the interval allows, ms, if no difference was shown; for versions of a page also if it is at most 10 ms; otherwise null |
| `p_value` | signed-rank test on the log ratios of the paired blocks, two-sided, exact |
| `p_adjusted` | `p_value` adjusted for the number of cells (Holm's method), so that the chance of any false verdict in the table is at most 5 % |
| `verdict` | `faster` or `slower` if the proof holds, the interval excludes 0 and `p_adjusted` is below 0.05; `too few repeats` if so few blocks cannot reach such a `p_adjusted` in a table of this size; otherwise `no difference shown`. Without a test: `exact`, `not proved`, `not compared` (`n` is 0) |
| `blocks_needed` | the fewest blocks with which a cell of this table can have a verdict; null if firstflight does not test the cell |
| `null_improvement`, `null_low`, `null_high` | the same statistic for the baseline compared with itself (every second block with the one before it), with its 95 % interval. It shows how large an "improvement" noise alone causes. Null below 2 blocks; the interval is null below 12 |
| `null_ms` | the two medians that `null_improvement` compares, ms |
| `proof` | `baseline` and `treatment`, each with the counts of the next table; `ok`: whether every load did what its treatment promises; `text`: the same as a sentence |

| count in `proof` | connections |
|---|---|
| `connections` | all |
| `offered` | with data in the SYN |
| `accepted` | with data in the SYN that the server accepted |
| `leaked` | with data in the SYN although the mode has none |
| `early`, `early_accepted` | with TLS early data; with early data that the server accepted |

Every treatment promises what its mode does: each SYN carries data that the server accepts, or no SYN carries data. Each load must also show its
[initial window, congestion control, ECN and key share of TLS](lab.md#proof). If treatments differ in `scheme`, `http` or `keep_alive`,
firstflight checks the rows of requests and connections of each load for these too:

| plan key | promise |
|---|---|
| `scheme` | `http` or `https`: all connections are of that scheme |
| `http` | `2`: one connection per origin. `1.1`: no two requests at once on one connection |
| `keep_alive` | `false`: one request on each connection |

A load that breaks a promise has failed. firstflight does not check the other keys, because the rows do not show them.

The `format` is `firstflight-summary/4`. In format 3 `proof` did not count early data. In format 2 the sides had the names of their modes (`tcp_ms`, `tfo_ms`, `tcp_loads`, ...,
and in `proof` `tfo_connections`, `tfo_offered`, `tfo_accepted`, `tcp_offered`). In format 1 the improvement was that of the medians, its interval was a bootstrap interval, and the
verdict used the interval alone. No command reads an older `summary.json`; all of them read the journal.
[statistics.md](statistics.md) describes and tests the method.
"""  # noqa: E501


def render_docs() -> str:
    """The whole of docs/results.md."""
    keys = ", ".join(f"`{name}`" for name in ("page", *(column.name for column in TREATMENT)))
    return _HEAD + "".join(map(render_table, TABLES)) + _SUMMARY.replace("KEYS", keys)


def render_table(table: Table) -> str:
    """One table of columns, as Markdown with its heading."""
    head = f"\n## {table.name}\n\n{table.meaning}\n\n"
    names = "| column | type | unit | meaning | null |\n|---|---|---|---|---|\n"
    rows = (f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} | {c.null} |\n" for c in table.columns)
    return head + names + "".join(rows)


if __name__ == "__main__":
    sys.stdout.write(render_docs())
