"""How far a command is, as a line every ten seconds; on a terminal `bar` shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from firstflight.observer import Observer

EVERY_S = 10.0
"""Time between two lines where there is no terminal."""


@contextmanager
def lines(talk: Observer) -> Iterator[Observer]:
    """Shows progress where there is no terminal.

    Args:
        talk: Noted how far it is, every `EVERY_S`; told notes and warnings.
    """
    shown = _Lines(talk)
    thread = Thread(target=shown.repeat, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        shown.ended.set()
        thread.join()


class Forwarder(Observer):
    """Shows progress; passes notes and warnings on."""

    def __init__(self, talk: Observer) -> None:
        self._talk = talk

    def note(self, text: str) -> None:
        """Something that may be left out."""
        self._talk.note(text)

    def warn(self, message: str, hint: str = "") -> None:
        """Something makes the results doubtful; what to do about it."""
        self._talk.warn(message, hint)


class _Lines(Forwarder):
    def __init__(self, talk: Observer) -> None:
        super().__init__(talk)
        self.ended = Event()
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
                self.note(self._line())

    def _line(self) -> str:
        passed_s = time.monotonic() - self._begun_s
        remark = f", {self._remark}" if self._remark else ""
        if self._total is None:
            return f"{self._what}: {passed_s:.0f} s{remark}"
        made, left = self._done - self._before, self._total - self._done
        pace = f", {made / passed_s:.3g}/s, {left * passed_s / made:.0f} s left" if made else ""
        return f"{self._what}: {self._done} of {self._total}{pace}{remark}"
