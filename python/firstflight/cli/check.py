"""`firstflight check`: does this kernel, or a server, do what RFC 7413 says?"""

import platform
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstflight.cli.console import data_console, progress
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.check import NOT_JUDGED, Checker, Row, Server
from firstflight.errors import UsageError
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.report.check import CheckDocument, write_check

_MARKS = {
    "holds": Text("holds", "green"),
    "deviates": Text("deviates", "yellow"),
    "not applicable": Text("not applicable", "dim"),
    NOT_JUDGED: Text("not judged", "red"),
}
_SUMMARY = {"holds": "hold", "deviates": "deviate"}
_OURS = {"check.html", "check.json", "captures"}
_HTTP = 80


def command(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(metavar="ROW ...", help="Rows, or how their names begin, such as R5; all without."),
    ] = None,
    *,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="'COMMAND ...'",
            help="A server program (HTTP) to examine instead of this kernel, restarted for each row.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="Where --server listens [80].", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Write check.html, check.json and the captures there."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, max=64, help="Rows to do at a time.")
    ] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")] = False,
) -> int:
    """Check RFC 7413, rule by rule, on the wire.

    Each row is an experiment of its own: this kernel's client or server, or a server program that you name,
    against a script that decides what its peer says. Ends with 0 when every row was judged, whatever the
    verdicts.
    """
    talk = Talk(quiet=quiet)
    examined = _server(server, port)
    _check_folder(out)
    checker = Checker()
    rows = _chosen(checker.rows(), wanted or [])
    if examined:
        checker.try_server(examined)
    captures = out / "captures" if out else None
    if captures:
        _make(captures)
    begun = time.monotonic()
    try:
        with interruptible():
            found = _watched(checker, rows, talk, server=examined, captures=captures, jobs=jobs)
    except Interrupted as stop:
        talk.error("stopped before every row was done", "name the rows you need: firstflight check R5")
        return 128 + stop.signal
    document = _document(found, examined, time.monotonic() - begun)
    if out:
        _write(out, document)
    if as_json:
        show_json(document)
    else:
        _show(document, out)
    return _end(found, talk)


def _server(command: str | None, port: int | None) -> Server | None:
    if port is not None and not 1 <= port <= 65_535:
        raise UsageError(f"port: {port} is no port", "use 1 to 65535")
    if command is None:
        if port is not None:
            raise UsageError("--port requires --server", "name its command with --server")
        return None
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"server: {command!r}: {error}", "quote it as for a shell") from error
    if not argv:
        raise UsageError("server: no command", "name a program, such as --server 'nginx -c site.conf'")
    if not shutil.which(argv[0]):
        raise UsageError(
            f"server: cannot find {argv[0]}",
            "name a program that is installed, or its path (/usr/sbin/nginx)",
        )
    return Server(argv, _HTTP if port is None else port)


def _chosen(rows: list[Row], wanted: list[str]) -> list[Row]:
    """Rows that are named, or begin as named: R1 is R1-grant and others, not R12-invalid."""
    for name in wanted:
        if not any(_fits(row["id"], name) for row in rows):
            known = ", ".join(row["id"] for row in rows)
            raise UsageError(f"{name}: there is no such row", f"rows: {known}")
    return [row for row in rows if not wanted or any(_fits(row["id"], name) for name in wanted)]


def _fits(row: str, name: str) -> bool:
    return row == name or row.startswith(f"{name}-")


def _check_folder(out: Path | None) -> None:
    if out and out.exists() and not out.is_dir():
        raise UsageError(f"out: {out} is not a folder", "name another place with --out")
    if out and out.is_dir() and {file.name for file in out.iterdir()} - _OURS:
        raise UsageError(
            f"out: {out} holds something else", "name an empty folder, or one of an earlier check"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.pcapng"):
            old.unlink()
    except OSError as error:
        raise UsageError(
            f"out: cannot write to {folder}: {error.strerror}", "name a folder you may write to with --out"
        ) from error


def _watched(
    checker: Checker,
    rows: Sequence[Row],
    talk: Talk,
    *,
    server: Server | None,
    captures: Path | None,
    jobs: int,
) -> list[Row]:
    with progress(talk) as shown:
        return checker.check(rows, server=server, captures=captures, jobs=jobs, observer=shown)


def _document(rows: list[Row], server: Server | None, elapsed_s: float) -> CheckDocument:
    counted = Counter(row["verdict"] for row in rows)
    return {
        "kernel": platform.release(),
        "server": {"command": shlex.join(server.argv), "port": server.port} if server else None,
        "elapsed_s": round(elapsed_s, 3),
        "verdicts": {verdict: counted[verdict] for verdict in _MARKS},
        "rows": rows,
    }


def _write(out: Path, document: CheckDocument) -> None:
    write_check(out, document)


def _show(document: CheckDocument, out: Path | None) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("row", "level", "§", "verdict", "seen"):
        table.add_column(name, no_wrap=name != "seen")
    for row in document["rows"]:
        mark = _MARKS[row["verdict"]]
        table.add_row(row["id"], row["level"], row["section"] or "-", mark, row["seen"])
    console = data_console()
    console.print(table)
    counts = ", ".join(
        f"{count} {_SUMMARY.get(verdict, verdict)}"
        for verdict, count in document["verdicts"].items()
        if count
    )
    examined = document["server"]["command"] if document["server"] else f"Linux {document['kernel']}"
    console.print(f"{examined}: {counts}; {document['elapsed_s']:.1f} s", style="bold")
    if out:
        console.print(f"report: {out / 'check.html'}", style="bold", soft_wrap=True)


def _end(rows: list[Row], talk: Talk) -> int:
    failed = [row for row in rows if row["verdict"] == NOT_JUDGED]
    for row in failed:
        talk.error(f"{row['id']}: {row['seen']}", row["hint"])
    return 1 if failed else 0
