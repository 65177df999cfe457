"""The results folder of a run: made, checked, locked; or refused before anything starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from firstflight.errors import UsageError
from firstflight.experiment.plan_file import keep_trace, read_plan_file, resolve
from firstflight.model.path import TRACES_FOLDER
from firstflight.model.plan import Plan
from firstflight.results import write_whole
from firstflight.results.files import PLAN, left_before_the_plan, locked

ENVIRONMENT = "environment.json"


def default_folder() -> Path:
    """`results/<local time>`, such as `results/2025-03-01_14-05-09`."""
    return Path("results") / datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")


def stored_plan(folder: Path) -> Plan | None:
    """The plan a results folder was begun with; `None` when it holds none."""
    file = folder / PLAN
    return resolve({}, read_plan_file(file)) if file.is_file() else None


@contextmanager
def results_folder(folder: Path, plan: Plan, *, resume: bool) -> Iterator[None]:
    """Holds `folder` for a run of `plan`: made if need be, with the plan written into it.

    Args:
        folder: The results folder.
        plan: What the run measures.
        resume: Whether loads already in the folder are to be completed.

    Raises:
        UsageError: The folder cannot be written, holds another plan, holds this plan and `resume` is not set,
            is not a results folder, or another run holds it.
    """
    # Before the lock, so that a folder that is not ours is left as it is; again once no run can change it.
    _check(folder, plan, resume=resume)
    with locked(folder):
        _check(folder, plan, resume=resume)
        for way, trace in (("down", plan.down_trace), ("up", plan.up_trace)):
            keep_trace(folder, way, trace)
        write_whole(folder / PLAN, plan.to_toml().encode())
        yield


def _check(folder: Path, plan: Plan, *, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"out: {folder} is not a folder", "name another place with --out")
    stored = stored_plan(folder)
    if stored is None:
        _check_fresh(folder, resume=resume)
    elif not stored.measures_the_same_as(plan):
        changed = ", ".join(_differences(stored, plan))
        raise UsageError(
            f"out: {folder} holds an experiment with another plan (differs in: {changed})",
            "name another folder with --out, or leave out the flags to go on with its plan: --resume",
        )
    elif not resume:
        raise UsageError(
            f"out: {folder} holds this experiment already",
            "add --resume to complete it, or name another --out",
        )


def _check_fresh(folder: Path, *, resume: bool) -> None:
    if resume:
        raise UsageError(
            f"resume: {folder} holds no experiment", "name the folder of the stopped run with --out"
        )
    if folder.is_dir() and not left_before_the_plan(folder, [TRACES_FOLDER]):
        raise UsageError(
            f"out: {folder} is not empty and not a results folder", "name a new folder with --out"
        )


def _differences(stored: Plan, plan: Plan) -> list[str]:
    return [key for key in Plan.model_fields if key != "jobs" and getattr(stored, key) != getattr(plan, key)]
