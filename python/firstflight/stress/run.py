"""Makes measurements cell by cell and writes each to a journal, from which a stopped run is resumed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from firstflight.engines.lab import Lab
from firstflight.errors import ExperimentError, UsageError
from firstflight.experiment.folder import ENVIRONMENT, describe_machine
from firstflight.observer import Observer
from firstflight.results import Journal, write_whole
from firstflight.results.files import left_before_the_plan, locked
from firstflight.results.journal import is_json
from firstflight.stress.plan import Cell, StressPlan, cells, check_installed, job, versions
from firstflight.stress.rows import Row, row

PLAN, JOURNAL = "stress.json", "stress.jsonl"

_FIRST_RATE, _MOST_DOUBLINGS, _STEPS = 500.0, 8, 4
_GRACE_S = 60.0


class Stress:
    """The measurements of a plan, in a results folder.

    Args:
        plan: What is measured.
        folder: The results folder.
        resume: Whether to keep the measurements in the folder and make only the missing ones.

    Raises:
        UsageError: A server is not installed, or the folder contains something else.
    """

    def __init__(self, plan: StressPlan, folder: Path, *, resume: bool = False) -> None:
        check_installed(plan.server)
        self._plan = plan
        self._folder = folder
        self._journal = Journal(folder / JOURNAL)
        self._lab = Lab()
        self._wanted = self._made = 0
        # First without the lock, so that a folder that is not ours stays unchanged.
        self._check(folder, resume=resume)
        with locked(folder):
            self._check(folder, resume=resume)
            write_whole(folder / PLAN, (plan.model_dump_json(indent=2) + "\n").encode())
            described = {**describe_machine(), "servers": versions(plan.server)}
            write_whole(folder / ENVIRONMENT, (json.dumps(described, indent=2) + "\n").encode())

    @property
    def rows(self) -> list[Row]:
        """Every measurement in the journal, even if a signal interrupted the run."""
        return list(dict(read_journal(self._journal.path)).values())

    def run(self, observer: Observer) -> None:
        """Makes every measurement that is not in the journal.

        Raises:
            LabError: The laboratory could not be built, or the server does not answer.
            UsageError: Another run has locked the folder, or it cannot be written to.
        """
        with locked(self._folder):
            self._run(observer)

    def _run(self, observer: Observer) -> None:
        if self._plan.rates:
            self._measure(list(cells(self._plan, self._plan.rates)), observer)
            return
        for rates in self._auto_rates():
            self._measure(list(cells(self._plan, rates)), observer)

    def _auto_rates(self) -> Iterator[Sequence[float]]:
        """Doubles the rate while a cell keeps up; then refines between rates where all do and none does."""
        tried = [_FIRST_RATE]
        yield tried
        while any(self._keep_up(tried[-1])) and len(tried) <= _MOST_DOUBLINGS:
            tried.append(2 * tried[-1])
            yield tried[-1:]
        low = max((rate for rate in tried if all(self._keep_up(rate))), default=0.0)
        step = (tried[-1] - low) / _STEPS
        yield [rate for number in range(1, _STEPS) if (rate := low + number * step) not in tried]

    def _keep_up(self, rate: float) -> list[bool]:
        """For every server and mode at a rate: whether most of its measurements kept up."""
        found: dict[tuple[str, str], list[bool]] = {}
        for measured in self.rows:
            if measured["rate"] == rate:
                found.setdefault((measured["server"], measured["mode"]), []).append(measured["keeps_up"])
        return [2 * sum(kept) > len(kept) for kept in found.values()]

    def _measure(self, wanted: list[Cell], observer: Observer) -> None:
        made = dict(read_journal(self._journal.path))
        missing = [cell for cell in wanted if cell.name not in made]
        self._wanted += len(missing)
        observer.begin("measurements", self._wanted, self._made)
        for cell in missing:
            found = row(self._plan, cell, self._ask(cell))
            self._append({"name": cell.name, "row": found})
            self._made += 1
            observer.advance()
            observer.remark(
                f"{cell.server} {cell.mode} {cell.rate:g}/s, flood {cell.flood}: "
                f"{100 * found['success']:.1f} % served"
            )

    def _ask(self, cell: Cell) -> Mapping[str, Any]:
        plan = self._plan
        limit_s = plan.warm_up + plan.seconds + 2 * plan.timeout + _GRACE_S
        answer: Row = self._lab.ask("stress", job(plan, cell), timeout_s=limit_s)
        return answer

    def _append(self, line: Mapping[str, object]) -> None:
        lines = [json.dumps(line, allow_nan=False).encode() + b"\n"]
        try:
            # In a thread: a signal reaches only the main thread, so that the write is completed.
            with ThreadPoolExecutor(max_workers=1) as writer:
                writer.submit(self._journal.append_lines, lines).result()
        except UsageError as error:
            hint = f"free some space, then go on: firstflight stress --resume --out {self._folder}"
            raise ExperimentError(error.message, hint) from error

    def _check(self, folder: Path, *, resume: bool) -> None:
        stored = folder / PLAN
        if not stored.is_file():
            if folder.is_dir() and not left_before_the_plan(folder):
                raise UsageError(f"out: {folder} is not empty", "name a new folder with --out")
            return
        if not resume:
            raise UsageError(
                f"out: {folder} holds measurements already", "add --resume to complete them, or name another"
            )
        if stored_plan(folder) != self._plan:
            raise UsageError(
                f"out: {folder} was begun with other flags", f"leave them out: --resume --out {folder}"
            )


def stored_plan(folder: Path) -> StressPlan:
    """The plan in a results folder.

    Raises:
        UsageError: There is none.
    """
    file = folder / PLAN
    try:
        return StressPlan.model_validate(json.loads(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"resume: {folder} holds no measurements of a server", "name the folder of the stopped run"
        ) from error


def read_journal(file: Path) -> Iterator[tuple[str, Row]]:
    """Every row by the name of its cell. Skips an incomplete last line, which a killed run leaves."""
    if not file.is_file():
        return
    for line in file.read_bytes().splitlines(keepends=True):
        if not (line.endswith(b"\n") or is_json(line)):
            return
        document = json.loads(line)
        yield document["name"], document["row"]
