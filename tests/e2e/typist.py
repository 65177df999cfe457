"""Simulates a person at a terminal: starts a program, waits for texts on the screen, and types answers.

`python typist.py SCRIPT PROGRAM ARGUMENT...`, with SCRIPT a JSON list of [text to wait for, keys to type].
What the terminal showed goes to stdout. The exit code is the program's, or 99 if a text did not appear in
time.
"""

import json
import os
import pty
import signal
import sys

PATIENCE_S = 60
TIRED = 99


class TiredError(Exception):
    """A text did not appear in time."""


def main(script: str, program: list[str]) -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(program[0], program)
    signal.signal(signal.SIGALRM, tire)
    signal.alarm(PATIENCE_S)
    shown, read = bytearray(), 0
    try:
        for text, keys in json.loads(script):
            read = wait_for(text.encode(), terminal, shown, read)
            os.write(terminal, keys.encode())
        wait_for(None, terminal, shown, read)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except TiredError:
        return TIRED
    finally:
        sys.stdout.write(shown.decode(errors="replace"))


def wait_for(text: bytes | None, terminal: int, shown: bytearray, read: int) -> int:
    """Reads until `text` appears after position `read`, or to the end; returns the new position."""
    while text is None or text not in shown[read:]:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # EIO: no process has the terminal open any more
            chunk = b""
        if not chunk:
            return len(shown)
        shown += chunk
    return shown.index(text, read) + len(text)


def tire(*_: object) -> None:
    raise TiredError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
