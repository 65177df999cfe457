"""A worker process, `python -m firstflight.experiment.worker`: errands in, what came of them out.

Pickles, each after its length. Only the process that started it can write to its standard input.
"""

import os
import pickle
import struct
import sys
from contextlib import suppress
from typing import IO, cast

_LENGTH = struct.Struct("!Q")


def main() -> None:
    """Runs errands until standard input ends. What an errand prints goes to stderr."""
    from firstflight.experiment.errand import Errand, run_errand  # noqa: PLC0415 (errand's callers import this module)

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        while True:
            errand = cast(Errand, receive(sys.stdin.buffer))
            try:
                answer: object = run_errand(errand)
            except Exception as error:
                answer = error
            send(answers, answer)


def send(pipe: IO[bytes] | None, message: object) -> None:
    """Writes one message. Raises `OSError` when nobody reads."""
    if pipe is None:
        raise AssertionError("started with pipes")
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes] | None) -> object:
    """Reads one message. Raises `EOFError` when the other side has ended."""
    if pipe is None:
        raise AssertionError("started with pipes")
    return pickle.loads(_read(pipe, *_LENGTH.unpack(_read(pipe, _LENGTH.size))))


def _read(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content


if __name__ == "__main__":
    main()
