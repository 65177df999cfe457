"""Makes the loads of a plan and journals each as it ends.

A load whose relay was late beyond the bound is made again, up to `MAX_ATTEMPTS` times in all; one whose
client broke, once. Each attempt is a journal line with its `attempt` number under the same load_id, and the
last one counts: `loads` holds exactly the planned loads, the journal everything that was made.

An instrument failure (the laboratory could not be built, or died) is a journal line of its own kind, never a
result: no load is settled by it. `MAX_IN_A_ROW` of them stop the run.

What is held in memory does not grow with the loads but by some bytes for each: blocks are laid out, and
pages opened, when their turn comes, and records go to the journal.
"""

from collections.abc import Sequence
from pathlib import Path

from firstflight.engines.engine import Calibration, Engine
from firstflight.experiment.attempts import MAX_ATTEMPTS
from firstflight.experiment.book import Book
from firstflight.experiment.catalogue import Catalogue
from firstflight.experiment.crew import Crew
from firstflight.experiment.environment import (
    bias_of,
    changes,
    check_pages_unchanged,
    read_environment,
    write_environment,
)
from firstflight.experiment.equipment import threads
from firstflight.experiment.folder import results_folder
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.rounds import Rounds
from firstflight.experiment.schedule import Schedule
from firstflight.experiment.tally import Outcome, Tally
from firstflight.experiment.watch import Watch
from firstflight.model.plan import Plan
from firstflight.model.units import write_width
from firstflight.pages import LoadedPage
from firstflight.results import Journal
from firstflight.results.files import JOURNAL
from firstflight.results.profiles import write_profiles

__all__ = ["MAX_ATTEMPTS", "Outcome", "run_experiment"]


def run_experiment(
    plan: Plan,
    pages: Catalogue | Sequence[LoadedPage],
    crew: Crew | Engine,
    folder: Path,
    *,
    resume: bool = False,
    clients: dict[str, str] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Runs `plan`, or what is missing of it.

    Args:
        plan: What is measured.
        pages: The plan's pages.
        crew: Makes the loads; an engine is used by threads of this process.
        folder: The results folder.
        resume: Whether to complete an experiment that the folder holds.
        clients: Version of each client, for `environment.json`.
        watch: Is told how the run goes.

    Raises:
        UsageError: The folder does not fit; nothing was started.
        LabError: The laboratory cannot be built, or failed `MAX_IN_A_ROW` times without a load in between.
        ExperimentError: The journal cannot be written any more; what was measured is kept.
    """
    watch = watch or Watch()
    pages = pages if isinstance(pages, Catalogue) else Catalogue.of(pages)
    crew = crew if isinstance(crew, Crew) else threads(plan, crew)
    planned = Schedule(plan, pages.names)
    with results_folder(folder, plan, resume=resume):
        check_pages_unchanged(folder, pages.fingerprints)
        write_profiles(folder, (page.page for page in pages))
        book = _book(plan, planned, folder, watch)
        rounds = Rounds(planned, book.tally, plan.until)
        stopped_by = None
        try:
            with interruptible():
                calibrated = False
                for due in rounds:
                    if not calibrated and book.is_left(due.blocks):
                        bias_ms = _known_bias(folder, plan, clients or {}, watch)
                        calibrations = _calibrate(plan, crew, bias_ms, watch)
                        machines = crew.machines()
                        write_environment(folder, clients or {}, pages.fingerprints, calibrations, machines)
                        calibrated = True
                    watch.starting(due.loads, min(book.tally.settled, due.loads), due.wide)
                    crew.make(book.left(due.blocks), pages, book)
                    if book.is_left(due.blocks):
                        break  # What is due next depends on loads that are still to be made.
                _warn_of_wide(rounds, planned.most_repeats, plan, watch)
        except Interrupted as interrupted:
            stopped_by = interrupted.signal
        return book.tally.outcome(stopped_by, rounds.loads)


def _calibrate(plan: Plan, crew: Crew, bias_ms: dict[float, float], watch: Watch) -> list[Calibration]:
    paths = plan.paths_of_all()
    watch.calibrating(len(paths))
    return crew.calibrate(paths, bias_ms, watch)


def _known_bias(folder: Path, plan: Plan, clients: dict[str, str], watch: Watch) -> dict[float, float]:
    """What the folder's first run found the relay to add, ms by RTT: all loads of a folder share it.

    Nothing on another system than that run's, which is warned of.
    """
    before = read_environment(folder)
    if found := changes(before, plan, clients):
        watch.warn(
            f"the loads so far were made on another system: {'; '.join(found)}",
            "loads before and after it are compared as if nothing had changed; "
            "better begin a new experiment with another --out",
        )
        return {}
    return bias_of(before)


def _warn_of_wide(rounds: Rounds, repeats: int, plan: Plan, watch: Watch) -> None:
    wide = rounds.too_wide()
    if wide:
        cells = ", ".join(f"{name} ({_width(width)})" for name, width in list(wide.items())[:3])
        more = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
        wanted = write_width(plan.until)
        watch.warn(
            f"after {repeats} repeats intervals are wider than {wanted}: {cells}{more}",
            "the report says what makes it noisy; to go on: --resume and a larger --most-repeats",
        )


def _width(width: float | None) -> str:
    return "no interval" if width is None else f"{100 * width:.1f} %"


def _book(plan: Plan, planned: Schedule, folder: Path, watch: Watch) -> Book:
    journal = Journal(folder / JOURNAL)
    tally = Tally(planned)
    for record in journal.lines():
        tally.recall(record)
    return Book(journal, tally, watch, planned, plan.keep)
