import json
import threading
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import failed_record, load_record

from firstflight.errors import UsageError
from firstflight.results import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(tmp_path / "journal.jsonl")
    for block in range(3):
        journal.append(load_record(block=block))
    return journal


def test_a_journal_gives_back_what_was_appended(journal: Journal) -> None:
    assert journal.records() == [load_record(block=block) for block in range(3)]
    assert not journal.torn


def test_a_journal_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    assert Journal(tmp_path / "journal.jsonl").records() == []


def test_finished_names_ok_and_failed_loads(journal: Journal) -> None:
    failed = failed_record(block=9)
    journal.append(failed)
    assert journal.finished() == {r["load"]["load_id"] for r in journal.records()}
    assert failed["load"]["load_id"] in journal.finished()


def test_every_kill_point_inside_the_last_line_loses_that_line_only(journal: Journal) -> None:
    content = journal.path.read_bytes()
    last = content[:-1].rfind(b"\n") + 1
    for cut in range(last + 1, len(content) - 1, 997):
        journal.path.write_bytes(content[:cut])
        assert [r["load"]["block"] for r in journal.records()] == [0, 1]
        assert journal.torn


def test_a_kill_inside_a_multibyte_character_is_a_torn_line(journal: Journal) -> None:
    content = journal.path.read_bytes()
    journal.path.write_bytes(content + '{"load": {"error": "é'.encode()[:-1])
    assert len(journal.records()) == 3


def test_append_removes_the_torn_line(journal: Journal) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + b'{"load": {"load_id": "hal')
    again = Journal(journal.path)
    again.append(load_record(block=7))
    assert [r["load"]["block"] for r in again.records()] == [0, 1, 2, 7]
    assert journal.path.read_bytes().startswith(whole)
    assert not again.torn


def test_a_last_line_that_lost_only_its_newline_is_kept(journal: Journal) -> None:
    journal.path.write_bytes(journal.path.read_bytes()[:-1])
    again = Journal(journal.path)
    assert len(again.records()) == 3
    again.append(load_record(block=7))
    assert len(again.records()) == 4


def test_a_load_that_ran_again_replaces_its_earlier_line(journal: Journal) -> None:
    journal.append(load_record(block=1, plt_ms=77.0))
    assert [r["load"]["plt_ms"] == 77.0 for r in journal.records()] == [False, True, False]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{torn\n", "not a journal line"),
        (b"\n", "not a journal line"),
        (b"[]\n", "not a load record"),
        (b"\xff\xfe\n", "not a journal line"),
        (b'{"load": {}}\n', "load: no load_id"),
        (b'{"format": "firstflight-journal/99"}\n', "journal format is 'firstflight-journal/99'"),
    ],
)
def test_damage_before_the_last_line_names_file_and_line_with_a_hint(
    journal: Journal, line: bytes, says: str
) -> None:
    journal.path.write_bytes(line + journal.path.read_bytes())
    with pytest.raises(UsageError, match=r"journal\.jsonl:1: ") as caught:
        journal.records()
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"plt_ms": None}, "status is ok but plt_ms is None"),
        ({"plt_ms": float("nan")}, "plt_ms is nan, expected number"),
        ({"status": "done"}, "status is 'done'"),
        ({"rtt_ms": "100"}, "rtt_ms is '100', expected number"),
        ({"block": True}, "block is True, expected integer"),
        ({"block": 1.5}, "block is 1.5, expected integer"),
        ({"seed": -1}, "seed is -1"),
        ({"mode": None}, "mode is null"),
        ({"page": "\udc80"}, "expected text"),
        ({"started_at": "2026-01-02T03:04:05"}, "expected time with offset"),
    ],
)
def test_an_unsound_load_is_not_journalled(journal: Journal, changes: Any, says: str) -> None:  # noqa: ANN401
    record = load_record()
    record["load"] |= changes
    with pytest.raises(ValueError, match="cannot be journalled") as caught:
        journal.append(record)
    assert says in str(caught.value)
    assert len(journal.records()) == 3


def test_a_record_without_its_proof_is_not_journalled(journal: Journal) -> None:
    record = load_record()
    del record["proof"]  # type: ignore[misc]
    with pytest.raises(ValueError, match="proof: expected an object"):
        journal.append(record)


def test_an_unsound_request_is_named_by_its_number(journal: Journal) -> None:
    record: Any = load_record()
    record["requests"][4]["url"] = None
    with pytest.raises(ValueError, match=r"requests\[4\]: url is null"):
        journal.append(record)


def test_many_labs_finish_at_once_and_no_line_is_lost(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")

    def append(first: int) -> None:
        for block in range(first, first + 10):
            journal.append(load_record(block=block))

    threads = [threading.Thread(target=append, args=(10 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r["load"]["block"] for r in journal.records()) == list(range(40))


def test_a_journal_of_format_3_is_read_and_says_nothing_of_tls(journal: Journal) -> None:
    line = json.loads(journal.path.read_text().splitlines()[0])
    later = ("first_flight_bytes", "tls", "resumed", "early_data", "early_data_bytes")
    for row in line["connections"]:
        for name in later:
            del row[name]
    old = Journal(journal.path.with_name("old.jsonl"))
    old.path.write_text(json.dumps({**line, "format": "firstflight-journal/3"}) + "\n")
    [record] = old.records()
    assert record["connections"]
    assert all(row.get(name) is None for row in record["connections"] for name in later)


def test_each_line_says_its_format(journal: Journal) -> None:
    first = json.loads(journal.path.read_text().splitlines()[0])
    assert first["format"] == "firstflight-journal/7"


def test_a_journal_in_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        Journal(tmp_path / "nowhere" / "journal.jsonl").append(load_record())
