"""Tables and progress bars: the parts of the screen that rich draws.

URLs, names and messages come from archives, servers and programs. Everything that is printed passes through
`_Terminal`, which treats strings as plain text: without markup, and without characters that move the cursor,
hide or reverse text.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment
from rich.text import Text

from firstflight.cli.talk import Talk, lines
from firstflight.observer import Forwarder, Observer
from firstflight.text import without_invisible

_WIDE = 160
"""Width of a table in a file or pipe, characters."""


def data_console() -> Console:
    """The console for tables: stdout, as wide as the terminal, or wide enough for a pipe."""
    return _Terminal(width=None if sys.stdout.isatty() else _WIDE)


def progress_console() -> Console:
    """The console for progress bars: stderr."""
    return _Terminal(stderr=True, soft_wrap=True)


class _Terminal(Console):
    """A console that treats every string as plain text."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None) -> None:
        super().__init__(
            stderr=stderr, soft_wrap=soft_wrap, width=width, highlight=False, markup=False, emoji=False
        )
        self.push_render_hook(_AllVisible())


class _AllVisible(RenderHook):
    """Makes invisible characters visible in all output, including tables and progress."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Visible(renderable) for renderable in renderables]


class _Visible:
    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._content, options):
            yield segment if segment.control else segment._replace(text=without_invisible(segment.text))


@contextmanager
def progress(talk: Talk) -> Iterator[Observer]:
    """Shows progress while the block runs: as a bar, or as lines if there is no terminal."""
    if talk.quiet:
        yield talk
    else:
        with _bar(talk) if talk.has_terminal else lines(talk) as shown:
            yield shown


@contextmanager
def _bar(talk: Observer) -> Iterator[Observer]:
    """Shows a bar with rate and remaining time. Other output to stderr appears above it."""
    with rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        _Counted(),
        rich.TextColumn("{task.fields[remark]}", markup=False),
        console=progress_console(),
        transient=True,
        speed_estimate_period=300,
    ) as shown:
        yield _Bar(shown, talk)


class _Counted(rich.ProgressColumn):
    """`3/10 0.5/s 0:00:14`, or the elapsed time if nothing is counted."""

    def render(self, task: rich.Task) -> Text:
        if task.total is None:
            return rich.TimeElapsedColumn().render(task)
        pace = (
            []
            if task.speed is None
            else [Text(f"{task.speed:.3g}/s"), rich.TimeRemainingColumn().render(task)]
        )
        return Text(" ").join([rich.MofNCompleteColumn().render(task), *pace])


class _Bar(Forwarder):
    def __init__(self, shown: rich.Progress, talk: Observer) -> None:
        super().__init__(talk)
        self._shown = shown
        self._task: rich.TaskID | None = None

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        if self._task is not None:
            self._shown.remove_task(self._task)
        self._task = self._shown.add_task(what, total=total, completed=done, remark="")

    def advance(self) -> None:
        if self._task is not None:
            self._shown.advance(self._task)

    def remark(self, text: str) -> None:
        if self._task is not None:
            self._shown.update(self._task, remark=text)
