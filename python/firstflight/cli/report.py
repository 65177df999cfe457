"""`firstflight report`: table, figures and report of a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.present import check_course_zip, present, present_course_zip
from firstflight.cli.talk import Talk


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say what each page load time was spent on.")
    ] = False,
    course_zip: Annotated[
        str | None,
        typer.Option("--course-zip", metavar="NAME", help="Also make NAME_p3.zip, to be handed in."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Make table, figures and report anew."""
    talk = Talk(quiet=quiet)
    if course_zip is not None:
        check_course_zip(folder, course_zip)
    present(folder, talk, as_json=as_json, explain=explain)
    if course_zip is not None:
        present_course_zip(folder, course_zip, talk, as_json=as_json)
    return 0
