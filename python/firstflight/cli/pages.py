"""`firstflight pages`: shows properties of pages."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from firstflight.cli.console import data_console
from firstflight.cli.plan_flags import complete_page
from firstflight.cli.talk import Talk, show_json
from firstflight.pages import LoadedPage, embedded_names, open_pages
from firstflight.pages.corpus import PREFIX, installed, read_corpus


def command(
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAGE", help="Pages [the four embedded ones].", autocompletion=complete_page),
    ] = None,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus",
            help="List the embedded pages and those of the installed corpus, or of each corpus PAGE.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Show what pages consist of."""
    pages = _with_corpora(specs) if corpus else open_pages(specs or embedded_names())
    if as_json:
        show_json([_entry(page) for page in pages])
        return 0
    data_console().print(_table(pages))
    talk = Talk()
    for page in pages:
        for note in page.notes:
            talk.note(f"{page.page.name}: {note}")
    return 0


def _with_corpora(files: list[str] | None) -> list[LoadedPage]:
    """The embedded pages, then those of the corpora in `files`, or of the installed corpus."""
    if files:
        listed = [page for file in files for page in read_corpus(Path(file))]
    else:
        listed = [replace(page, name=f"{PREFIX}{page.name}") for page in read_corpus(installed())]
    return [*open_pages(embedded_names()), *map(LoadedPage, listed)]


def _entry(page: LoadedPage) -> dict[str, object]:
    return {
        "name": page.page.name,
        "url": page.page.url,
        **asdict(page.page.describe()),
        "has_bodies": bool(page.bodies),
        "notes": list(page.notes),
    }


def _table(pages: list[LoadedPage]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("page", no_wrap=True)
    for name in ("requests", "origins", "kB", "depth", "chain kB", "missing", "recorded", "inferred"):
        table.add_column(name, justify="right")
    table.add_column("biggest chain ends in")
    for page in pages:
        facts = page.page.describe()
        counts = (facts.requests, facts.origins, _kb(facts.wire_bytes), facts.depth, _kb(facts.chain_bytes))
        table.add_row(
            page.page.name,
            *map(str, counts),
            str(facts.missing),
            str(facts.recorded),
            str(facts.inferred),
            _short(facts.chain[-1]),
        )
    return table


def _short(url: str) -> str:
    bare = url.partition("?")[0].removeprefix("http://").removeprefix("https://")
    return bare if len(bare) <= 60 else f"{bare[:28]}...{bare[-29:]}"


def _kb(size: int) -> str:
    return f"{size / 1000:,.1f}"
