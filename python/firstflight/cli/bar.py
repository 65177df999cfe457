"""The bar that shows progress on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich
from rich.text import Text

from firstflight.cli.console import progress_console
from firstflight.cli.progress import Forwarder
from firstflight.observer import Observer


@contextmanager
def bar(talk: Observer) -> Iterator[Observer]:
    """Shows a bar with rate and time left; what goes to stderr meanwhile stands above it."""
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
    """`3/10 0.5/s 0:00:14`, or for what is not counted the time that has passed."""

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
