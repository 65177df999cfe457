"""How far a command is, as a line every ten seconds; on a terminal `bar` shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

EVERY_S = 10.0
"""Time between two lines where there is no terminal."""


class Progress:
    """What is being done and how much of it; shows nothing. Any thread may call it."""

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        """Something else is done from now on.

        Args:
            what: In a word or two, such as `loads`.
            total: How many there are to do; `None`: not counted.
            done: How many are done already.
        """

    def advance(self) -> None:
        """One more is done."""

    def remark(self, text: str) -> None:
        """What else to show of what is being done; replaces what was remarked before."""


@contextmanager
def lines(say: Callable[[str], object]) -> Iterator[Progress]:
    """Shows progress where there is no terminal.

    Args:
        say: Told how far it is, every `EVERY_S`.
    """
    shown = _Lines(say)
    thread = Thread(target=shown.repeat, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        shown.ended.set()
        thread.join()


class _Lines(Progress):
    def __init__(self, say: Callable[[str], object]) -> None:
        self.ended = Event()
        self._say = say
        self._begun_s = time.monotonic()
        self._what, self._remark = "", ""
        self._total: int | None = None
        self._done = self._before = 0

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        self._begun_s = time.monotonic()
        self._what, self._remark, self._total = what, "", total
        self._done = self._before = done

    def advance(self) -> None:
        self._done += 1

    def remark(self, text: str) -> None:
        self._remark = text

    def repeat(self) -> None:
        """Says how far it is, every `EVERY_S`, until `ended` is set."""
        while not self.ended.wait(EVERY_S):
            if self._what:
                self._say(self._line())

    def _line(self) -> str:
        passed_s = time.monotonic() - self._begun_s
        remark = f", {self._remark}" if self._remark else ""
        if self._total is None:
            return f"{self._what}: {passed_s:.0f} s{remark}"
        made, left = self._done - self._before, self._total - self._done
        pace = f", {made / passed_s:.3g}/s, {left * passed_s / made:.0f} s left" if made else ""
        return f"{self._what}: {self._done} of {self._total}{pace}{remark}"
