"""Shows what a results folder says: tables, figures and report into the folder, the table to stdout."""

import json
from pathlib import Path

from firstflight.cli.talk import Talk, data_console, show_json
from firstflight.errors import UsageError
from firstflight.experiment.folder import stored_plan


def present(folder: Path, talk: Talk, *, as_json: bool, explain: bool = False) -> None:
    """Writes tables, figures and report, then prints the summary and where the figures lie.

    Args:
        folder: The results folder.
        talk: Is told what is being written.
        as_json: Prints one JSON document instead of the table.
        explain: Also shows what each page load time was spent on.
    """
    if is_sweep(folder):
        if explain:
            talk.warn(
                "nothing can be explained: the run kept the rows of its loads, not their requests",
                "run it again with --keep all",
            )
        _present_sweep(folder, talk, as_json=as_json)
        return
    # Here, since scipy and altair take a second or two to import, which no other command should wait for.
    from firstflight.analysis.explanation import explain_folder  # noqa: PLC0415
    from firstflight.report import print_explanations, print_summary, write_report  # noqa: PLC0415

    write_report(folder, progress=lambda part: talk.note(f"writing {part}"))
    summary = json.loads((folder / "summary.json").read_bytes())
    explanations = explain_folder(folder) if explain else []
    if as_json:
        explained = {"explanations": [found.to_json() for found in explanations]} if explain else {}
        show_json({"folder": str(folder), **summary, **explained})
        return
    console = data_console()
    print_summary(summary, console)
    print_explanations(explanations, console)
    console.print(
        f"figures: {folder / 'figures'}",
        f"report:  {folder / 'report.html'}",
        sep="\n",
        style="bold",
        soft_wrap=True,
    )


def check_course_zip(folder: Path, name: str) -> None:
    """Refuses, before anything is made, what cannot become an archive for the course.

    Raises:
        UsageError: The name will not do, the archive is there already, or the run kept its loads only.
    """
    from firstflight.report.course_zip import course_zip_path  # noqa: PLC0415

    course_zip_path(folder, name)
    if is_sweep(folder):
        raise UsageError(
            f"course-zip: {folder} has the rows of its loads only, and no requests to draw",
            'run again with keep = "all" in the plan (--keep all)',
        )


def present_course_zip(folder: Path, name: str, talk: Talk, *, as_json: bool) -> None:
    """Writes the archive for the course, and prints where it lies."""
    from firstflight.report.course_zip import write_course_zip  # noqa: PLC0415

    *_, path = write_course_zip(folder, name, progress=lambda part: talk.note(f"writing {part}"))
    if not as_json:
        data_console().print(f"course:  {path}", style="bold", soft_wrap=True)


def check_pdf(folder: Path) -> None:
    """Refuses, before anything is made, to print where there will be no report.

    Raises:
        UsageError: The run kept its loads only.
    """
    if is_sweep(folder):
        raise UsageError(f'{folder}: a run with keep = "loads" has no report to print', "leave --pdf out")


def present_pdf(folder: Path, browser: Path, talk: Talk, *, sandbox: bool, as_json: bool) -> None:
    """Prints the report to a PDF, and where that lies.

    Raises:
        UsageError: The browser cannot print it.
    """
    from firstflight.report.pdf import write_pdf  # noqa: PLC0415

    talk.note("printing the report")
    path = write_pdf(folder, browser, sandbox=sandbox)
    if not as_json:
        data_console().print(f"pdf:     {path}", style="bold", soft_wrap=True)


def is_sweep(folder: Path) -> bool:
    """Whether the run kept its loads only: there is nothing to draw a load from."""
    plan = stored_plan(folder)
    return plan is not None and plan.keep == "loads"


def _present_sweep(folder: Path, talk: Talk, *, as_json: bool) -> None:
    from firstflight.analysis.sweep import summarize_sweep  # noqa: PLC0415
    from firstflight.report.sweep import draw_sweep, print_sweep  # noqa: PLC0415

    talk.note("writing tables")
    sweep = summarize_sweep(folder)
    talk.note("writing figure")
    figures = draw_sweep(folder, sweep)
    if as_json:
        show_json({"folder": str(folder), **sweep})
        return
    console = data_console()
    print_sweep(sweep, console)
    for what, file in (("cells:  ", folder / "cells.parquet"), *(("figure: ", file) for file in figures)):
        console.print(f"{what} {file}", style="bold", soft_wrap=True)
