"""Makes the loads of a plan and journals each as it ends.

A load whose relay was late beyond the bound is made again, up to `MAX_ATTEMPTS` times in all; one whose
client broke, once. Each attempt is a journal line with its `attempt` number under the same load_id, and the
last one counts: `loads` holds exactly the planned loads, the journal everything that was made.
"""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from firstflight.engines.emulate import LATE_BOUND_MS
from firstflight.engines.task import Engine, EngineStoppedError, PlannedLoad, Record
from firstflight.errors import ExperimentError, UsageError
from firstflight.experiment.calibrate import calibrate
from firstflight.experiment.environment import check_pages_unchanged, describe_pages, write_environment
from firstflight.experiment.folder import results_folder
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.plan import Plan
from firstflight.experiment.schedule import Block, schedule
from firstflight.experiment.slots import Slots
from firstflight.experiment.watch import Watch
from firstflight.pages import LoadedPage
from firstflight.results import Journal, LoadRecord
from firstflight.results.files import JOURNAL

_CORES_PER_LOAD = {"chromium": 2}
"""Clients that work rather than wait."""

MAX_ATTEMPTS = 3
"""How often a load is made at most while its relay is late."""

_LOOK_S = 0.25
"""How often the main thread wakes up: a signal that the system gave to another thread does not wake it."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        planned: Loads in the plan.
        made: Loads in the journal, those of earlier runs included.
        unproved: Of those made, loads whose proof does not hold.
        empty_cells: Cells (all repeats of a page, path and mode) with loads, but none that succeeded.
        signal: The signal that stopped the run; `None` when it came to its end.
    """

    planned: int
    made: int
    unproved: int
    empty_cells: int
    signal: int | None = None


def run_experiment(
    plan: Plan,
    pages: Sequence[LoadedPage],
    engine: Engine,
    folder: Path,
    *,
    resume: bool = False,
    clients: dict[str, str] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Runs `plan`, or what is missing of it.

    Args:
        plan: What is measured.
        pages: The plan's pages, opened.
        engine: Makes the loads.
        folder: The results folder.
        resume: Whether to complete an experiment that the folder holds.
        clients: Version of each client, for `environment.json`.
        watch: Is told how the run goes.

    Raises:
        UsageError: The folder does not fit; nothing was started.
        LabError: The laboratory cannot be built.
        ExperimentError: The journal cannot be written any more; what was measured is kept.
    """
    watch = watch or Watch()
    blocks = schedule(plan, _names(pages))
    fingerprints = describe_pages(pages)
    with results_folder(folder, plan, resume=resume):
        check_pages_unchanged(folder, fingerprints)
        journal = Journal(folder / JOURNAL)
        todo = _todo(blocks, journal.records())
        stopped_by = None
        try:
            with interruptible():
                if todo:
                    paths = plan.paths()
                    watch.calibrating(len(paths))
                    write_environment(folder, clients or {}, fingerprints, calibrate(engine, paths, watch))
                watch.starting(_count(blocks), _count(blocks) - _count(todo))
                _Crew(plan, pages, engine, journal, watch).make(todo)
        except Interrupted as interrupted:
            stopped_by = interrupted.signal
        return _outcome(_count(blocks), journal.records(), stopped_by)


class _Crew:
    """The threads that make loads, each block in one of them."""

    def __init__(
        self, plan: Plan, pages: Sequence[LoadedPage], engine: Engine, journal: Journal, watch: Watch
    ) -> None:
        self._pages = {page.page.name: page for page in pages}
        self._engine = engine
        self._journal = journal
        self._watch = watch
        self._slots = Slots(plan.jobs, LATE_BOUND_MS, cores_per_load=_CORES_PER_LOAD.get(plan.client, 0))
        self._attempts = {record["load"]["load_id"]: _attempt(record) for record in journal.records()}

    def make(self, blocks: Sequence[Block]) -> None:
        """Makes every load of `blocks`; on any error or interrupt stops all that is under way."""
        with ThreadPoolExecutor(self._slots.most, thread_name_prefix="load") as pool:
            try:
                left = {pool.submit(self._make_block, block) for block in blocks}
                while left:
                    done, left = wait(left, timeout=_LOOK_S, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self._slots.close()
                self._engine.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _make_block(self, block: Block) -> None:
        try:
            if self._slots.acquire():
                for planned in block.loads:
                    self._make_load(planned)
        except EngineStoppedError:
            return
        finally:
            self._slots.release()

    def _make_load(self, planned: PlannedLoad) -> None:
        for attempt in range(self._attempts.get(planned.load_id, 0) + 1, MAX_ATTEMPTS + 1):
            record: Record = {**self._engine.load(planned, self._pages[planned.page]), "attempt": attempt}
            self._keep(record)
            self._slots.note(record)
            settled = _settled(record)
            self._watch.made(record, settled=settled)
            if settled:
                return

    def _keep(self, record: Record) -> None:
        try:
            self._journal.append(record)
        except UsageError as error:
            hint = f"free some space, then go on: firstflight run --resume --out {self._journal.path.parent}"
            raise ExperimentError(error.message, hint) from error


def _names(pages: Sequence[LoadedPage]) -> list[str]:
    names = [page.page.name for page in pages]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"pages: two pages are called {name}", "rename one: the name stands in its profile"
            )
    return names


def _todo(blocks: Sequence[Block], records: Sequence[LoadRecord]) -> list[Block]:
    """What is missing: blocks with only those of their loads that no run has settled."""
    settled = {record["load"]["load_id"] for record in records if _settled(record)}
    left = (
        replace(block, loads=tuple(planned for planned in block.loads if planned.load_id not in settled))
        for block in blocks
    )
    return [block for block in left if block.loads]


def _settled(record: LoadRecord) -> bool:
    if cast(Record, record).get("broken"):
        return _attempt(record) > 1
    return not record["relay"].get("late") or _attempt(record) >= MAX_ATTEMPTS


def _attempt(record: LoadRecord) -> int:
    extra: dict[str, Any] = {**record}
    return int(extra.get("attempt", 1))


def _count(blocks: Sequence[Block]) -> int:
    return sum(len(block.loads) for block in blocks)


def _outcome(planned: int, records: Sequence[LoadRecord], stopped_by: int | None) -> Outcome:
    good = [record for record in records if record["load"]["status"] == "ok"]
    return Outcome(
        planned=planned,
        made=len(records),
        unproved=sum(record["proof"].get("ok") is False for record in records),
        empty_cells=len(_cells(records) - _cells(good)),
        signal=stopped_by,
    )


def _cells(records: Sequence[LoadRecord]) -> set[str]:
    """Load names without their repeat."""
    return {record["load"]["load_id"].rpartition("-")[0] for record in records}
