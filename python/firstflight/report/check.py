"""``check.html`` and ``check.json``: the result of a check, on a page that needs no network and no script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from firstflight.deferred import jinja2
from firstflight.engines.check import Row
from firstflight.report.figures import theme
from firstflight.results import write_whole
from firstflight.text import visible_lines

_SIDES = {"client": "Client", "server": "Server", "both": "Client and server together"}


class CheckedServer(TypedDict):
    """The program that was checked in place of the kernel's own sockets."""

    command: str
    port: int


class CheckDocument(TypedDict):
    """The result of a check, as docs/check.md describes it."""

    kernel: str
    server: CheckedServer | None
    elapsed_s: float
    verdicts: dict[str, int]
    rows: list[Row]


def write_check(folder: Path, document: CheckDocument) -> None:
    """Writes both.

    Args:
        folder: Where; captures lie in its folder ``captures``.
        document: As docs/check.md describes it.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "check.json", text.encode() + b"\n")
    write_whole(folder / "check.html", render_check(document).encode())


def render_check(document: CheckDocument) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("firstflight.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible_lines(value) if type(value) is str else value,
    )
    sides = [
        (side, name, [row for row in document["rows"] if row["side"] == side])
        for side, name in _SIDES.items()
    ]
    return environment.get_template("check.html.j2").render(
        check=document, sides=[side for side in sides if side[2]], theme=theme
    )
