"""`firstflight exec`: runs any program inside a laboratory."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.plan_flags import complete_page, with_path_flags
from firstflight.cli.talk import Talk
from firstflight.engines.exec import ExecRecord, Surroundings, run_inside
from firstflight.errors import UsageError
from firstflight.experiment.plan_file import PlanFile, resolve
from firstflight.model.treatment import FAST_OPEN, MODES
from firstflight.pages import Deviation, LoadedPage, open_pages, under, was_cleared
from firstflight.results import check_writable, write_whole
from firstflight.text import plural

_DEFAULTS = {"rtt": "100", "mode": FAST_OPEN}
"""Defaults for keys of which a plan may have several values and this command needs one."""

_PORTS = "FIRSTFLIGHT_PRELOAD_PORTS"


@with_path_flags(_DEFAULTS)
def command(
    path_flags: Mapping[str, object],
    argv: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND ...", help="The program and its arguments.")
    ],
    *,
    pages: Annotated[
        list[str] | None,
        typer.Option(
            "--pages",
            metavar="PAGE",
            help="A page to serve; repeatable.",
            autocompletion=complete_page,
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(
            "--capture", metavar="FILE.pcapng", help="Capture every packet; kept in memory until the end."
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the ledger as a JSON document.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No summary; warnings and errors stay.")] = False,
) -> int:
    """Run a program inside the laboratory.

    Its packets cross the path, and its TCP connections use TFO as --mode says. Over the network it reaches
    only the pages' servers and the laboratory's own services. Sockets of the host (D-Bus,
    Docker, X11, agents) are hidden from it. Your files, environment and terminal are not. exec prints a
    summary on stderr and ends with the program's exit code.
    """
    talk = Talk(quiet=quiet)
    surroundings = _surroundings(path_flags, pages or [], capture, talk)
    _check_ports(os.environ.get(_PORTS, ""))
    for file in filter(None, (capture, record)):
        check_writable(file)
    ledger = run_inside(surroundings, argv)
    if record:
        write_whole(record, json.dumps(ledger, indent=2, ensure_ascii=False).encode() + b"\n")
    _say(ledger, argv[0], surroundings.mode, talk)
    return ledger["exit_code"]


def _say(ledger: ExecRecord, program: str, mode: str, talk: Talk) -> None:
    if ledger["error"]:
        talk.error(ledger["error"], "name a program that is installed, or its path")
    else:
        _say_summary(ledger, Path(program).name, mode, talk)


def _surroundings(
    flags: Mapping[str, object], pages: list[str], capture: Path | None, talk: Talk
) -> Surroundings:
    plan = resolve(flags, PlanFile(values=dict(_DEFAULTS)))
    for key in ("rtt", "down", "up", "mode", "cookies"):
        if len(getattr(plan, key)) > 1:
            raise UsageError(
                f"{key}: exec takes one value",
                f"give it with --{key}, or measure several with firstflight run",
            )
    [(path, cookies)], [mode] = plan.settings(), plan.mode
    if MODES[mode].sessions and cookies not in {"warm", "cold"}:
        raise UsageError(
            f"cookies: exec cannot bring a program's tickets into the state {cookies}", "use warm or cold"
        )
    return Surroundings(
        path,
        mode,
        cookies,
        plan.keep_alive,
        plan.seed,
        plan.scheme,
        pages=_open(pages, plan.scheme, talk) if pages else (),
        capture=capture,
        transport=plan.transport,
        ip=plan.ip,
    )


def _open(pages: list[str], scheme: str, talk: Talk) -> list[LoadedPage]:
    recorded = open_pages(pages)
    if cleared := [page.page.name for page in recorded if was_cleared(scheme, page)]:
        talk.warn(Deviation.CLEARED.warning(cleared))
    return [under(scheme, page) for page in recorded]


def _check_ports(text: str) -> None:
    """Checks the ports here, since the preloaded library ignores invalid ones without a message."""
    for word in filter(None, text.split(",")):
        if not (re.fullmatch(r"\d{1,5}", word.strip(), re.ASCII) and int(word) < 65_536):
            raise UsageError(f"{_PORTS}: {word!r} is not a port", "write ports with commas, such as 80,443")


_NAMED = 5
"""How many unmatched requests are printed; the record has all of them."""


def _say_summary(record: ExecRecord, program: str, mode: str, talk: Talk) -> None:
    """Prints what crossed the wire, and reasons to doubt it.

    Args:
        record: From `engines.exec.run_inside`.
        program: Name of the program.
        mode: The mode of transport that the load was checked against.
        talk: Prints it; a quiet one prints only warnings.
    """
    for line in _lines(record, program):
        talk.note(line)
    _say_unmatched(record, talk)
    proof, relay = record["proof"], record["relay"]
    if not proof["ok"]:
        about = "no proof" if MODES[mode].secure else "the witnesses of TFO disagree"
        talk.warn(f"{about}: {'; '.join(proof['disagreements'])}")
    if relay["late"]:
        talk.warn(
            f"the relay sent packets up to {relay['late_max_ms']:.1f} ms late",
            "stop other work on this machine",
        )


def _lines(record: ExecRecord, program: str) -> Iterator[str]:
    seconds = record["elapsed_ms"] / 1000
    yield f"{program}: exit code {record['exit_code']} after {seconds:.2f} s"
    opened = len(record["connections"])
    yield (
        f"connections: {opened}; data in the SYN: {record['tfo_offered']} offered, "
        f"{record['tfo_accepted']} accepted{_witnesses(record)}"
    )
    yield (
        f"bytes: {record['bytes_down']:,} down, {record['bytes_up']:,} up; "
        f"segments retransmitted: {record['retransmits']}"
    )
    if record["requests"]:
        yield f"requests answered from the pages: {record['requests']}"


def _witnesses(record: ExecRecord) -> str:
    agree = record["connections"] and record["proof"]["ok"]
    return " (ledger, servers' sockets and kernel counters agree)" if agree else ""


def _say_unmatched(record: ExecRecord, talk: Talk) -> None:
    unmatched = record["unmatched_requests"]
    if not unmatched:
        return
    names = record["unmatched"][:_NAMED]
    more = f", and {unmatched - len(names)} more" if unmatched > len(names) else ""
    talk.warn(
        f"no page answers {plural(unmatched, 'request')}: {', '.join(names)}{more}",
        "name the page that has it with --pages; firstflight pages shows what a page consists of",
    )
