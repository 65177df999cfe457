"""`firstflight doctor`: can this machine do it, and how well?"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstflight.cli.console import data_console
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.clients import installed_clients
from firstflight.engines.emulate import Check, Emulator
from firstflight.engines.engine import Measured
from firstflight.errors import LabError
from firstflight.experiment.calibrate import problems
from firstflight.model.path import Path, Queue

_PATH = Path("access", 20.0, 4_000_000, 256_000, Queue(packets=1000), loss=0.0)
"""Short enough for two seconds; the paper's rates."""


def command(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> int:
    """Check this machine.

    What firstflight needs, which clients are installed, and how accurate an emulated path is.
    """
    checks = [*_lab_checks(), *_client_checks()]
    healthy = all(check.ok for check in checks if check.needed)
    if as_json:
        show_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
    else:
        data_console().print(_table(checks))
        _say_hints(checks)
    return 0 if healthy else 1


def _lab_checks() -> Iterator[Check]:
    try:
        lab = Emulator()
        checks = lab.examine()
        yield from checks
        if all(check.ok for check in checks if check.needed):
            yield _calibration(lab)
    except LabError as error:
        yield Check("laboratory", ok=False, detail=error.message, hint=error.hint)


def _calibration(lab: Emulator) -> Check:
    calibration = lab.calibrate(_PATH)
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


def _say_hints(checks: list[Check]) -> None:
    talk = Talk()
    for check in checks:
        if not check.ok and check.needed:
            talk.error(f"{check.name}: {check.detail}", check.hint)
        elif not check.ok:
            talk.note(f"{check.name}: {check.hint}")
