"""Output of the program: data on stdout, messages on stderr. Colour only on terminals, not with NO_COLOR.

URLs, names and messages come from archives, servers and programs. Text is printed through `one_line` and JSON
through `show_json`, so that no character moves the cursor, hides or reverses text. Without a terminal,
progress is a line every ten seconds. `console` has tables and progress bars.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import ClassVar

from firstflight.errors import FirstflightError, one_line
from firstflight.observer import Forwarder, Observer
from firstflight.text import without_invisible

_YELLOW, _BOLD_RED, _CYAN = "33", "1;31", "36"
_NO_COLOUR_TERMINALS = ("dumb", "unknown")


class Talk(Observer):
    """Notes, warnings and errors on stderr.

    Args:
        quiet: Leaves out notes and progress; warnings and errors are printed.

    Attributes:
        said: The last error that any instance printed, and its hint; for a bug report.
    """

    said: ClassVar[tuple[str, str] | None] = None

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    @property
    def has_terminal(self) -> bool:
        """Whether stderr is a terminal, or the user forces colour (force-color.org)."""
        forced = os.environ.get("FORCE_COLOR")
        return sys.stderr.isatty() if forced is None else forced != ""

    def note(self, text: str) -> None:
        """Prints information that may be left out."""
        if not self.quiet:
            self.say(text)

    def warn(self, message: str, hint: str = "") -> None:
        """Warns that a result should be checked, and says how."""
        self._labelled("warning:", _YELLOW, message, hint)

    def error(self, text: str, hint: str = "") -> None:
        """Prints an error and its fix."""
        Talk.said = (text, hint)
        self._labelled("error:", _BOLD_RED, text, hint)

    def failure(self, error: FirstflightError) -> None:
        """Prints an exception of firstflight."""
        self.error(error.message, error.hint)

    def say(self, text: str) -> None:
        """Prints information that is never left out."""
        _write(one_line(text))

    def _labelled(self, label: str, colour: str, text: str, hint: str) -> None:
        _write(f"{self._coloured(label, colour)} {one_line(text)}")
        if hint:
            _write(f"{self._coloured('hint:', _CYAN)} {one_line(hint)}")

    def _coloured(self, label: str, colour: str) -> str:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in _NO_COLOUR_TERMINALS
        return label if plain or not self.has_terminal else f"\x1b[{colour}m{label}\x1b[0m"


def _write(line: str) -> None:
    """Writes the line at once, since several threads may write. A visible progress bar moves below it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def show_json(document: object) -> None:
    """Prints one JSON document as data."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    # Characters that JSON does not escape occur only in strings, so the document keeps its meaning.
    print(without_invisible(text, lambda char: f"\\u{ord(char):04x}"))  # noqa: T201


EVERY_S = 10.0
"""Time between two progress lines if there is no terminal, s."""


@contextmanager
def lines(talk: Observer) -> Iterator[Observer]:
    """Shows progress if there is no terminal.

    Args:
        talk: Gets a note with the progress every `EVERY_S`, and notes and warnings.
    """
    shown = _Lines(talk)
    thread = Thread(target=shown.repeat, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        shown.ended.set()
        thread.join()


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
        """Notes the progress every `EVERY_S`, until `ended` is set."""
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
