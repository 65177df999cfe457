"""The columns that distinguish loads of different plans in the tables, and which attempt at a load counts."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from synthetic_results import failed_record, load_record, write_journal
from typing_extensions import ReadOnly, get_type_hints

from firstflight.analysis import summarize
from firstflight.experiment.plan_file import resolve
from firstflight.experiment.schedule import Schedule
from firstflight.model.plan import Plan
from firstflight.results import CONNECTIONS, LOADS, REQUESTS, ConnectionRow, Journal, LoadRow, RequestRow
from firstflight.results.schema import KEYS_WITHOUT_COLUMN, LOAD_COLUMNS, Column
from firstflight.results.tables import polars_schema, write_tables

NEW = [column.name for column in LOADS.columns if column.since > 1]
NEWER = [column.name for column in LOADS.columns if column.since > 2]

OTHERWISE: dict[str, dict[str, Any]] = {
    "pages": {"pages": "wsj"},
    "rtt": {"rtt": 50},
    "down": {"down": "8mbit"},
    "up": {"up": "1mbit"},
    "down_trace": {"down_trace": "examples/mobile.down"},
    "up_trace": {"up_trace": "examples/mobile.up"},
    "topology": {"topology": "star"},
    "loss": {"loss": 0.02},
    "loss_burst": {"loss": 0.01, "loss_burst": 4},
    "loss_in_burst": {"loss": 0.01, "loss_burst": 4, "loss_in_burst": 0.5},
    "jitter": {"jitter": 3},
    "reorder": {"jitter": 3, "reorder": True},
    "duplicate": {"duplicate": 0.1},
    "queue": {"queue": "64kB"},
    "ecn": {"queue": "codel", "ecn": True},
    "middlebox": {"middlebox": "drop-data:0.3"},
    "initial_window": {"initial_window": 3},
    "congestion_control": {"congestion_control": "reno"},
    "ip": {"ip": "6"},
    "mode": {"mode": "tcp"},
    "treatment": {"mode": None, "compare": "initial_window=10,32"},
    "client": {"client": "chromium"},
    "browser": {"browser": "/opt/browser"},
    "determinism": {"determinism": False},
    "engine": {"engine": "simulate"},
    "scheme": {"scheme": "https"},
    "post_quantum": {"post_quantum": False},
    "certificate_bytes": {"certificate_bytes": 4_000},
    "http": {"scheme": "https", "http": "2"},
    "priorities": {"scheme": "https", "http": "2", "priorities": "rfc9218"},
    "origin_rtt": {"origin_rtt": "recorded"},
    "lookups": {"lookups": True},
    "server_time": {"server_time": False},
    "processing": {"processing": 2},
    "keep_alive": {"keep_alive": False},
    "cookies": {"cookies": "cold"},
    "what_if": {"engine": "simulate", "what_if": "syn-payload=4"},
    "seed": {"seed": 2},
}
"""By key of a plan: settings of a plan in which that key has another value."""


def row(keys: dict[str, Any]) -> dict[str, Any]:
    """The columns of the last load of a plan of one page."""
    wanted = {"pages": "amazon", "rtt": 100, "mode": "tfo", "repeats": 1, **keys}
    plan = resolve({key: value for key, value in wanted.items() if value is not None})
    *_, block = Schedule(plan, plan.pages)
    return block.loads[-1].columns()


def test_every_key_of_a_plan_has_a_column_or_says_why_it_needs_none() -> None:
    with_column = {column.key for column in LOADS.columns if column.key}
    assert with_column | KEYS_WITHOUT_COLUMN.keys() == Plan.model_fields.keys()
    assert with_column & KEYS_WITHOUT_COLUMN.keys() == set()
    assert all(KEYS_WITHOUT_COLUMN.values())


def test_every_key_with_a_column_is_tried_below() -> None:
    assert {column.key for column in LOADS.columns if column.key} == OTHERWISE.keys()


@pytest.mark.parametrize("key", OTHERWISE)
def test_loads_of_plans_that_differ_in_a_key_differ_in_its_column(key: str) -> None:
    [column] = [column.name for column in LOADS.columns if column.key == key]
    assert row(OTHERWISE[key])[column] != row({})[column]


def test_a_load_has_every_column_that_the_plan_decides() -> None:
    decided = {column.name for column in LOADS.columns if column.key}
    assert decided <= row({}).keys() <= set(LOADS.names)


def test_two_traces_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name, text in (("a", "1\n2\n"), ("b", "1\n3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link").write_text(text)
    traces = [row({"down_trace": str(tmp_path / name / "link")})["down_trace"] for name in "ab"]
    assert traces[0] != traces[1]
    assert all(trace.startswith("link ") for trace in traces)


def test_tables_of_different_runs_can_be_put_together_and_told_apart(tmp_path: Path) -> None:
    tables = []
    for name, changes in (("clear", {}), ("tls", {"scheme": "https", "http": "2"})):
        folder = write_journal(tmp_path / name, [load_record(**changes)])  # type: ignore[arg-type]
        tables.append(pl.read_parquet(write_tables(folder)[0]))
    together = pl.concat(tables)
    assert together.select("scheme", "http").rows() == [("http", "1.1"), ("https", "2")]


@pytest.mark.parametrize("keep", ["all", "loads"])
def test_attempt_proof_and_lateness_are_columns(tmp_path: Path, keep: str) -> None:
    record = {**load_record(), "attempt": 2, "proof": {"ok": False, "disagreements": []}}
    simulated = {**load_record(block=1), "relay": {}}
    several = [record, simulated, failed_record(block=2)]
    if keep == "loads":
        several = [{**one, "requests": [], "connections": []} for one in several]
    loads = pl.read_parquet(write_tables(write_journal(tmp_path, several))[0])  # type: ignore[arg-type]
    found = loads.select("attempt", "proved", "relay_late_ms").rows()
    assert found == [(2, False, 0.9), (None, True, None), (None, None, 0.9)]


def as_format_1(folder: Path) -> Path:
    """Rewrites the journal of the folder in format 1."""
    return as_format(1, NEW, folder)


def as_format(number: int, lacking: list[str], folder: Path) -> Path:
    """Rewrites the journal of the folder in an older format, without the columns that the format lacks."""
    journal = folder / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        line["format"] = f"firstflight-journal/{number}"
        line["load"] = {name: value for name, value in line["load"].items() if name not in lacking}
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize("keep", ["all", "loads"])
def test_a_folder_of_journal_format_1_says_what_its_plan_said(tmp_path: Path, keep: str) -> None:
    (tmp_path / "plan.toml").write_text(
        'scheme = "https"\nkeep_alive = false\nqueue = "50p"\nloss_burst = "off"\nloss_in_burst = 1\n'
        'jitter = 0\ninitial_window = 3\ndown_trace = "traces/mobile.down"\n'
    )
    several = [load_record(), load_record(block=1)]
    if keep == "loads":
        several = [{**one, "requests": [], "connections": []} for one in several]
    folder = as_format_1(write_journal(tmp_path, several))
    loads = pl.read_parquet(write_tables(folder)[0])
    assert loads.schema == polars_schema(LOADS)
    names = ("scheme", "keep_alive", "queue", "loss_burst", "loss_in_burst", "jitter_ms", "initial_window")
    assert loads.select(names).unique().rows() == [("https", False, "50p", None, None, 0.0, 3)]
    assert loads["down_trace"].to_list() == ["mobile.down"] * 2
    assert loads["http"].to_list() == [None, None], "its plan does not say"
    assert pl.concat(
        [loads, pl.read_parquet(write_tables(write_journal(tmp_path / "new", several))[0])]
    ).height


def test_loads_of_journal_format_2_have_their_mode_as_their_treatment(tmp_path: Path) -> None:
    records = [load_record(mode=mode, block=block) for block in range(3) for mode in ("tfo", "tcp")]
    new = summarize(write_journal(tmp_path / "new", records))
    folder = as_format(2, NEWER, write_journal(tmp_path / "old", records))
    assert [(r["load"]["treatment"], r["load"]["baseline"]) for r in Journal(folder / "journal.jsonl")] == [
        ("tfo", "tcp"),
        ("tcp", "tcp"),
    ] * 3
    assert summarize(folder) == new
    tables = [pl.read_parquet(write_tables(place)[0]) for place in (folder, tmp_path / "new")]
    assert tables[0].equals(tables[1])


def test_a_folder_of_journal_format_1_without_a_plan_is_read(tmp_path: Path) -> None:
    folder = as_format_1(write_journal(tmp_path, [load_record()]))
    [record] = Journal(folder / "journal.jsonl")
    assert record["load"]["scheme"] is None


def test_a_run_goes_on_in_a_folder_of_journal_format_1(tmp_path: Path) -> None:
    folder = as_format_1(write_journal(tmp_path, [load_record()]))
    Journal(folder / "journal.jsonl").append(load_record(block=1))
    assert [r["load"]["scheme"] for r in Journal(folder / "journal.jsonl")] == [None, "http"]


def test_an_attempt_that_a_later_one_made_void_is_not_read_unless_asked_for(tmp_path: Path) -> None:
    late, good, other = load_record(plt_ms=999.0), load_record(plt_ms=77.0), load_record(block=1, plt_ms=5.0)
    journal = Journal(write_journal(tmp_path, [late, other, good]) / "journal.jsonl")
    assert [record["load"]["plt_ms"] for record in journal] == [5.0, 77.0]
    assert [record["load"]["plt_ms"] for record in journal.records()] == [77.0, 5.0]
    assert [record["load"]["plt_ms"] for record in journal.attempts()] == [999.0, 5.0, 77.0]


PYTHON_TYPES = {
    "text": str,
    "integer": int,
    "unsigned integer": int,
    "number": float,
    "true or false": bool,
    "time with offset": str,
}


@pytest.mark.parametrize(
    ("row", "columns"),
    [(LoadRow, LOAD_COLUMNS), (RequestRow, REQUESTS.columns[1:]), (ConnectionRow, CONNECTIONS.columns[1:])],
)
def test_typed_rows_have_the_columns_and_types_of_the_tables(row: type, columns: tuple[Column, ...]) -> None:
    """Columns that come from plan keys are typed only if code reads them by name."""
    typed = get_type_hints(row, localns={"ReadOnly": ReadOnly})
    optional = {"error", "retransmits", "interfered"} if row is not LoadRow else set()
    assert typed.keys() - optional <= {column.name for column in columns}
    assert {column.name for column in columns if not column.key} <= typed.keys()
    for column in columns:
        wanted = PYTHON_TYPES[column.type]
        assert typed.get(column.name) in (None, wanted | None if column.null else wanted), column.name
