"""`firstflight stress`: what clients cost a server, and how floods of SYNs affect the clients."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from firstflight.cli.console import data_console, progress
from firstflight.cli.plan_flags import with_flags_of
from firstflight.cli.talk import Talk, show_json
from firstflight.errors import UsageError
from firstflight.experiment.folder import default_folder
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.model.treatment import FAST_OPEN
from firstflight.model.units import explain
from firstflight.report.stress import print_stress, write_stress
from firstflight.stress import Stress, StressPlan
from firstflight.stress.rows import Row, savings
from firstflight.stress.run import stored_plan
from firstflight.text import plural


@with_flags_of(StressPlan)
def command(
    flags: Mapping[str, object],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Results folder [results/<time>].", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Make the measurements that are missing in --out.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Measure what clients cost a server, with and without TFO.

    Clients arrive at a constant rate, and each fetches one small object over HTTP/1.0. The rates go up to the
    server's limit. With --flood, SYNs flood the server at the same time. Everything runs in the laboratory,
    with the real kernel and real sockets.
    """
    talk = Talk(quiet=quiet)
    folder = out or default_folder()
    stress = Stress(_plan(flags, out, resume=resume), folder, resume=resume)
    stopped = _run(stress, talk)
    rows = stress.rows
    if rows:
        _present(rows, folder, as_json=as_json)
    return _end(rows, folder, stopped, talk)


def _plan(flags: Mapping[str, object], folder: Path | None, *, resume: bool) -> StressPlan:
    if resume and folder is None:
        raise UsageError("--resume requires --out DIR", "name their folder with --out")
    stored = stored_plan(folder).model_dump() if resume and folder else {}
    try:
        return StressPlan.model_validate({**stored, **flags})
    except ValidationError as error:
        key, problem, hint = explain(error, StressPlan.model_fields)
        raise UsageError(f"{key.replace('_', '-')}: {problem}" if key else problem, hint) from error


def _run(stress: Stress, talk: Talk) -> int:
    """Makes the measurements; returns the signal that stopped it, or 0."""
    try:
        with interruptible(), progress(talk) as shown:
            stress.run(shown)
    except Interrupted as interrupted:
        return interrupted.signal
    return 0


def _present(rows: list[Row], folder: Path, *, as_json: bool) -> None:
    console = data_console()
    if as_json:
        show_json({"folder": str(folder), "savings": savings(rows), "measurements": rows})
    else:
        print_stress(rows, console)
    figures = write_stress(folder, rows)
    if as_json:
        return
    for what, file in (("rows:   ", folder / "stress.csv"), *(("figure: ", file) for file in figures)):
        console.print(f"{what} {file}", style="bold", soft_wrap=True)


def _end(rows: list[Row], folder: Path, stopped: int, talk: Talk) -> int:
    if stopped:
        name = signal.Signals(stopped).name
        talk.error(f"stopped by {name}", f"continue with: firstflight stress --resume --out {folder}")
        return 128 + stopped
    if not all(row["own_core"] for row in rows):
        talk.warn(
            "clients and server shared one processor", "processor times are valid, the highest rate is not"
        )
    for server in _without_fast_open(rows):
        talk.warn(
            f"{server} accepted no data in any SYN: it does not offer Fast Open",
            "let it listen with TCP_FASTOPEN, as nginx does with fastopen=",
        )
    unproved = [row for row in rows if not row["proof"]]
    if unproved:
        talk.error(
            f"without proof: {plural(len(unproved), 'measurement')}: {unproved[0]['disagreements']}",
            "try again",
        )
    return 1 if unproved else 0


def _without_fast_open(rows: list[Row]) -> list[str]:
    """Servers at which Fast Open was tried without a flood and never worked."""
    tried = [row for row in rows if row["mode"] == FAST_OPEN and row["flood"] == "none"]
    worked = {row["server"] for row in tried if row["fast_open_passive"]}
    return [server for server in dict.fromkeys(row["server"] for row in tried) if server not in worked]
