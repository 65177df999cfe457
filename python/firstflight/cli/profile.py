"""`firstflight profile`: a page without its content, to be shared."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.plan_flags import complete_page
from firstflight.cli.talk import Talk
from firstflight.errors import UsageError
from firstflight.pages import open_pages
from firstflight.results import write_whole
from firstflight.text import plural


def command(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE", help="Archive, mirror, recording or profile.", autocompletion=complete_page
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE.json", help="Where to write the profile.")
    ],
) -> int:
    """Remove a page's content, so that it can be shared.

    The profile that is written holds URLs, sizes, types, times and dependencies.
    """
    opened = open_pages([page])
    if len(opened) != 1:
        raise UsageError(f"{page} holds {len(opened)} pages", "give one page at a time")
    write_whole(out, opened[0].page.to_json().encode())
    Talk().note(f"wrote {out}: {plural(len(opened[0].page.resources), 'resource')}")
    return 0
