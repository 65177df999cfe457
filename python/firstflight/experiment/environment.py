"""`environment.json`: on what an experiment was made, and what its paths turned out to be."""

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from firstflight.engines.engine import Calibration
from firstflight.errors import UsageError
from firstflight.experiment.folder import ENVIRONMENT
from firstflight.model.plan import Plan
from firstflight.pages import Page
from firstflight.results import write_whole


def describe_machine() -> dict[str, Any]:
    """Kernel, CPU, and versions; nothing that names the machine or its user."""
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
    machines: Sequence[dict[str, Any]] = (),
) -> None:
    """Writes the file; a resumed run keeps what the runs before it wrote, under `earlier`.

    Args:
        folder: The results folder.
        clients: Version of each client that loads pages.
        pages: Fingerprint of each page by its name.
        calibrations: One per path.
        machines: Of a cluster's workers, each as `describe_machine` gives it.
    """
    before = read_environment(folder)
    earlier = [*before.pop("earlier", []), before] if before else []
    document = {
        **describe_machine(),
        "clients": clients,
        "pages": pages,
        "calibration": [calibration.to_json() for calibration in calibrations],
        **({"workers": list(machines)} if machines else {}),
        "earlier": earlier,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / ENVIRONMENT, text.encode())


def read_environment(folder: Path) -> dict[str, Any]:
    """What the folder's last run wrote; empty when there is none."""
    file = folder / ENVIRONMENT
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error}", "delete it: a run writes it again") from error
    if not isinstance(document, dict):
        raise UsageError(f"{file}: is not a JSON object", "delete it: a run writes it again")
    return document


def bias_of(before: dict[str, Any]) -> dict[float, float]:
    """What the relay adds to each RTT, ms by RTT in ms, as a run measured that wrote `before`."""
    found = ((one.get("path", {}).get("rtt_ms"), one.get("bias_ms")) for one in before.get("calibration", []))
    return {rtt_ms: bias_ms for rtt_ms, bias_ms in found if rtt_ms is not None and bias_ms is not None}


def changes(before: dict[str, Any], plan: Plan, clients: dict[str, str]) -> list[str]:
    """What a run that goes on does on another machine or with other programs than the run before it.

    Args:
        before: What that run wrote, from `read_environment`.
        plan: What is measured; on a virtual clock only the version of firstflight matters.
        clients: As for `write_environment`.
    """
    now = describe_machine()
    keys = ["firstflight"] if plan.engine == "simulate" else ["firstflight", "kernel", "cpu", "cores"]
    pairs = [(key, before.get(key), now[key]) for key in keys]
    known = before.get("clients", {})
    pairs += [(name, known.get(name), clients.get(name)) for name in plan.clients]
    return [f"{key} {old}, now {new}" for key, old, new in pairs if old and new and old != new]


def check_pages_unchanged(folder: Path, pages: dict[str, str]) -> None:
    """Raises `UsageError` when the pages are not what the folder's loads were made with."""
    hint = "restore the old pages, or start a new experiment with another --out"
    before = read_environment(folder).get("pages", {})
    for name, known in before.items():
        if pages.get(name) != known:
            raise UsageError(f"resume: the page {name} has changed since {folder} was begun", hint)
    for name in pages if before else ():
        if name not in before:
            raise UsageError(f"resume: the page {name} was not there when {folder} was begun", hint)


def fingerprint(page: Page) -> str:
    """Of a page's profile, so that a resumed run cannot mix two versions of a page."""
    return hashlib.sha256(page.to_json().encode()).hexdigest()[:16]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
