"""`firstflight report`: table, figures and report of a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.present import (
    check_course_zip,
    check_pdf,
    figure_forms,
    present,
    present_course_zip,
    present_pdf,
)
from firstflight.cli.talk import Talk
from firstflight.engines.clients.chromium.browser import check_sandbox, find_browser


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of a run.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print where the time of each page load went.")
    ] = False,
    figures: Annotated[
        str,
        typer.Option("--figures", metavar="FORM,...", help="Draw the figures as svg, png, pdf; or off."),
    ] = "svg,png",
    course_zip: Annotated[
        str | None,
        typer.Option("--course-zip", metavar="NAME", help="Also make NAME_p3.zip, to be handed in."),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print the report to report.pdf, with Chromium.")
    ] = False,
    browser: Annotated[
        str,
        typer.Option("--browser", metavar="PATH", help="The browser that prints [the system's Chromium]."),
    ] = "",
    no_browser_sandbox: Annotated[
        bool,
        typer.Option(
            "--no-browser-sandbox",
            help="Let Chromium run without its own sandbox. For reports that you trust.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Write table, figures and report of a results folder again."""
    talk = Talk(quiet=quiet)
    forms = figure_forms(figures)
    if course_zip is not None:
        check_course_zip(folder, course_zip)
    if pdf:
        check_pdf(folder)
    printer = find_browser(browser) if pdf else None
    if printer:
        check_sandbox(not no_browser_sandbox, talk.warn)
    present(folder, talk, as_json=as_json, explain=explain, forms=forms)
    if printer:
        present_pdf(folder, printer, talk, sandbox=not no_browser_sandbox, as_json=as_json)
    if course_zip is not None:
        present_course_zip(folder, course_zip, talk, as_json=as_json)
    return 0
