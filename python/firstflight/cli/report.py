"""`firstflight report`: table, figures and report of a results folder.

Other commands that make a results folder use the same functions: the table goes to stdout, then tables,
figures and report are written into the folder.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from firstflight.analysis.summary import Measured, read_measured
from firstflight.analysis.words import is_of_fast_open
from firstflight.cli.console import data_console, progress
from firstflight.cli.talk import Talk, show_json
from firstflight.course.handin import course_zip_path, write_course_zip
from firstflight.engines.clients.chromium.browser import check_sandbox, find_browser
from firstflight.errors import UsageError
from firstflight.experiment.folder import stored_plan
from firstflight.report.console import print_explanations, print_summary
from firstflight.report.side_by_side import beside, print_beside
from firstflight.report.sweep import draw_sweep, print_sweep, write_sweep
from firstflight.report.write import write_figures, write_pdf, write_report


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of a run.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print what each page load spent its time on.")
    ] = False,
    figures: Annotated[
        str,
        typer.Option("--figures", metavar="FORM,...", help="Formats of the figures: svg, png, pdf; or off."),
    ] = "svg,png",
    course_zip: Annotated[
        str | None,
        typer.Option("--course-zip", metavar="NAME", help="Also make NAME_p3.zip, the archive to hand in."),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print the report to report.pdf, with Chromium.")
    ] = False,
    browser: Annotated[
        str,
        typer.Option(
            "--browser", metavar="PATH", help="The browser that prints the PDF [the system's Chromium]."
        ),
    ] = "",
    no_browser_sandbox: Annotated[
        bool,
        typer.Option(
            "--no-browser-sandbox",
            help="Run Chromium without its own sandbox. Only for reports that you trust.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Rewrite table, figures and report of a results folder."""
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


FORMS = ("svg", "png", "pdf")
"""The file types of figures."""


def figure_forms(text: str) -> tuple[str, ...]:
    """Parses the value of `--figures`: file types separated by commas; `off` is none.

    Raises:
        UsageError: One of them is unknown.
    """
    words = () if text == "off" else tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words:
        if word not in FORMS:
            raise UsageError(f'figures: "{word}" is not a figure format', f"use {', '.join(FORMS)}, or off")
    return words


def present(
    folder: Path, talk: Talk, *, as_json: bool, explain: bool = False, forms: Sequence[str] = ()
) -> None:
    """Prints the summary; then writes tables, report and figures, and prints their paths.

    Args:
        folder: The results folder.
        talk: Is told what is being written.
        as_json: Prints one JSON document instead of the table.
        explain: Also shows what each page load time was spent on.
        forms: File types of the figures, of `FORMS`; the report has figures of its own.
    """
    if is_sweep(folder):
        if explain:
            talk.warn(
                "cannot explain: the run kept the rows of its loads, but not their requests",
                "run it again with --keep all",
            )
        _present_sweep(folder, talk, as_json=as_json)
        return
    measured, console = read_measured(folder), data_console()
    explanations = measured.explanations if explain else []
    if as_json:
        explained = {"explanations": [found.to_json() for found in explanations]} if explain else {}
        show_json({"folder": str(folder), **measured.summary, **explained})
    else:
        print_summary(measured.summary, console)
        _print_beside(measured, explain=explain, console=console)
        print_explanations(explanations, console)
    with progress(talk) as shown:
        shown.begin("report")
        write_report(measured)
        if forms:
            shown.begin("figures")
            write_figures(measured, forms, shown.remark)
    if as_json:
        return
    figures = [f"figures: {folder / 'figures'}"] if forms else []
    console.print(*figures, f"report:  {folder / 'report.html'}", sep="\n", style="bold", soft_wrap=True)


def _print_beside(measured: Measured, *, explain: bool, console: Console) -> None:
    """Prints both sides of comparisons other than the paper's, and critical paths of versions of a page."""
    cells = measured.summary["cells"]
    if any(map(is_of_fast_open, cells)):
        return
    has_versions = any("version" in cell["differs"] for cell in cells)
    explanations = measured.evidence.explanations if explain or has_versions else []
    print_beside(beside(measured.pairs, cells, explanations), console)


def check_course_zip(folder: Path, name: str) -> None:
    """Refuses, before anything is made, a folder or name from which the course's archive cannot be made.

    Raises:
        UsageError: The name is invalid, the archive exists already, or the run kept only its loads.
    """
    course_zip_path(folder, name)
    if is_sweep(folder):
        raise UsageError(
            f"course-zip: {folder} has only the rows of its loads, and no requests to draw",
            'run again with keep = "all" in the plan (--keep all)',
        )


def present_course_zip(folder: Path, name: str, talk: Talk, *, as_json: bool) -> None:
    """Writes the archive for the course, and prints its path."""
    with progress(talk) as shown:
        shown.begin("archive for the course")
        *_, path = write_course_zip(folder, name, progress=shown.remark)
    if not as_json:
        data_console().print(f"course:  {path}", style="bold", soft_wrap=True)


def check_pdf(folder: Path) -> None:
    """Refuses, before anything is made, to print a report that will not exist.

    Raises:
        UsageError: The run kept only its loads.
    """
    if is_sweep(folder):
        raise UsageError(f'{folder}: a run with keep = "loads" has no report to print', "leave --pdf out")


def present_pdf(folder: Path, browser: Path, talk: Talk, *, sandbox: bool, as_json: bool) -> None:
    """Prints the report to a PDF, and prints the PDF's path.

    Raises:
        UsageError: The browser cannot print it.
    """
    with progress(talk) as shown:
        shown.begin("printing the report")
        path = write_pdf(folder, browser, sandbox=sandbox)
    if not as_json:
        data_console().print(f"pdf:     {path}", style="bold", soft_wrap=True)


def is_sweep(folder: Path) -> bool:
    """Whether the run kept only its loads, without requests and connections."""
    plan = stored_plan(folder)
    return plan is not None and plan.keep == "loads"


def _present_sweep(folder: Path, talk: Talk, *, as_json: bool) -> None:
    with progress(talk) as shown:
        shown.begin("tables")
        sweep = write_sweep(folder)
    console = data_console()
    if as_json:
        show_json({"folder": str(folder), **sweep})
    else:
        print_sweep(sweep, console)
    with progress(talk) as shown:
        shown.begin("figure")
        figures = draw_sweep(folder, sweep)
    if as_json:
        return
    for what, file in (("cells:  ", folder / "cells.parquet"), *(("figure: ", file) for file in figures)):
        console.print(f"{what} {file}", style="bold", soft_wrap=True)
