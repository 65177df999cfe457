"""A worker process, `python -m firstflight.experiment.worker`: calls in, what each gave or raised out.

Pickles, each after its length. Only the process that started it can write to its standard input.
"""

import os
import pickle
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, cast

_LENGTH = struct.Struct("!Q")


def main() -> None:
    """Makes calls until standard input ends. What a call prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError):
        while True:
            call, asked = cast(tuple[Callable[[Any], object], Any], receive(sys.stdin.buffer))
            try:
                answer = call(asked)
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
