"""`firstflight run`: runs an experiment, from pages to table and figures."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.console import progress
from firstflight.cli.plan_flags import with_plan_flags
from firstflight.cli.report import figure_forms, present
from firstflight.cli.talk import Talk
from firstflight.errors import ExperimentError, LabError, UsageError
from firstflight.experiment.catalogue import read_catalogue
from firstflight.experiment.folder import default_folder, stored_plan
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.plan_file import PlanFile, read_plan, resolve
from firstflight.experiment.recorder import Outcome, Problem
from firstflight.experiment.run import run_experiment
from firstflight.experiment.setup import EngineSetup, page_check, workers_for
from firstflight.model.plan import Plan
from firstflight.results.files import JOURNAL
from firstflight.text import plural

_WITHOUT_LABORATORY = "simulate: --engine simulate needs no laboratory; it predicts instead of measuring"


@with_plan_flags
def command(
    plan_flags: Mapping[str, object],
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="NAME|FILE.toml",
            help="Plan to start from: paper, course or a file; flags override it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Results folder [results/<time>].", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Make the loads that are missing in --out.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="Make the loads on a Dask cluster [this machine]."
        ),
    ] = "",
    no_browser_sandbox: Annotated[
        bool,
        typer.Option(
            "--no-browser-sandbox",
            help="Run Chromium without its own sandbox. Only for pages that you trust. A plan cannot set it.",
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print what each page load spent its time on.")
    ] = False,
    figures: Annotated[
        str,
        typer.Option(
            "--figures",
            metavar="FORM,...",
            help="Also write the figures as files: svg, png, pdf [only the report has them].",
            show_default=False,
        ),
    ] = "off",
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Load pages with and without TFO, and compare.

    Without PAGE: the paper's experiment, on the four embedded pages.
    """
    talk = Talk(quiet=quiet)
    folder = out or default_folder()
    forms = figure_forms(figures)
    wanted = _plan(plan_flags, plan, out, resume=resume)
    setup = EngineSetup.of(wanted, folder, browser_sandbox=not no_browser_sandbox)
    try:
        with interruptible():
            outcome = _measure(wanted, setup, folder, scheduler, talk, resume=resume)
            if outcome.made:
                present(folder, talk, as_json=as_json, explain=explain, forms=forms)
    except Interrupted as stop:
        return _end_early(stop.signal, folder, talk)
    return _end(outcome, folder, talk)


def _plan(flags: Mapping[str, object], file: Path | None, out: Path | None, *, resume: bool) -> Plan:
    """Flags over `--plan`; with `--resume` and without `--plan`, over the plan in the folder."""
    if resume and out is None:
        raise UsageError("--resume requires --out DIR", "name its results folder with --out")
    if file:
        return resolve(flags, read_plan(file))
    stored = stored_plan(out) if resume and out else None
    if stored is None:
        return resolve(flags)
    return resolve(flags, PlanFile(values=stored.to_keys()))


def _measure(
    plan: Plan, setup: EngineSetup, folder: Path, scheduler: str, talk: Talk, *, resume: bool
) -> Outcome:
    versions = setup.versions()
    try:
        with workers_for(plan, setup, scheduler, talk.warn) as workers:
            pages = read_catalogue(plan, talk, page_check(plan, setup, scheduler))
            with progress(talk) as shown:
                return run_experiment(
                    plan, pages, workers, folder, resume=resume, clients=versions, observer=shown
                )
    except ExperimentError as error:
        if (folder / JOURNAL).is_file():
            talk.note(f"what was measured is in {folder}; make its report with: firstflight report {folder}")
        elif isinstance(error, LabError) and plan.engine == "emulate":
            raise LabError(error.message, f"{error.hint}; or {_WITHOUT_LABORATORY}") from error
        raise


def _end_early(number: int, folder: Path, talk: Talk) -> int:
    """Reports a signal before or after the loads. During the loads a signal is part of the outcome."""
    hint = f"continue with: firstflight run --resume --out {folder}" if (folder / JOURNAL).is_file() else ""
    talk.error(f"stopped by {signal.Signals(number).name} before the report was written", hint)
    return 128 + number


def _end(outcome: Outcome, folder: Path, talk: Talk) -> int:
    """Prints what went wrong, and returns the exit code."""
    if outcome.signal is not None:
        name = signal.Signals(outcome.signal).name
        talk.error(
            f"stopped by {name} with {outcome.made} of {plural(outcome.planned, 'load')} made",
            f"continue with: firstflight run --resume --out {folder}",
        )
        return 128 + outcome.signal
    hints: dict[Problem, str] = {
        "left": f"continue with: firstflight run --resume --out {folder}",
        "unproved": f"see proof in {folder / JOURNAL}",
        "empty_cells": "try: firstflight doctor",
    }
    problems = outcome.problems()
    for problem, line in problems.items():
        talk.error(line, hints[problem])
    return 1 if problems else 0
