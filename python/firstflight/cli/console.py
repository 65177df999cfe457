"""Tables and progress bars: the parts of the screen that rich draws.

URLs, names and messages come from archives, servers and programs. Everything that is printed passes through
`_Terminal`, so a string is text there: no markup, and no character that moves the cursor, hides or reverses
text.
"""

import sys
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment

from firstflight.visible import without_invisible

_WIDE = 160
"""Width of a table that goes to a file or a pipe, characters."""


def data_console() -> Console:
    """Where tables go: stdout, as wide as the terminal, or wide enough for a pipe."""
    return _Terminal(width=None if sys.stdout.isatty() else _WIDE)


def progress_console() -> Console:
    """Where progress bars go: stderr."""
    return _Terminal(stderr=True, soft_wrap=True)


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
