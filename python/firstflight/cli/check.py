"""`firstflight check`: whether this kernel, or a server, follows RFC 7413."""

import platform
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstflight.cli.console import data_console, progress
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.check import (
    NOT_JUDGED,
    Checker,
    IpVersion,
    Remote,
    Row,
    Server,
    must_deviate,
)
from firstflight.errors import UsageError
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.report.check import (
    FORMAT,
    CheckDocument,
    count_levels,
    count_verdicts,
    examined_name,
    write_check,
)
from firstflight.report.conformance import as_junit, as_tap
from firstflight.results import check_writable, write_whole
from firstflight.text import plural

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
        typer.Argument(
            metavar="ROW ...",
            help="Rows to check: full names, or what comes before the hyphen, such as R5 [all].",
        ),
    ] = None,
    *,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="ROW,...", help="More rows to check, separated by commas."),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Only list the rows: all, or those named.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="'COMMAND ...'",
            help="An HTTP server program to check instead of this kernel; restarted for each row.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", help="The port that --server listens on [80].", show_default=False
        ),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            "--connect",
            metavar="HOST:PORT",
            help="An HTTP server that you may test, over the network; only rows without raw packets.",
        ),
    ] = None,
    ip: Annotated[
        str | None,
        typer.Option(
            "--ip",
            metavar="4|6",
            help="IP version [4; with --connect that of HOST's address].",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Write check.html, check.json and the captures there."),
    ] = None,
    tap: Annotated[
        Path | None, typer.Option("--tap", metavar="FILE", help="Write the result as TAP, version 14.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write the result as JUnit XML.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, max=64, help="Rows to check at a time.")
    ] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")] = False,
) -> int:
    """Check RFC 7413, rule by rule, on the wire.

    Each row is a separate experiment. It checks this kernel's client or server, or a server program that you
    name, against a peer that follows a script. The exit code is 0 if every row was judged and no MUST
    deviates, otherwise 1.
    """
    talk = Talk(quiet=quiet)
    version = _version(ip)
    names = [*(wanted or []), *_split(only)]
    if show_list:
        return _list(
            _chosen(Checker().rows(), names), server or connect, out or tap or junit, as_json=as_json
        )
    examined = _examined(server, port, connect, version)
    _check_folder(out)
    for flag, file in (("tap", tap), ("junit", junit)):
        _check_file(flag, file)
    checker = Checker(version or "4")
    rows = _chosen(checker.rows(), names)
    if isinstance(examined, Remote):
        rows = _without_raw_packets(rows, names)
    if examined:
        checker.try_server(examined)
    captures = out / "captures" if out and not isinstance(examined, Remote) else None
    if captures:
        _make(captures)
    begun = time.monotonic()
    try:
        with interruptible():
            found = _watched(checker, rows, talk, server=examined, captures=captures, jobs=jobs)
    except Interrupted as stop:
        talk.error("stopped before every row was checked", "name the rows you need: firstflight check R5")
        return 128 + stop.signal
    document = _document(found, examined, version or "4", time.monotonic() - begun)
    if out:
        write_check(out, document)
    if tap:
        write_whole(tap, as_tap(document).encode())
    if junit:
        write_whole(junit, as_junit(document))
    if as_json:
        show_json(document)
    else:
        _show(document, out)
    return _end(found, talk)


def _version(ip: str | None) -> IpVersion | None:
    match ip:
        case None | "4" | "6":
            return ip
        case _:
            raise UsageError(f"ip: {ip!r} is not a version of IP", "use --ip 4 or --ip 6")


def _split(only: str | None) -> list[str]:
    if only is None:
        return []
    names = [name.strip() for name in only.split(",")]
    if not all(names):
        raise UsageError(f"only: {only!r} has a comma too many", "write --only R1,R10-limit, for example")
    return names


def _examined(
    server: str | None, port: int | None, connect: str | None, ip: IpVersion | None
) -> Server | Remote | None:
    if connect is None:
        return _server(server, port)
    if server is not None:
        raise UsageError("--server and --connect name two servers", "give one of them")
    if port is not None:
        raise UsageError("--port requires --server", "give the port behind a colon: --connect HOST:PORT")
    return Remote.named(connect, ip)


def _server(command: str | None, port: int | None) -> Server | None:
    if port is not None and not 1 <= port <= 65_535:
        raise UsageError(f"port: {port} is not a port", "use 1 to 65535")
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
    """Rows with a given name or name prefix: R1 is R1-grant and others, but not R12-invalid."""
    for name in wanted:
        if not any(_fits(row["id"], name) for row in rows):
            known = ", ".join(row["id"] for row in rows)
            raise UsageError(f"{name}: there is no such row", f"rows: {known}")
    return [row for row in rows if not wanted or any(_fits(row["id"], name) for name in wanted)]


def _without_raw_packets(rows: list[Row], names: Sequence[str]) -> list[Row]:
    """Rows for a server on another machine. Raises `UsageError` if a name matches none of them."""
    able = [row for row in rows if row["remote"]]
    for name in names:
        if not any(_fits(row["id"], name) for row in able):
            raise UsageError(
                f"{name} needs raw packets, which --connect does not send",
                "--list says which rows --connect can do; --server does all, with a local program",
            )
    return able


def _list(rows: list[Row], examined: str | None, output: Path | None, *, as_json: bool) -> int:
    if examined or output:
        raise UsageError("--list examines nothing and writes no file", "leave it out, or the other flags")
    if as_json:
        show_json({"format": FORMAT, "rows": rows})
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("row", "§", "level", "side", "--connect", "expected behaviour"):
        table.add_column(name, no_wrap=name != "expected behaviour")
    for row in rows:
        remote = "yes" if row["remote"] else "-"
        table.add_row(row["id"], row["section"] or "-", row["level"], row["side"], remote, row["behaviour"])
    data_console().print(table)
    return 0


def _fits(row: str, name: str) -> bool:
    return row == name or row.startswith(f"{name}-")


def _check_folder(out: Path | None) -> None:
    if out and out.exists() and not out.is_dir():
        raise UsageError(f"out: {out} is not a folder", "name another place with --out")
    if out and out.is_dir() and {file.name for file in out.iterdir()} - _OURS:
        raise UsageError(
            f"out: {out} holds something else", "name an empty folder, or one of an earlier check"
        )


def _check_file(flag: str, file: Path | None) -> None:
    if file and (file.is_dir() or not file.parent.is_dir()):
        problem = "is a folder" if file.is_dir() else f"is in {file.parent}, which is not a folder"
        raise UsageError(f"{flag}: {file} {problem}", f"name a file in a folder that exists with --{flag}")
    if file:
        check_writable(file)


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
    server: Server | Remote | None,
    captures: Path | None,
    jobs: int,
) -> list[Row]:
    with progress(talk) as shown:
        return checker.check(rows, server=server, captures=captures, jobs=jobs, observer=shown)


def _document(
    rows: list[Row], examined: Server | Remote | None, ip: IpVersion, elapsed_s: float
) -> CheckDocument:
    server = remote = None
    match examined:
        case Server():
            server = examined
        case Remote():
            remote = examined
    return {
        "format": FORMAT,
        "kernel": platform.release(),
        "ip": remote.ip if remote else ip,
        "server": {"command": shlex.join(server.argv), "port": server.port} if server else None,
        "connect": {"host": remote.host, "port": remote.port, "address": remote.address} if remote else None,
        "elapsed_s": round(elapsed_s, 3),
        "verdicts": count_verdicts(rows),
        "levels": count_levels(rows),
        "rows": rows,
    }


def _show(document: CheckDocument, out: Path | None) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("row", "level", "§", "verdict", "seen"):
        table.add_column(name, no_wrap=name != "seen")
    for row in document["rows"]:
        mark = _MARKS[row["verdict"]]
        table.add_row(row["id"], row["level"], row["section"] or "-", mark, row["seen"])
    console = data_console()
    console.print(table)
    counts = _in_words(document["verdicts"])
    console.print(f"{examined_name(document)}: {counts}; {document['elapsed_s']:.1f} s", style="bold")
    for level, verdicts in document["levels"].items():
        if any(verdicts.values()):
            console.print(f"  {level}: {_in_words(verdicts)}")
    if out:
        console.print(f"report: {out / 'check.html'}", style="bold", soft_wrap=True)


def _in_words(verdicts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{count} {_SUMMARY.get(verdict, verdict)}" for verdict, count in verdicts.items() if count
    )


def _end(rows: list[Row], talk: Talk) -> int:
    unjudged = [row for row in rows if row["verdict"] == NOT_JUDGED]
    for row in unjudged:
        talk.error(f"{row['id']}: {row['seen']}", row["hint"])
    deviating = [row["id"] for row in rows if must_deviate(row)]
    if deviating:
        talk.error(
            f"a MUST or MUST NOT deviates in {plural(len(deviating), 'row')}: {', '.join(deviating)}",
            "the column `seen` says what happened instead",
        )
    return 1 if unjudged or deviating else 0
