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
| `journal.jsonl` | one JSON object per load, on disk before the next load starts: `load`, `requests`, `connections`, `proof`, `relay`. A load that was run again has a later line, which counts. A line with `instrument_failure` is of no load: the laboratory failed, `error` and `hint` say how. Format `firstflight-journal/7`. In format 6 all treatments load the same version of a page; in format 5 all loads are of IPv4; in format 4 all connections are of TCP; in format 3 a connection says nothing of TLS; in format 2 a load names its mode alone, which is its treatment, with `tcp` as the baseline; of format 1, which names fewer keys of the plan in a load, the tables take the rest from `plan.toml` |
| `loads.parquet`, `requests.parquet`, `connections.parquet` | the journal as tables, columns below |
| `summary.json` | medians, improvement with interval, verdict and proof per cell pair; warnings |
| `observations.txt` | the table in the course's own format, with correct signs; empty where other than modes is compared |
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

`cells` has one entry per page, path and treatment, its loads paired by block with those of the baseline.
`warnings` lists everything that limits the result: `kind`, `message`, `advice`. `instrument_failures` counts how often the
laboratory gave no result (`attempts`), and the loads that have none yet (`loads_without_result`); they are in no cell.

| key of a cell | meaning |
|---|---|
| `baseline`, `treatment` | names of the two that are compared; `treatment` is empty where a plan has one alone |
| `differs` | the columns of `loads` in which the two differ, each with the value of the baseline and that of the treatment |
| KEYS | which cell; as in `loads`, of the treatment where the two differ |
| `caption` | the same in words, without page and RTT: what every table and figure says of the cell; nothing of what the two differ in |
| `url` | the page's first request; null if no load got that far |
| `n` | paired blocks: both loads ended ok |
| `exact` | whether nothing in the loads was random (a simulation without loss, jitter, drawn cookies or middleboxes): one load on each side, all intervals and p values null |
| `baseline_loads`, `treatment_loads` | `ok` and `failed` loads of each side |
| `baseline_ms`, `treatment_ms` | PLT: `median`, and `low` to `high`, its 95 % interval from order statistics (null below 6 loads); over the paired blocks, or over all ok loads where none is paired |
| `baseline_cv`, `treatment_cv` | coefficient of variation of the PLT (standard deviation / mean); null below 2 loads |
| `improvement` | 1 - PLT_treatment / PLT_baseline of a typical block (Hodges and Lehmann, of the log ratios), signed (positive: the treatment is faster), as a fraction: `point`, and the 95 % interval `low` to `high` (null below 6 blocks) |
| `shift_ms` | PLT_baseline - PLT_treatment of a typical block, ms, by the same method: `point`, `low`, `high` |
| `measures` | PLT, first byte, paints (of a browser), requests, connections and bytes, by the column of `loads`: `baseline` and `treatment` are medians over the paired blocks, `difference` is the treatment less the baseline in a typical block (`point`, `low`, `high`, by the same method). Intervals are not corrected for their number |
| `same_within_ms` | where no difference was shown, the largest that the interval allows, ms; also where a difference between versions of a page is at most 10 ms; else null |
| `p_value` | signed-rank test on the log ratios of the paired blocks, two-sided, exact |
| `p_adjusted` | `p_value` raised for the number of cells (Holm's method): the chance of any false verdict in the table is at most 5 % |
| `verdict` | `faster` or `slower` where the proof holds, the interval excludes 0 and `p_adjusted` is below 0.05; `too few repeats` where so few blocks cannot get there in a table of this size; else `no difference shown`. Without a test: `exact`, `not proved`, `not compared` (`n` is 0) |
| `blocks_needed` | the fewest blocks with which a cell of this table can have a verdict; null where nothing is tested |
| `null_improvement`, `null_low`, `null_high` | the same statistic on the baseline against itself (every second block against the one before it) with its 95 % interval: how large an "improvement" noise alone shows; null below 2 blocks, the interval below 12 |
| `null_ms` | the two medians that it compares, ms |
| `proof` | `baseline` and `treatment`, each with its `connections`, those that `offered` data in the SYN, those whose data was `accepted`, and those that `leaked`: had such data though the mode has none; those with `early` data of TLS, and those with it accepted (`early_accepted`); `ok`: every load did what its treatment promises; and `text` for people |

A treatment promises what its mode does: data in every SYN that a server takes, or in none. Where treatments differ in
`scheme`, `http` or `keep_alive`, each load is held to that too, by its own rows of requests and connections: all connections
to one scheme; with HTTP/2 one connection an origin, with HTTP/1.1 no two requests at once on one; without keep-alive one
request on each. A load that breaks a promise has failed. The other keys leave no trace in the rows, and nothing is claimed of them.

`format` is `firstflight-summary/4`. In format 3 `proof` did not count early data; in format 2 the sides were called after their modes (`tcp_ms`, `tfo_ms`, `tcp_loads`, ...,
and in `proof` `tfo_connections`, `tfo_offered`, `tfo_accepted`, `tcp_offered`). In format 1 the improvement was that of the medians, its interval a bootstrap's, and the
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
