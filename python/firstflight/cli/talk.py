"""What the program says: data on stdout, talk on stderr. Colour only on terminals, and not with NO_COLOR."""

import json
import sys

from rich.console import Console
from rich.markup import escape

from firstflight.errors import FirstflightError

_WIDE = 160
"""Width of a table that goes to a file or a pipe, characters."""


class Talk:
    """Notes, warnings and errors on stderr.

    Args:
        quiet: Leaves out notes and progress; warnings and errors stay.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.quiet = quiet

    @property
    def shows_progress(self) -> bool:
        """Whether somebody is watching who wants to see progress."""
        return self.console.is_terminal and not self.quiet

    def note(self, text: str) -> None:
        """Says something that may be left out."""
        if not self.quiet:
            self.console.print(escape(text))

    def warn(self, text: str, hint: str = "") -> None:
        """Says what makes a result doubtful, and what to do about it."""
        self._say("[yellow]warning:[/]", text, hint)

    def error(self, text: str, hint: str = "") -> None:
        """Says what went wrong, and the mend."""
        self._say("[bold red]error:[/]", text, hint)

    def failure(self, error: FirstflightError) -> None:
        """Says an exception of ours."""
        self.error(error.message, error.hint)

    def _say(self, label: str, text: str, hint: str) -> None:
        self.console.print(f"{label} {escape(text)}")
        if hint:
            self.console.print(f"[cyan]hint:[/] {escape(hint)}")


def data_console() -> Console:
    """Where tables go: stdout, as wide as the terminal, or wide enough for a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def show_json(document: object) -> None:
    """Prints one JSON document as data."""
    print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))  # noqa: T201
