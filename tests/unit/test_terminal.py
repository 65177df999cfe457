"""Text from archives, servers and clients reaches the terminal without markup and control characters."""

import json
import re
from pathlib import Path
from threading import Event

import pytest
from rich.table import Table

from firstflight.cli import main
from firstflight.cli.console import data_console, progress
from firstflight.cli.talk import Talk, show_json
from firstflight.text import visible

HOSTILE = "[/b][bold]x[/] \x1b[2J\x9b2J\x07\u202eright\u2066to\u200bleft\x7f\ud800"


def assert_harmless(said: str) -> None:
    """Asserts that `said` has no invisible characters, and shows markup as text."""
    assert "[/b][bold]x[/]" in said
    assert all(visible(line) == line for line in said.splitlines())


@pytest.mark.parametrize("how", ["note", "warn", "error"])
def test_a_message_is_one_line_of_text(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(Talk(), how)(f"{HOSTILE}\nerror: forged\r\u2028")
    said = capsys.readouterr().err
    assert_harmless(said)
    assert len(said.splitlines()) == 1


def test_a_hint_is_one_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    Talk().warn("x", f"{HOSTILE}\nerror: forged")
    said = capsys.readouterr().err
    assert_harmless(said)
    assert len(said.splitlines()) == 2


def test_a_cell_and_a_title_of_a_table_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    data_console().print(table)
    said = capsys.readouterr().out
    assert_harmless(said)
    assert said.count("[/b][bold]x[/]") == 3


def test_a_line_of_progress_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    talk = Talk()
    with progress(talk) as shown:
        shown.begin(HOSTILE, 2)
        shown.remark(HOSTILE)
        talk.warn(HOSTILE, HOSTILE)
        shown.advance()
    assert_harmless(capsys.readouterr().err)


def test_without_a_terminal_progress_is_a_line_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    remarked = Event()

    class Listener(Talk):
        def note(self, text: str) -> None:
            said.append(text)
            if text.endswith("made again"):
                remarked.set()

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("firstflight.cli.talk.EVERY_S", 0.001)
    with progress(Listener()) as shown:
        shown.begin("loads", 10, done=4)
        shown.advance()
        shown.remark("1 made again")
        assert remarked.wait(60)
    assert re.fullmatch(r"loads: 5 of 10, \S+/s, \d+ s left, 1 made again", said[-1])


def test_a_quiet_call_shows_no_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress(Talk(quiet=True)) as shown:
        shown.begin("loads", 10)
        shown.advance()
    assert capsys.readouterr().err == ""


def test_json_is_the_same_document_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({HOSTILE: [f"µs\n{HOSTILE}"]})
    said = capsys.readouterr().out
    assert json.loads(said) == {HOSTILE: [f"µs\n{HOSTILE}"]}
    assert "µs" in said
    assert_harmless(said)


def test_the_table_of_pages_shows_a_url_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "http://a.example/[/b]x[bold]\x1b[2J\u202e"
    answer = {
        "status": 200,
        "headers": [],
        "content": {"size": 900, "mimeType": "text/html"},
        "bodySize": 900,
    }
    entries = [{"request": {"method": "GET", "url": url}, "response": answer}]
    (tmp_path / "x.har").write_text(json.dumps({"log": {"entries": entries}}))
    assert main(["pages", str(tmp_path / "x.har")]) == 0
    said = capsys.readouterr().out
    assert "a.example/[/b]x[bold]%1B[2J%E2%80%AE" in said
    assert all(visible(line) == line for line in said.splitlines())


def test_a_name_given_on_the_command_line_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pages", "no[/b]\x1b[2J\nsuch.har"]) == 2
    said = capsys.readouterr().err
    assert "no[/b]\\x1b[2J\\nsuch.har" in said
    assert len(said.splitlines()) == 2
