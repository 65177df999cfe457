"""Turns Ctrl-C and termination signals into an exception, so that a run can clean up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked the run to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into `Interrupted`, raised in the main thread, while the block runs.

    A signal that the caller of the program has set to be ignored (as nohup does with SIGHUP) stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)
