import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.cli import main
from firstflight.cli.compare import complete_side
from firstflight.cli.plan_flags import complete_page, key_completer
from firstflight.pages import embedded_names

PROGRAM = Path(sys.executable).parent / "firstflight"


def script(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("_FIRSTFLIGHT_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_every_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = script(shell, monkeypatch, capsys)
    assert f"_FIRSTFLIGHT_COMPLETE=complete_{shell}" in shown


def test_bash_completes_commands_and_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tab = """
    COMP_WORDS=(firstflight r) COMP_CWORD=1
    _firstflight_completion "$PROGRAM" && echo "${COMPREPLY[@]}"
    COMP_WORDS=(firstflight run --topology s) COMP_CWORD=3
    _firstflight_completion "$PROGRAM" && echo "${COMPREPLY[@]}"
    """
    completed = subprocess.run(
        ["bash", "--norc", "-c", script("bash", monkeypatch, capsys) + tab],
        env={"PROGRAM": str(PROGRAM), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == ["run record report", "star"]


def test_a_list_is_completed_after_its_comma_with_what_is_not_in_it() -> None:
    complete = key_completer("mode")
    assert complete
    assert "tcp,tfo" in complete("tcp,t")
    assert "tcp,tcp" not in complete("tcp,t")


def test_a_key_that_takes_any_number_or_text_is_left_to_the_user() -> None:
    assert key_completer("rtt") is key_completer("browser") is None


def test_pages_and_published_tables_are_offered_by_name() -> None:
    assert complete_page("") == embedded_names()
    assert complete_page("./") == []
    assert "purdue-1" in complete_side("pur")


def test_to_complete_a_word_no_statistics_are_loaded() -> None:
    heavy = (
        "import sys, firstflight.cli; print([name for name in ('scipy', 'altair') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", heavy], text=True) == "[]\n"
