"""What the program says: data on stdout, talk on stderr. Colour only on terminals, and not with NO_COLOR.

URLs, names and messages come from archives, servers and programs. Everything that is printed passes through
`_Terminal` or `show_json`, so a string is text there: no markup, and no character that moves the cursor,
hides or reverses text.
"""

import json
import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment
from rich.text import Text

from firstflight.errors import FirstflightError, one_line
from firstflight.visible import without_invisible

_WIDE = 160
"""Width of a table that goes to a file or a pipe, characters."""


class Talk:
    """Notes, warnings and errors on stderr.

    Args:
        quiet: Leaves out notes and progress; warnings and errors stay.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.console: Console = _Terminal(stderr=True, soft_wrap=True)
        self.quiet = quiet

    @property
    def shows_progress(self) -> bool:
        """Whether somebody is watching who wants to see progress."""
        return self.console.is_terminal and not self.quiet

    def note(self, text: str) -> None:
        """Says something that may be left out."""
        if not self.quiet:
            self.console.print(one_line(text))

    def warn(self, text: str, hint: str = "") -> None:
        """Says what makes a result doubtful, and what to do about it."""
        self._say(Text("warning:", "yellow"), text, hint)

    def error(self, text: str, hint: str = "") -> None:
        """Says what went wrong, and the mend."""
        self._say(Text("error:", "bold red"), text, hint)

    def failure(self, error: FirstflightError) -> None:
        """Says an exception of ours."""
        self.error(error.message, error.hint)

    def _say(self, label: Text, text: str, hint: str) -> None:
        self.console.print(label, one_line(text))
        if hint:
            self.console.print(Text("hint:", "cyan"), one_line(hint))


class _Terminal(Console):
    """A console for which every string is text."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None) -> None:
        super().__init__(
            stderr=stderr, soft_wrap=soft_wrap, width=width, highlight=False, markup=False, emoji=False
        )
        self.push_render_hook(_AllVisible())


class _AllVisible(RenderHook):
    """Comes between what is printed and what is written, also of tables and progress."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(renderable) for renderable in renderables]


class _Visible:
    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._content, options):
            yield segment if segment.control else segment._replace(text=without_invisible(segment.text))


def data_console() -> Console:
    """Where tables go: stdout, as wide as the terminal, or wide enough for a pipe."""
    return _Terminal(width=None if sys.stdout.isatty() else _WIDE)


def show_json(document: object) -> None:
    """Prints one JSON document as data."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    # Characters that JSON does not escape stand in strings only, so the document stays the same.
    print(without_invisible(text, lambda char: f"\\u{ord(char):04x}"))  # noqa: T201
