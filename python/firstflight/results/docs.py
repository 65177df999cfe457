"""docs/results.md from the schema: ``python -m firstflight.results.docs > docs/results.md``."""

from __future__ import annotations

import sys

from firstflight.results.schema import TABLES, TREATMENT, Table

_HEAD = """\
# Results folder

<!-- Made by `python -m firstflight.results.docs > docs/results.md`; a test checks that it is current. -->

What `firstflight run --out DIR` leaves in `DIR`. Everything from `loads.parquet` on is made from the files above
it, so `firstflight report DIR` can make it again.

| file | what it holds |
|---|---|
| `plan.toml` | the plan as run, every default written out |
| `environment.json` | kernel, CPU, client versions, calibration of the path |
| `traces/` | the links' traces, where the plan names any ([path.md](path.md)) |
| `pages/` | the profile of every page as it was loaded; explanations use it |
| `journal.jsonl` | one JSON object per load, on disk before the next load starts: `load`, `requests`, `connections`, `proof`, `relay`. A load that was run again has a later line, which counts. A line with `instrument_failure` is of no load: the laboratory failed, `error` and `hint` say how. Format `firstflight-journal/2`; of format 1, which names fewer keys of the plan in a load, the tables take the rest from `plan.toml` |
| `loads.parquet`, `requests.parquet`, `connections.parquet` | the journal as tables, columns below |
| `summary.json` | medians, improvement with interval, verdict and proof per cell pair; warnings |
| `observations.txt` | the table in the course's own format, with correct signs |
| `analysis.md` | the course's questions, answered for each page from this run ([course.md](course.md)) |
| `figures/` | waterfalls, curves, distributions and critical paths as files; drawn by `firstflight report DIR`, or `run --figures` |
| `report.html` | everything on one page that needs no network, with interactive waterfalls ([report.md](report.md)) |
| `cells.parquet`, `sweep.json`, `figures/sweep.svg` | of a run with `keep = "loads"`, in place of the four above: medians and improvement per page and path, and how the improvement is distributed ([sweeps.md](sweeps.md)) |

Times are milliseconds, rates Mbit/s, sizes bytes. "null" says when a value is missing. `loads` has a column for every key of
the plan in which two loads can differ, so the tables of several runs can be put together:
`polars.concat([polars.read_parquet(f"{run}/loads.parquet") for run in runs])`.
"""  # noqa: E501

_SUMMARY = """
## summary.json

`cells` has one entry per page, path, client and engine, with its `tcp` and `tfo` loads paired by block.
`warnings` lists everything that limits the result: `kind`, `message`, `advice`. `instrument_failures` counts how often the
laboratory gave no result (`attempts`), and the loads that have none yet (`loads_without_result`); they are in no cell.

| key of a cell | meaning |
|---|---|
| KEYS | which cell pair; as in `loads` (`cookies` of the `tfo` loads) |
| `caption` | the same in words, without page and RTT: what every table and figure says of the cell |
| `url` | the page's first request; null if no load got that far |
| `n` | paired blocks: both loads ended ok |
| `exact` | whether nothing in the loads was random (a simulation without loss, jitter, drawn cookies or middleboxes): one load in each mode, all intervals and p values null |
| `tcp_loads`, `tfo_loads` | `ok` and `failed` loads of each mode |
| `tcp_ms`, `tfo_ms` | PLT: `median`, and `low` to `high`, its 95 % interval from order statistics (null below 6 loads); over the paired blocks, or over all ok loads where none is paired |
| `tcp_cv`, `tfo_cv` | coefficient of variation of the PLT (standard deviation / mean); null below 2 loads |
| `improvement` | 1 - PLT_tfo / PLT_tcp of a typical block (Hodges and Lehmann, of the log ratios), signed (positive: TFO is faster), as a fraction: `point`, and the 95 % interval `low` to `high` (null below 6 blocks) |
| `shift_ms` | PLT_tcp - PLT_tfo of a typical block, ms, by the same method: `point`, `low`, `high` |
| `p_value` | signed-rank test on the log ratios of the paired blocks, two-sided, exact |
| `p_adjusted` | `p_value` raised for the number of cells (Holm's method): the chance of any false verdict in the table is at most 5 % |
| `verdict` | `faster` or `slower` where the proof holds, the interval excludes 0 and `p_adjusted` is below 0.05; `too few repeats` where so few blocks cannot get there in a table of this size; else `no difference shown`. Without a test: `exact`, `not proved`, `not compared` (`n` is 0) |
| `blocks_needed` | the fewest blocks with which a cell of this table can have a verdict; null where nothing is tested |
| `null_improvement`, `null_low`, `null_high` | the same statistic on tcp against tcp (every second block against the one before it) with its 95 % interval: how large an "improvement" noise alone shows; null below 2 blocks, the interval below 12 |
| `null_ms` | the two medians that it compares, ms |
| `proof` | `tfo_connections`, `tfo_offered`, `tfo_accepted` of the `tfo` loads, `tcp_offered` of the `tcp` loads, `ok`, and `text` for people |

`format` is `firstflight-summary/2`. In format 1 the improvement was that of the medians, its interval a bootstrap's, and the
verdict looked at the interval alone. No command reads an older `summary.json`: all work from the journal.
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
