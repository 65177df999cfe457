"""`firstflight report`: table, figures and report of a results folder."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.present import present
from firstflight.cli.talk import Talk


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say what each page load time was spent on.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")] = False,
) -> int:
    """Make table, figures and report anew."""
    present(folder, Talk(quiet=quiet), as_json=as_json, explain=explain)
    return 0
