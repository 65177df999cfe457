"""A person at a terminal: starts a program on a terminal of its own, waits for texts and types answers.

`python typist.py SCRIPT PROGRAM ARGUMENT...`, with SCRIPT a JSON list of [text to wait for, keys to type].
What the terminal showed goes to stdout; ends as the program ends.
"""

import json
import os
import pty
import signal
import sys

PATIENCE_S = 60


def main(script: str, program: list[str]) -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(program[0], program)
    signal.alarm(PATIENCE_S)
    shown = b""
    for text, keys in json.loads(script):
        shown += wait_for(text.encode(), terminal)
        os.write(terminal, keys.encode())
    shown += wait_for(None, terminal)
    sys.stdout.write(shown.decode(errors="replace"))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_for(text: bytes | None, terminal: int) -> bytes:
    """What is shown up to `text`, or to the end."""
    shown = b""
    while text is None or text not in shown:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # EIO: nobody has the terminal open any more
            break
        if not chunk:
            break
        shown += chunk
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
