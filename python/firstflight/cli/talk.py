"""What the program says: data on stdout, talk on stderr. Colour only on terminals, and not with NO_COLOR.

URLs, names and messages come from archives, servers and programs. What is said passes through `one_line`, and
JSON through `show_json`: no character moves the cursor, hides or reverses text. Tables and progress bars are
`console`'s.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from firstflight.cli.progress import lines
from firstflight.errors import FirstflightError, one_line
from firstflight.observer import Observer
from firstflight.visible import without_invisible

_YELLOW, _BOLD_RED, _CYAN = "33", "1;31", "36"
_NO_COLOUR_TERMINALS = ("dumb", "unknown")


class Talk(Observer):
    """Notes, warnings and errors on stderr.

    Args:
        quiet: Leaves out notes and progress; warnings and errors stay.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    @property
    def has_terminal(self) -> bool:
        """Whether stderr is a terminal, or the user says so (force-color.org)."""
        forced = os.environ.get("FORCE_COLOR")
        return sys.stderr.isatty() if forced is None else forced != ""

    def note(self, text: str) -> None:
        """Says something that may be left out."""
        if not self.quiet:
            self.say(text)

    def warn(self, message: str, hint: str = "") -> None:
        """Warns that a result should be checked, and says how."""
        self._labelled("warning:", _YELLOW, message, hint)

    def error(self, text: str, hint: str = "") -> None:
        """Says what went wrong, and the fix."""
        self._labelled("error:", _BOLD_RED, text, hint)

    def failure(self, error: FirstflightError) -> None:
        """Says an exception of ours."""
        self.error(error.message, error.hint)

    def say(self, text: str) -> None:
        """Says something that is never left out."""
        _write(one_line(text))

    @contextmanager
    def progress(self) -> Iterator[Observer]:
        """Shows how far it is while the block runs: as a bar, or without a terminal in lines."""
        if self.quiet:
            yield self
        elif self.has_terminal:
            from firstflight.cli.bar import bar  # noqa: PLC0415 (rich, which only a terminal needs)

            with bar(self) as shown:
                yield shown
        else:
            with lines(self) as shown:
                yield shown

    def _labelled(self, label: str, colour: str, text: str, hint: str) -> None:
        _write(f"{self._coloured(label, colour)} {one_line(text)}")
        if hint:
            _write(f"{self._coloured('hint:', _CYAN)} {one_line(hint)}")

    def _coloured(self, label: str, colour: str) -> str:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in _NO_COLOUR_TERMINALS
        return label if plain or not self.has_terminal else f"\x1b[{colour}m{label}\x1b[0m"


def _write(line: str) -> None:
    """In one piece: several threads may speak. A progress bar that is shown moves below the line."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def show_json(document: object) -> None:
    """Prints one JSON document as data."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    # Characters that JSON does not escape stand in strings only, so the document stays the same.
    print(without_invisible(text, lambda char: f"\\u{ord(char):04x}"))  # noqa: T201
