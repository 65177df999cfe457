"""``check.html`` and ``check.json``: the result of a check; the page needs no network and no script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from firstflight.deferred import jinja2
from firstflight.engines.check import DEVIATES, STRENGTHS, VERDICTS, Row, Strength
from firstflight.report.figures import theme
from firstflight.results import write_whole
from firstflight.text import visible_lines

FORMAT = "firstflight-check/2"
"""The value of `format` in `check.json`; version 1 had neither this key nor counts by level."""

_SIDES = {"client": "Client", "server": "Server", "both": "Client and server together"}


class CheckedServer(TypedDict):
    """A server program that was checked instead of the kernel's own sockets."""

    command: str
    port: int


class CheckedRemote(TypedDict):
    """A server that was checked over the network."""

    host: str
    port: int
    address: str


class CheckDocument(TypedDict):
    """The result of a check, as docs/check.md describes it."""

    format: str
    kernel: str
    ip: str
    server: CheckedServer | None
    connect: CheckedRemote | None
    elapsed_s: float
    verdicts: dict[str, int]
    levels: dict[Strength, dict[str, int]]
    rows: list[Row]


def count_verdicts(rows: Sequence[Row]) -> dict[str, int]:
    """The number of rows with each verdict."""
    counted = Counter(row["verdict"] for row in rows)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def count_levels(rows: Sequence[Row]) -> dict[Strength, dict[str, int]]:
    """The number of rows with each verdict, by strength: MUST, SHOULD, described, Linux."""
    levels = dict.fromkeys(STRENGTHS.values())
    return {
        level: count_verdicts([row for row in rows if STRENGTHS[row["level"]] == level]) for level in levels
    }


def examined_name(document: CheckDocument) -> str:
    """The name of what was checked, for a heading."""
    if remote := document["connect"]:
        return f"{remote['host']} port {remote['port']} ({remote['address']})"
    if server := document["server"]:
        return server["command"]
    return f"Linux {document['kernel']}"


def write_check(folder: Path, document: CheckDocument) -> None:
    """Writes both files.

    Args:
        folder: The folder for the files; captures are in its folder ``captures``.
        document: The result, in the form of docs/check.md.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "check.json", text.encode() + b"\n")
    write_whole(folder / "check.html", render_check(document).encode())


def render_check(document: CheckDocument) -> str:
    """The HTML page."""
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
    deviating = {
        level: [
            row["id"]
            for row in document["rows"]
            if STRENGTHS[row["level"]] == level and row["verdict"] == DEVIATES
        ]
        for level in document["levels"]
    }
    return environment.get_template("check.html.j2").render(
        check=document,
        examined=examined_name(document),
        sides=[side for side in sides if side[2]],
        deviating=deviating,
        theme=theme,
    )
