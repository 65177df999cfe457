"""`firstflight exec` at a terminal: the program reads the keyboard, and afterwards the caller can again."""

import json
import sys
from pathlib import Path

import pytest
from program import Ended, Program

CTRL_C = "\x03"
CTRL_Z = "\x1a"
PROMPT = "ready> "
SHELL = ("env", f"PS1={PROMPT}", "bash", "--norc", "--noprofile", "-i")


def at_a_terminal(program: Program, script: list[tuple[str, str]], *arguments: str) -> Ended:
    """Runs a program at a terminal. `script` lists texts to wait for, and the keys to type after each."""
    typist = (sys.executable, str(Path(__file__).with_name("typist.py")), json.dumps(script))
    return program(*arguments, wrap=typist)


@pytest.mark.ordinary_user
def test_ctrl_c_ends_the_program_and_the_ledger_is_summed_up(program: Program) -> None:
    typed = [("", "hello\n"), ("hello\r\nhello\r\n", CTRL_C)]
    ended = at_a_terminal(program, typed, "exec", "--", "cat")
    assert ended.code == 130
    assert "cat: exit code 130" in ended.out
    assert "connections: 0" in ended.out
    assert program.processes() == []


def test_a_program_that_minds_ctrl_c_itself_goes_on(program: Program) -> None:
    script = "trap 'echo caught; exit 9' INT; echo waiting; while :; do sleep 0.1; done"
    ended = at_a_terminal(program, [("waiting", CTRL_C)], "exec", "--", "bash", "-c", script)
    assert ended.code == 9
    assert "caught" in ended.out


def test_an_interactive_shell_has_job_control(program: Program) -> None:
    typed = [
        (PROMPT, "echo $((6 * 7))\n"),
        (PROMPT, "sh -c 'echo heed; exec cat'\n"),
        ("heed\r\n", "one\n"),
        ("one\r\none\r\n", CTRL_C),
        # Stopped with Ctrl-Z, so that the job has stopped before `fg`. A job started in the background stops
        # only at its first read, perhaps after `fg` has found it running.
        (PROMPT, "sh -c 'echo again; exec cat'\n"),
        ("again\r\n", CTRL_Z),
        ("Stopped", ""),
        (PROMPT, "fg\n"),
        # The shell prints the name of the job after it has left line editing. Keys typed before that could be
        # lost.
        ("\rsh -c 'echo again; exec cat'\r\n", "two\n"),
        ("two\r\ntwo\r\n", CTRL_C),
        (PROMPT, "curl -s -o /dev/null -w 'status %{http_code}\\n' http://bits.wikimedia.org/geoiplookup\n"),
        ("status 200", "exit 5\n"),
    ]
    ended = at_a_terminal(program, typed, "exec", "--pages", "wikipedia", "--", *SHELL)
    assert ended.code == 5, ended.out
    assert "\n42\n" in ended.out
    assert "no job control" not in ended.out
    assert "1 offered, 1 accepted" in ended.out


def test_the_terminal_comes_back_from_a_shell(program: Program) -> None:
    """A command that follows `firstflight exec` in the same script can read the keyboard."""
    script = '"$@"; echo "ended with $?"; read line; echo "read $line"'
    typist = str(Path(__file__).with_name("typist.py"))
    typed = json.dumps([(PROMPT, "exit 3\n"), ("ended with 3", "hello\n")])
    wrap = (sys.executable, typist, typed, "sh", "-c", script, "sh")
    ended = program("exec", "--", *SHELL, wrap=wrap)
    assert "read hello" in ended.out, ended.out
