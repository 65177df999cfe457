"""`firstflight doctor`: whether this machine meets the requirements, how accurate it is, what is missing."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path as FilePath
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstflight.cli.console import data_console
from firstflight.cli.install import System, one_command
from firstflight.cli.last_error import last_error, without_names
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.clients import installed_clients
from firstflight.engines.emulate import Check, Emulator
from firstflight.engines.engine import Calibration, Measured
from firstflight.errors import LabError, UsageError
from firstflight.experiment.calibrate import problems
from firstflight.experiment.folder import describe_machine
from firstflight.model.path import Path, Queue
from firstflight.results.files import write_whole

_PATH = Path("access", 20.0, 4_000_000, 256_000, Queue(packets=1000), loss=0.0)
"""A path short enough for a calibration of two seconds, with the paper's rates."""

_REPORT_FORMAT = 1
_SETTINGS = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fastopen",
    "user/max_user_namespaces",
)


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    report: Annotated[
        FilePath | None,
        typer.Option(
            metavar="FILE",
            help="Write what a bug report needs, with nothing personal: versions, kernel, calibration, "
            "the last error.",
        ),
    ] = None,
) -> int:
    """Check this machine.

    What firstflight needs, which clients are installed, how accurate an emulated path is, and the one command
    that installs or enables what is missing.
    """
    if report:
        _check_writable(report)
    checks, calibration = _examine()
    healthy = all(check.ok for check in checks if check.needed)
    fix = one_command(checks, System.here())
    if as_json:
        show_json({"ok": healthy, "fix": fix, "checks": [asdict(check) for check in checks]})
    else:
        data_console().print(_table(checks))
        _say_hints(checks, fix)
    if report:
        document = _report(checks, fix, calibration)
        write_whole(report, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
        Talk().note(f"{report}: please read it, and attach it to the bug report")
    return 0 if healthy else 1


def _examine() -> tuple[list[Check], Calibration | None]:
    """All checks, and the calibration of a path, if one could be made."""
    checks: list[Check] = []
    calibration = None
    try:
        lab = Emulator()
        checks += lab.examine()
        if all(check.ok for check in checks if check.needed):
            calibration = lab.calibrate(_PATH)
            checks.append(_calibrated(calibration))
    except LabError as error:
        checks.append(Check("laboratory", ok=False, detail=error.message, hint=error.hint))
    return [*checks, *_client_checks()], calibration


def _calibrated(calibration: Calibration) -> Check:
    found = list(problems(calibration))
    hint = "stop other work on this machine, or make fewer loads at a time: --jobs 1" if found else ""
    return Check(
        "calibration",
        not found,
        "; ".join(found) or _measured(calibration.measured),
        hint,
        needed=False,
    )


def _measured(measured: Measured) -> str:
    rtt, down, up = measured["rtt_ms"], measured["down_mbps"], measured["up_mbps"]
    relay = measured["relay"]
    return (
        f"RTT {rtt['p50']:.2f} ms (expected {rtt['expected']:.2f}); Mbit/s down {down['measured']:.3g} "
        f"({down['expected']:.3g}), up {up['measured']:.3g} ({up['expected']:.3g}); "
        f"relay late by {relay['late_p99_ms']:.3f} ms (p99)"
    )


def _client_checks() -> Iterator[Check]:
    for client in installed_clients():
        detail = (
            f"{client.version or 'version unknown'} ({client.program})" if client.program else "not installed"
        )
        if client.lacks:
            detail += f"; the Python package {client.lacks} is missing"
        ok = bool(client.program) and not client.lacks
        yield Check(f"client {client.name}", ok, detail, client.hint, needed=client.name == "loader")


def _table(checks: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("check", "", "detail"):
        table.add_column(name, no_wrap=name != "detail")
    for check in checks:
        mark = ("ok", "green") if check.ok else ("missing", "red") if check.needed else ("not ok", "yellow")
        table.add_row(check.name, Text(*mark), check.detail)
    return table


def _say_hints(checks: list[Check], fix: str) -> None:
    talk = Talk()
    for check in checks:
        if not check.ok and check.needed:
            talk.error(f"{check.name}: {check.detail}", check.hint)
        elif not check.ok and check.hint:
            talk.note(f"{check.name}: {check.hint}")
    if fix:
        talk.note(f"in one command: {fix}")


def _report(checks: list[Check], fix: str, calibration: Calibration | None) -> object:
    """The contents of a bug report. Every text passes through `without_names`."""
    document = {
        "format": _REPORT_FORMAT,
        **describe_machine(),
        "system": _system_name(),
        "container": System.here().is_container,
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "settings": {name.replace("/", "."): _setting(name) for name in _SETTINGS},
        "packages": _packages(),
        "checks": [asdict(check) for check in checks],
        "fix": fix,
        "calibration": calibration.to_json() if calibration else None,
        "last_error": last_error(),
    }
    return _without_names(document)


def _without_names(value: object) -> object:
    if isinstance(value, str):
        return without_names(value)
    if isinstance(value, dict):
        return {key: _without_names(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_without_names(member) for member in value]
    return value


def _system_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return ""


def _setting(name: str) -> str | None:
    """A kernel setting; `None` if this kernel has none of that name."""
    try:
        return FilePath("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def _packages() -> dict[str, str]:
    """Versions of the installed libraries that firstflight requires, including those of its extras."""
    names = {requirement.partition(";")[0].strip() for requirement in requires("firstflight") or ()}
    found = {}
    for name in sorted(_library(name) for name in names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _library(requirement: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else " " for char in requirement).split()[0]


def _check_writable(file: FilePath) -> None:
    """Checks, before anything is measured, that the file can be written."""
    folder = file.absolute().parent
    is_other = file.exists() and (file.is_symlink() or not file.is_file())
    if is_other or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(
            f"report: {file} cannot be written",
            "name a file in a folder that exists and is yours, such as --report firstflight-report.json",
        )
