"""Makes the loads of a plan and writes each to the journal as it ends.

A load whose relay was late beyond the bound is repeated, up to `recorder.MAX_ATTEMPTS` attempts in all. A
load whose client broke is repeated once. Each attempt is a journal line with the same load_id and its
`attempt` number. The last attempt counts: `loads` holds exactly the planned loads, the journal holds every
attempt.

An instrument failure (the laboratory could not be built, or died) has a journal line of its own kind. It is
not a result, and the load stays to be made. `recorder.MAX_IN_A_ROW` of them in a row stop the run.

With `until`, blocks are made in rounds, each for the cells whose interval is still too wide. A round is
complete before the next one is decided. The decision depends on the journal alone, so a resumed run decides
as an uninterrupted one. Looking at the data before stopping costs coverage; `model.plan.FIRST_LOOK` limits
that loss (docs/statistics.md).

Memory grows by only a few bytes for each load: blocks are built and pages opened when they are needed, and
records go to the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firstflight.analysis.statistics import improvement
from firstflight.engines.engine import Calibration
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.folder import (
    bias_of,
    changes,
    check_pages_unchanged,
    read_environment,
    results_folder,
    write_environment,
)
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.recorder import Outcome, Recorder, RunState
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.workers import Workers
from firstflight.model.plan import Plan
from firstflight.model.units import write_width
from firstflight.observer import Observer
from firstflight.pages import LoadedPage
from firstflight.results import Journal
from firstflight.results.files import JOURNAL, write_profiles
from firstflight.text import plural


def run_experiment(
    plan: Plan,
    pages: Catalogue | Sequence[LoadedPage],
    workers: Workers,
    folder: Path,
    *,
    resume: bool = False,
    clients: dict[str, str] | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Runs `plan`, or its missing loads.

    Args:
        plan: What is measured.
        pages: The plan's pages.
        workers: They make the loads.
        folder: The results folder.
        resume: Whether to complete an experiment that is in the folder.
        clients: Version of each client, for `environment.json`.
        observer: Gets progress, notes and warnings.

    Raises:
        UsageError: The folder is not fit for this run; no load was made.
        LabError: The laboratory cannot be built, or failed `recorder.MAX_IN_A_ROW` times without a load in
            between.
        ExperimentError: The journal can no longer be written; what is in it remains.
    """
    observer = observer or Observer()
    pages = pages if isinstance(pages, Catalogue) else Catalogue.of(pages)
    planned = Schedule(plan, pages.names)
    with results_folder(folder, plan, resume=resume):
        check_pages_unchanged(folder, pages.fingerprints)
        write_profiles(folder, (page.page for page in pages))
        recorder = _recorder(plan, planned, folder, observer)
        rounds = Rounds(planned, recorder.state, plan.until)
        stopped_by = None
        try:
            with interruptible():
                calibrated = False
                for due in rounds:
                    if not calibrated and recorder.is_left(due.blocks):
                        bias_ms = _known_bias(folder, plan, clients or {}, observer)
                        calibrations = _calibrate(plan, workers, bias_ms, observer)
                        machines = workers.machines()
                        write_environment(folder, clients or {}, pages.fingerprints, calibrations, machines)
                        calibrated = True
                    _tell(due, min(recorder.state.settled, due.loads), observer)
                    workers.make(recorder.left(due.blocks), pages, recorder)
                    if recorder.is_left(due.blocks):
                        break  # What is due next depends on loads that are still to be made.
                _warn_of_wide(rounds, planned.most_repeats, plan, observer)
        except Interrupted as interrupted:
            stopped_by = interrupted.signal
        recorder.tell_made_again()
        return recorder.state.outcome(stopped_by, rounds.loads)


def _tell(due: Round, made: int, observer: Observer) -> None:
    observer.begin("loads", due.loads, made)
    cells = f"{plural(due.wide, 'cell')} still too wide: " if due.wide else ""
    before = f", {made} made already" if made else ""
    observer.note(f"{cells}{plural(due.loads, 'load')} planned{before}")


def _calibrate(
    plan: Plan, workers: Workers, bias_ms: dict[float, float], observer: Observer
) -> list[Calibration]:
    paths = plan.paths_of_all()
    observer.begin(f"calibrating {plural(len(paths), 'path')}")
    return workers.calibrate(paths, bias_ms, observer)


def _known_bias(folder: Path, plan: Plan, clients: dict[str, str], observer: Observer) -> dict[float, float]:
    """What the relay added to each RTT in the folder's first run, ms by RTT: all loads of a folder use it.

    Empty, with a warning, if that run was made on another system.
    """
    before = read_environment(folder)
    if found := changes(before, plan, clients):
        observer.warn(
            f"the loads so far were made on another system: {'; '.join(found)}",
            "loads before and after it are compared as if nothing had changed; "
            "better begin a new experiment with another --out",
        )
        return {}
    return bias_of(before)


def _warn_of_wide(rounds: Rounds, repeats: int, plan: Plan, observer: Observer) -> None:
    wide = rounds.too_wide()
    if wide:
        cells = ", ".join(f"{name} ({_width(width)})" for name, width in list(wide.items())[:3])
        more = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
        wanted = write_width(plan.until)
        observer.warn(
            f"after {plural(repeats, 'repeat')} intervals are wider than {wanted}: {cells}{more}",
            "the report shows what makes it noisy; continue with --resume and a larger --most-repeats",
        )


def _width(width: float | None) -> str:
    return "no interval" if width is None else f"{100 * width:.1f} %"


def _recorder(plan: Plan, planned: Schedule, folder: Path, observer: Observer) -> Recorder:
    journal = Journal(folder / JOURNAL)
    state = RunState(planned)
    for record in journal.lines():
        state.recall(record)
    return Recorder(journal, state, observer, planned, plan.keep)


@dataclass(frozen=True)
class Round:
    """The blocks to be made next.

    Attributes:
        blocks: Numbers of the blocks.
        loads: Loads of this round and all before it.
        wide: Groups of cells whose interval was too wide; 0 in the first round.
    """

    blocks: Sequence[int]
    loads: int
    wide: int


class Rounds:
    """The rounds of a run. Iterate, and complete each round before asking for the next.

    Args:
        schedule: What is planned.
        state: The loads that were made.
        until: Width of the interval, as in the plan.
    """

    def __init__(self, schedule: Schedule, state: RunState, until: float | Literal["off"]) -> None:
        self._schedule = schedule
        self._state = state
        self._until = until
        self._due: list[Sequence[int]] = []

    def __iter__(self) -> Iterator[Round]:
        first, *more = self._schedule.rounds
        self._due = [first]
        yield Round(first, self.loads, 0)
        for blocks in more:
            wide = self._wide(self._blocks())
            if not wide:
                return
            self._due.append([number for number in blocks if self._schedule.pair(number) in wide])
            yield Round(self._due[-1], self.loads, len(wide))

    @property
    def loads(self) -> int:
        """The number of loads in the rounds so far."""
        return sum(map(len, self._due)) * self._schedule.block_size

    def too_wide(self) -> dict[str, float | None]:
        """The groups of cells whose interval is still too wide, with its width; `None`: no interval."""
        blocks = self._blocks() if self._until != "off" else {}
        return {
            self._schedule.pair_name(pair): self._width(blocks[pair]) for pair in sorted(self._wide(blocks))
        }

    def _wide(self, blocks: dict[int, list[int]]) -> set[int]:
        widths = {pair: self._width(numbers) for pair, numbers in blocks.items()}
        return {
            pair
            for pair, width in widths.items()
            if not self._schedule.is_exact(pair) and (width is None or width > float(self._until))
        }

    def _blocks(self) -> dict[int, list[int]]:
        """The blocks of each group of cells in the rounds so far."""
        found: dict[int, list[int]] = {}
        for number in (number for blocks in self._due for number in blocks):
            found.setdefault(self._schedule.pair(number), []).append(number)
        return found

    def _width(self, blocks: Sequence[int]) -> float | None:
        """The width of the widest interval of a treatment's improvement over these blocks, a fraction."""
        plts_ms: dict[str, list[tuple[float, float]]] = {}
        for number in blocks:
            for treatment, pair in self._pairs(number):
                plts_ms.setdefault(treatment, []).append(pair)
        widths = [_width_of(plts_ms.get(name, [])) for name in self._schedule.treated]
        return None if None in widths else max(width for width in widths if width is not None)

    def _pairs(self, block: int) -> Iterator[tuple[str, tuple[float, float]]]:
        """PLT of the baseline and of each treatment of a block, where both loads ended ok."""
        loads = self._schedule[block].loads
        plt_ms = {load.treatment: self._state.plt_ms(load.order) for load in loads}
        baseline_ms = plt_ms.pop(loads[0].baseline)
        for treatment, treated_ms in plt_ms.items():
            if baseline_ms is not None and treated_ms is not None:
                yield treatment, (baseline_ms, treated_ms)


def _width_of(pairs: Sequence[tuple[float, float]]) -> float | None:
    found = improvement([baseline_ms for baseline_ms, _ in pairs], [treated_ms for _, treated_ms in pairs])
    return None if found["low"] is None or found["high"] is None else found["high"] - found["low"]
