import json
import random
from pathlib import Path

import polars as pl
import pytest
from synthetic_results import failed_record, load_record, write_journal

from firstflight.errors import UsageError
from firstflight.results import CONNECTIONS, LOADS, REQUESTS, TABLES, Journal, LoadRecord
from firstflight.results.docs import render_docs
from firstflight.results.schema import Table
from firstflight.results.tables import polars_schema, scan_loads, write_tables

DESIGNED = {
    "loads": """load_id block order repeat page engine client mode treatment baseline
        cookies topology rtt_ms down_mbps up_mbps
        loss loss_burst loss_in_burst jitter_ms reorder duplicate down_trace up_trace queue ecn middlebox
        initial_window congestion_control ip scheme http priorities post_quantum certificate_bytes
        keep_alive origin_rtt lookups server_time processing determinism browser what_if seed
        started_at plt_ms
        first_byte_ms requests failed_requests unmatched_requests connections
        tfo_offered tfo_accepted bytes_down bytes_up retransmits attempt proved relay_late_ms relay_late
        status error""",
    "requests": """load_id index url origin connection queued_ms connect_start_ms connect_end_ms sent_ms
        first_byte_ms end_ms status mime body_bytes wire_bytes initiator""",
    "connections": """load_id connection origin opened_ms syn_payload_bytes cookie syn_data_acked
        syn_retransmits bytes_down bytes_up closed_ms first_flight_bytes tls resumed early_data
        early_data_bytes protocol""",
}


def records() -> list[LoadRecord]:
    return [load_record(mode=mode, block=block) for block in range(3) for mode in ("tcp", "tfo")] + [
        failed_record(block=5)
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_are_those_of_the_design_in_its_order(table: Table) -> None:
    assert table.names == DESIGNED[table.name].split()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_column_in_ms_mbps_or_bytes_says_its_unit(table: Table) -> None:
    for column in table.columns:
        suffix = column.name.rpartition("_")[2]
        assert column.unit == {"ms": "ms", "mbps": "Mbit/s", "bytes": "bytes"}.get(suffix, column.unit)
        assert column.meaning


def test_the_docs_page_is_made_from_the_schema() -> None:
    page = Path(__file__).parents[2] / "docs" / "results.md"
    assert page.read_text() == render_docs(), "run: python -m firstflight.results.docs > docs/results.md"


def test_tables_hold_the_journal(tmp_path: Path) -> None:
    paths = write_tables(write_journal(tmp_path, records()))
    assert [path.name for path in paths] == ["loads.parquet", "requests.parquet", "connections.parquet"]
    loads, requests, connections = map(pl.read_parquet, paths)
    assert loads.schema == polars_schema(LOADS)
    assert requests.schema == polars_schema(REQUESTS)
    assert connections.schema == polars_schema(CONNECTIONS)
    ok = loads.filter(status="ok")
    assert ok["requests"].sum() == requests.height
    assert ok["connections"].sum() == connections.height
    assert loads.filter(status="failed")["plt_ms"].to_list() == [None]
    assert ok["seed"][0] >= 2**63
    assert loads["started_at"].is_not_null().all()


def test_row_order_does_not_depend_on_the_order_of_the_run(tmp_path: Path) -> None:
    shuffled = records()
    random.Random(3).shuffle(shuffled)
    one = write_tables(write_journal(tmp_path / "one", records()))
    two = write_tables(write_journal(tmp_path / "two", shuffled))
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_a_journal_of_loads_alone_gives_the_same_bytes_read_in_columns_or_line_by_line(
    tmp_path: Path,
) -> None:
    alone = [record | {"requests": [], "connections": []} for record in [*records(), load_record(block=1)]]
    random.Random(3).shuffle(alone)
    columns = write_journal(tmp_path / "columns", alone)
    lines = write_journal(tmp_path / "lines", alone)
    journal = lines / "journal.jsonl"
    journal.write_text(journal.read_text().replace("[]", "[ ]") + '{"cut": "sho')
    assert scan_loads(journal, tmp_path) is None
    assert scan_loads(columns / "journal.jsonl", tmp_path) is not None
    one, two = write_tables(columns), write_tables(lines)
    assert pl.read_parquet(one[0]).height == len(records())
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("plt_ms", "soon", "plt_ms is 'soon'"),
        ("plt_ms", -1.0, "plt_ms is -1.0"),
        ("mode", None, "mode is null"),
        ("status", "fine", "status is 'fine'"),
        ("started_at", "today", "expected time with offset"),
    ],
)
def test_a_damaged_journal_of_loads_alone_is_refused_with_its_line(
    tmp_path: Path, key: str, value: object, says: str
) -> None:
    alone = [record | {"requests": [], "connections": []} for record in records()]
    journal = write_journal(tmp_path, alone) / "journal.jsonl"
    first, second, *rest = journal.read_text().splitlines()
    line = json.loads(second)
    line["load"][key] = value
    journal.write_text("\n".join([first, json.dumps(line), *rest, ""]))
    with pytest.raises(UsageError, match=rf"journal.jsonl:2: .*{says}"):
        write_tables(tmp_path)


def test_a_second_call_replaces_the_tables_and_leaves_no_other_file(tmp_path: Path) -> None:
    write_tables(write_journal(tmp_path, records()))
    Journal(tmp_path / "journal.jsonl").append(load_record(block=8))
    write_tables(tmp_path)
    assert pl.read_parquet(tmp_path / "loads.parquet").height == 8
    assert len(list(tmp_path.iterdir())) == 4


def test_an_empty_journal_gives_empty_tables_with_the_right_columns(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    write_tables(tmp_path)
    assert pl.read_parquet(tmp_path / "loads.parquet").schema == polars_schema(LOADS)


@pytest.mark.parametrize(("name", "says"), [("missing", "no such folder"), (".", "not a results folder")])
def test_a_folder_without_results_is_refused_with_a_hint(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        write_tables(tmp_path / name)
    assert "firstflight run" in caught.value.hint


def test_a_folder_that_cannot_be_written_is_refused_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_journal(tmp_path, records())

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(UsageError, match="cannot be written: Permission denied") as caught:
        write_tables(tmp_path)
    assert "writable" in caught.value.hint
