"""Creates, checks and locks the results folder of a run before the first load; writes `environment.json`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict, cast

from firstflight.engines.engine import Calibration, CalibrationRow
from firstflight.errors import UsageError
from firstflight.experiment.plan_file import keep_trace, read_plan_file, resolve
from firstflight.model.path import TRACES_FOLDER
from firstflight.model.plan import Plan
from firstflight.results import write_whole
from firstflight.results.files import PLAN, left_before_the_plan, locked

ENVIRONMENT = "environment.json"


def default_folder() -> Path:
    """`results/<local time>`, such as `results/2025-03-01_14-05-09`; if it exists, with `-2` and so on."""
    name = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    names = (name, *(f"{name}-{number}" for number in range(2, 100)))
    return next(
        (path for each in names if not (path := Path("results", each)).exists()), Path("results", name)
    )


def stored_plan(folder: Path) -> Plan | None:
    """The plan in a results folder; `None` when the folder has none."""
    file = folder / PLAN
    return resolve({}, read_plan_file(file)) if file.is_file() else None


@contextmanager
def results_folder(folder: Path, plan: Plan, *, resume: bool) -> Iterator[None]:
    """Locks `folder` for a run of `plan`; creates it if needed and writes the plan into it.

    Args:
        folder: The results folder.
        plan: What the run measures.
        resume: Whether loads already in the folder are to be completed.

    Raises:
        UsageError: The folder cannot be written, contains another plan, contains this plan and `resume` is
            not set, is not a results folder, or another run has locked it.
    """
    # First without the lock, so that a folder that is not ours stays unchanged; then again under the lock.
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
            "name another folder with --out, or leave out the flags to continue with its plan: --resume",
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


class Machine(TypedDict, total=False):
    """The machine of a run, or of a worker of a cluster."""

    started_at: str
    firstflight: str
    kernel: str
    machine: str
    cpu: str
    cores: int
    python: str


class Environment(Machine, total=False):
    """`environment.json`. A file of another version may lack any key."""

    clients: dict[str, str]
    pages: dict[str, str]
    calibration: list[CalibrationRow]
    workers: list[Machine]
    earlier: list[Environment]


def describe_machine() -> Machine:
    """Kernel, CPU and versions; nothing that identifies the machine or its user."""
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "firstflight": version("firstflight"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }


def write_environment(
    folder: Path,
    clients: dict[str, str],
    pages: dict[str, str],
    calibrations: Sequence[Calibration],
    machines: Sequence[Machine] = (),
) -> None:
    """Writes `environment.json`. In a resumed run it keeps the earlier contents under `earlier`.

    Args:
        folder: The results folder.
        clients: Version of each client that loads pages.
        pages: Fingerprint of each page by its name.
        calibrations: One per path.
        machines: Of a cluster's workers, each as `describe_machine` gives it.
    """
    before = read_environment(folder)
    earlier = [*before.pop("earlier", []), before] if before else []
    document: Environment = {
        "clients": clients,
        "pages": pages,
        "calibration": [calibration.to_json() for calibration in calibrations],
    }
    if machines:
        document["workers"] = list(machines)
    document["earlier"] = earlier
    text = json.dumps({**describe_machine(), **document}, indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / ENVIRONMENT, text.encode())


def read_environment(folder: Path) -> Environment:
    """The `environment.json` of the folder's last run; empty when there is none."""
    file = folder / ENVIRONMENT
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}", "delete it: a run writes it again") from error
    if not isinstance(document, dict):
        raise UsageError(f"{file}: is not a JSON object", "delete it: a run writes it again")
    return cast(Environment, document)


def bias_of(before: Environment) -> dict[float, float]:
    """What the relay added to each RTT, ms by RTT in ms, as the run that wrote `before` measured it."""
    known: dict[float, float] = {}
    for one in before.get("calibration", []):
        path, bias_ms = one.get("path"), one.get("bias_ms")
        rtt_ms = path.get("rtt_ms") if path else None
        if isinstance(rtt_ms, int | float) and bias_ms is not None:
            known[rtt_ms] = bias_ms
    return known


def changes(before: Environment, plan: Plan, clients: dict[str, str]) -> list[str]:
    """Describes how machine and programs differ from those of the run that is resumed.

    Args:
        before: What that run wrote, from `read_environment`.
        plan: What is measured; on a virtual clock only the version of firstflight matters.
        clients: As for `write_environment`.
    """
    now = describe_machine()
    keys = ["firstflight"] if plan.engine == "simulate" else ["firstflight", "kernel", "cpu", "cores"]
    was, found = cast(Mapping[str, object], before), cast(Mapping[str, object], now)
    pairs = [(key, was.get(key), found[key]) for key in keys]
    known = before.get("clients", {})
    pairs += [(name, known.get(name), clients.get(name)) for name in plan.clients]
    return [f"{key} {old}, now {new}" for key, old, new in pairs if old and new and old != new]


def check_pages_unchanged(folder: Path, pages: dict[str, str]) -> None:
    """Raises `UsageError` when pages differ from those that the folder's loads were made with."""
    hint = "restore the old pages, or start a new experiment with another --out"
    before = read_environment(folder).get("pages", {})
    for name, known in before.items():
        if pages.get(name) != known:
            raise UsageError(f"resume: the page {name} has changed since {folder} was begun", hint)
    for name in pages if before else ():
        if name not in before:
            raise UsageError(f"resume: the page {name} was not there when {folder} was begun", hint)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
