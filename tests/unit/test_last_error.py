import json
import os
from pathlib import Path

import pytest

from firstflight.cli import main
from firstflight.cli.last_error import keep_error, last_error, without_names


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", "/home/zebedee")
    monkeypatch.setenv("USER", "zebedee")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/zebedee/a.har: no such file", "…/a.har: no such file"),
        ("'/home/zebedee/clients/acme/a.har'", "'…/a.har'"),
        ("/srv/acme/a.har:3", "…/a.har:3"),
        ("file:///srv/acme/a.har", "file://…/a.har"),
        ("started by Zebedee, as zebedee_2", "started by USER, as USER_2"),
        ("zebedees", "zebedees"),
        ("/usr/bin/chromium and /dev/net/tun stay", "/usr/bin/chromium and /dev/net/tun stay"),
        ("https://me:secret@a.example/x?token=1#y", "https://a.example/x?…"),
        ("http://a.example/x/y.css: 404", "http://a.example/x/y.css: 404"),
        (f"on {os.uname().nodename}.", "on HOST."),
        ("run/results: 4mbit/256kbit, +9.9 %", "run/results: 4mbit/256kbit, +9.9 %"),
    ],
)
def test_names_of_user_machine_and_folders_are_left_out_of_a_text(text: str, kept: str) -> None:
    assert without_names(text) == kept


def test_a_failed_call_is_kept_without_the_values_of_its_flags() -> None:
    assert main(["run", "/srv/acme/a.har", "--rtt=20", "--out", "secret"]) == 2
    kept = last_error()
    assert kept
    assert kept["call"] == "run --rtt --out"
    assert kept["message"] == "…/a.har: no such file or directory"
    assert "embedded pages" in kept["hint"]


def test_an_error_that_nobody_expected_is_kept_with_where_it_was_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("at /home/zebedee/x")

    monkeypatch.setattr("firstflight.cli.app.app", broken)
    with pytest.raises(RuntimeError):
        main(["pages"])
    kept = last_error()
    assert kept
    assert kept["message"] == "RuntimeError: at …/x"
    assert kept["where"][-1].startswith("test_last_error.py:")
    assert any(frame.startswith("firstflight/cli/app.py:") for frame in kept["where"])
    assert "/home" not in json.dumps(kept)


def test_a_call_that_succeeds_or_is_mistyped_keeps_nothing() -> None:
    assert main(["pages"]) == 0
    assert main(["run", "--no-such-flag"]) == 2
    assert last_error() is None


@pytest.mark.parametrize("state", ["/proc/no", "/dev/null"])
def test_where_nothing_can_be_kept_the_error_is_shown_all_the_same(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", state)
    assert main(["run", "gone.har"]) == 2
    assert "gone.har" in capsys.readouterr().err
    assert last_error() is None


def test_what_is_kept_is_small() -> None:
    keep_error(["run", *["--flag"] * 10_000], "x" * 100_000, "y" * 100_000)
    assert sum(file.stat().st_size for file in Path(os.environ["XDG_STATE_HOME"]).rglob("*.json")) < 8_000
