"""The progress of a run, on a terminal only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from firstflight.cli.talk import Talk
from firstflight.engines.task import Record
from firstflight.experiment.watch import Watch
from firstflight.plural import plural


@contextmanager
def progress(talk: Talk) -> Iterator[Watch]:
    """A watch that shows a bar with rate and time left on a terminal, and says warnings everywhere."""
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=talk.console,
        disable=not talk.shows_progress,
        transient=True,
        speed_estimate_period=300,
    ) as bar:
        yield _Bar(talk, bar)


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.3g}/s")


class _Bar(Watch):
    def __init__(self, talk: Talk, bar: Progress) -> None:
        self._talk = talk
        self._bar = bar
        self._task: TaskID | None = None

    def calibrating(self, paths: int) -> None:
        self._bar.add_task(f"calibrating {plural(paths, 'path')}", total=None)

    def starting(self, planned: int, made: int, wide: int) -> None:
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._task = self._bar.add_task("loads", total=planned, completed=made)
        cells = f"{plural(wide, 'cell')} still too wide: " if wide else ""
        self._talk.note(
            f"{cells}{plural(planned, 'load')} planned" + (f", {made} made already" if made else "")
        )

    def made(self, record: Record, *, settled: bool) -> None:
        load = record["load"]
        if settled and self._task is not None:
            self._bar.advance(self._task)
        if record.get("instrument_failure"):
            self._talk.warn(f"load {load['load_id']} has no result: {load['error']}")
            return
        if load["status"] == "failed":
            self._talk.warn(f"load {load['load_id']} failed: {load['error']}")
        if not settled:
            why = "the client broke" if record.get("broken") else "the relay was late"
            self._talk.note(f"load {load['load_id']}: {why} (attempt {record['attempt']}), once more")

    def warn(self, message: str, hint: str = "") -> None:
        self._talk.warn(message, hint)
