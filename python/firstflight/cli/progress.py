"""How far a command is: a bar on a terminal, elsewhere a line every ten seconds, with --quiet nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from firstflight.cli.talk import Talk

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
def progress(talk: Talk) -> Iterator[Progress]:
    """Shows progress while the block runs. What `talk` says meanwhile stands above a bar."""
    if talk.quiet:
        yield Progress()
    elif talk.has_terminal:
        from firstflight.cli.bar import bar  # noqa: PLC0415 (rich, which only a terminal needs)

        with bar() as shown:
            yield shown
    else:
        lines = _Lines(talk)
        thread = Thread(target=lines.repeat, daemon=True)
        thread.start()
        try:
            yield lines
        finally:
            lines.ended.set()
            thread.join()


class _Lines(Progress):
    def __init__(self, talk: Talk) -> None:
        self.ended = Event()
        self._talk = talk
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
                self._talk.note(self._line())

    def _line(self) -> str:
        passed_s = time.monotonic() - self._begun_s
        remark = f", {self._remark}" if self._remark else ""
        if self._total is None:
            return f"{self._what}: {passed_s:.0f} s{remark}"
        made, left = self._done - self._before, self._total - self._done
        pace = f", {made / passed_s:.3g}/s, {left * passed_s / made:.0f} s left" if made else ""
        return f"{self._what}: {self._done} of {self._total}{pace}{remark}"
