"""`firstflight prove`: whether a program uses Fast Open, early data or 0-RTT, and if not, why."""

import platform
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from firstflight.analysis.first_flights import (
    Conditions,
    Finding,
    Mechanism,
    judge_server,
    judge_visit,
)
from firstflight.cli.console import data_console
from firstflight.cli.plan_flags import PATH_AND_COOKIES, with_path_flags
from firstflight.cli.talk import Talk, show_json
from firstflight.engines.prove import COOKIES, ProvedServer, Surroundings, filled, prove, prove_server
from firstflight.errors import LabError, UsageError
from firstflight.experiment.interrupt import Interrupted, interruptible
from firstflight.experiment.plan_file import PlanFile, resolve
from firstflight.model.path import Path as NetworkPath
from firstflight.results import check_writable
from firstflight.results.first_flights import Flight, Opening, ProveFacts, ServerFacts, Visit
from firstflight.text import plural

FORMAT = "firstflight-prove/1"
"""The `format` of the document that `--json` prints."""

_DEFAULTS = {"rtt": "100", "down": "unlimited", "up": "unlimited", "cookies": "warm"}
_PLANNED = {**_DEFAULTS, "mode": "tfo+early-data"}
"""The servers offer everything. States of tickets exist only in a mode with early data."""
_SYSCTL = Path("/proc/sys/net/ipv4/tcp_fastopen")
_NAME = re.compile(
    r"(?=.{1,253}$)(?!\d+(\.\d+){3}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
_OF_SERVERS = ("rtt", "middlebox")
"""The keys of a path that apply to a server."""


@with_path_flags(_DEFAULTS, PATH_AND_COOKIES)
def command(
    path_flags: Mapping[str, object],
    argv: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND ...", help="The program and its arguments.")
    ],
    *,
    server: Annotated[
        bool,
        typer.Option("--server", help="COMMAND is a server that listens on --port; firstflight visits it."),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="The port that --server listens on.", show_default=False),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="auto|plain|tls", help="The protocol that --server speaks.")
    ] = "auto",
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="NAME", help="Another host name to serve, on ports 80 and 443; repeatable."
        ),
    ] = None,
    sysctl: Annotated[
        int | None,
        typer.Option(
            "--sysctl",
            metavar="N",
            help="net.ipv4.tcp_fastopen where COMMAND runs [1, Linux's default; 3 with --server].",
            show_default=False,
        ),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            "--expect",
            metavar="tfo,early-data,0rtt",
            help="Exit with 1 unless every connection that could use these features used them.",
        ),
    ] = "",
    limit: Annotated[
        float, typer.Option("--time-limit", metavar="S", min=0.1, max=600, help="Time limit of a visit, s.")
    ] = 30.0,
    linger: Annotated[
        float,
        typer.Option(
            "--linger", metavar="S", min=0, max=600, help="How long processes may run after COMMAND ended, s."
        ),
    ] = 2.0,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FILE.pcapng", help="Keep every packet.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes; warnings and errors stay.")] = False,
) -> int:
    """Prove what a program's first flights carry, or explain why they carry nothing.

    Runs COMMAND twice against servers of the laboratory: HTTP, TLS 1.3 with tickets and early data, HTTP/3,
    DNS over TCP, all with Fast Open. In COMMAND, {http} and {https} are replaced by a URL, {dns} by address
    and port. The first visit obtains cookies and tickets; prove judges the second. The exit code is 1 if the
    program failed or opened no connection.
    """
    talk = Talk(quiet=quiet)
    path, cookies, ip, seed = _path(path_flags)
    wanted = _expected(expect)
    _check_command(argv)
    _check_side(path_flags, port, protocol, capture, server=server)
    if server:
        return _prove_server(
            ProvedServer(
                argv,
                _port(port),
                (host or ["server.test"])[0],
                path,
                3 if sysctl is None else _bits(sysctl),
                _speaks_tls(protocol),
            ),
            wanted,
            talk,
            as_json=as_json,
        )
    if capture:
        check_writable(capture)
    around = Surroundings(
        path,
        cookies,
        1 if sysctl is None else _bits(sysctl),
        _hosts(host or []),
        limit,
        linger,
        ip,
        seed,
        capture,
    )
    try:
        with interruptible():
            facts = prove(around, argv)
    except Interrupted as stop:
        return _stopped(stop, talk)
    return _end(facts, around, argv, wanted, talk, as_json=as_json)


def _check_side(
    path_flags: Mapping[str, object], port: int | None, protocol: str, capture: Path | None, *, server: bool
) -> None:
    """Refuses flags that apply only to the other kind of program, client or server."""
    if not server:
        for flag, is_given in {"port": port is not None, "protocol": protocol != "auto"}.items():
            if is_given:
                raise UsageError(f"--{flag} requires --server", "without --server COMMAND is a client")
        return
    given = [key.replace("_", "-") for key in path_flags if key not in _OF_SERVERS]
    for flag in [*given, *(["capture"] if capture else [])]:
        raise UsageError(f"--{flag} has no effect with --server", "its path has --rtt and --middlebox")


def _stopped(stop: Interrupted, talk: Talk) -> int:
    talk.error("stopped before both visits had ended", "limit the time of a visit with --time-limit")
    return 128 + stop.signal


def _path(flags: Mapping[str, object]) -> tuple[NetworkPath, str, str, int]:
    plan = resolve(flags, PlanFile(values=dict(_PLANNED)))
    for key in ("rtt", "down", "up", "cookies"):
        if len(getattr(plan, key)) > 1:
            raise UsageError(f"{key}: prove takes one value", f"give it with --{key}")
    [(path, cookies)] = plan.settings()
    if cookies not in COOKIES:
        raise UsageError(
            f"cookies: prove cannot bring a program's tickets into the state {cookies}",
            f"use {', '.join(COOKIES)}",
        )
    return path, cookies, plan.ip, plan.seed


def _expected(text: str) -> list[Mechanism]:
    try:
        return [Mechanism(word.strip()) for word in text.split(",") if word.strip()]
    except ValueError as error:
        raise UsageError(f"expect: {error}", "name tfo, early-data or 0rtt, with commas between") from error


def _check_command(argv: Sequence[str]) -> None:
    if not shutil.which(argv[0]):
        raise UsageError(
            f"cannot find {argv[0]}", "name a program that is installed, or its path (/usr/sbin/nginx)"
        )


def _port(port: int | None) -> int:
    if port is None:
        raise UsageError(
            "--server requires --port", "name where the server listens: --server --port 8080 -- COMMAND"
        )
    if not 1 <= port <= 65_535:
        raise UsageError(f"port: {port} is not a port", "use 1 to 65535")
    return port


def _speaks_tls(protocol: str) -> bool | None:
    words = {"auto": None, "plain": False, "tls": True}
    if protocol not in words:
        raise UsageError(f"protocol: {protocol!r} is not known", "use auto, plain or tls")
    return words[protocol]


def _bits(sysctl: int) -> int:
    if not 0 <= sysctl <= 0x7FFF:
        raise UsageError(
            f"sysctl: {sysctl} is out of range", "0 is off, 1 for clients, 2 for servers, 3 for both"
        )
    return sysctl


def _hosts(names: Sequence[str]) -> list[str]:
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"host: {name!r} is not a name that a server can have",
                "give a name alone, such as api.example.com",
            )
    return list(dict.fromkeys(names))


def _end(
    facts: ProveFacts,
    around: Surroundings,
    argv: Sequence[str],
    wanted: Sequence[Mechanism],
    talk: Talk,
    *,
    as_json: bool,
) -> int:
    visits = facts["visits"]
    if error := visits[0]["error"]:
        raise LabError(error, "name a program that is installed and may be run, or its path")
    findings = judge_visit(facts["flights"], visits, Conditions(around.sysctl, around.cookies))
    judged = max((flight["visit"] for flight in facts["flights"]), default=0)
    of_judged = [
        finding
        for flight, found in zip(facts["flights"], findings, strict=True)
        if flight["visit"] == judged
        for finding in found
    ]
    unmet = _unmet(of_judged, wanted)
    if as_json:
        show_json(_document(facts, findings, judged, around, argv=argv, unmet=unmet))
    elif judged:
        _show(facts, findings, judged)
    _warn(facts, judged, argv[0], around, talk)
    for mechanism in unmet:
        talk.error(
            f"expected {mechanism.value}: not every connection that could use it did",
            "the table has the reasons",
        )
    failed = (
        not judged or bool(unmet) or any(visit["exit_code"] and not visit["timed_out"] for visit in visits)
    )
    return int(failed)


def _unmet(findings: Sequence[Finding], wanted: Sequence[Mechanism]) -> list[Mechanism]:
    """Expected mechanisms that no connection could use, or that not every connection used."""
    used = {
        mechanism: [found.used for found in findings if found.mechanism is mechanism] for mechanism in wanted
    }
    return [mechanism for mechanism, all_of_them in used.items() if not (all_of_them and all(all_of_them))]


def _document(
    facts: ProveFacts,
    findings: Sequence[Sequence[Finding]],
    judged: int,
    around: Surroundings,
    *,
    argv: Sequence[str],
    unmet: Sequence[Mechanism],
) -> dict[str, object]:
    return {
        "format": FORMAT,
        "command": list(argv),
        "run": filled(argv, around.ip),
        "kernel": platform.release(),
        "conditions": {
            "rtt_ms": around.path.rtt_ms,
            "ip": around.ip,
            "middlebox": str(around.path.middlebox) if around.path.middlebox else None,
            "cookies": around.cookies,
            "sysctl": around.sysctl,
            "host_sysctl": _host_sysctl(),
        },
        "judged_visit": judged or None,
        "unmet": [mechanism.value for mechanism in unmet],
        "connections": [
            {**flight, "findings": [finding.to_json() for finding in found]}
            for flight, found in zip(facts["flights"], findings, strict=True)
        ],
        "visits": facts["visits"],
        "proof": facts["proof"],
    }


def _host_sysctl() -> int | None:
    try:
        return int(_SYSCTL.read_text())
    except (OSError, ValueError):
        return None


def _show(facts: ProveFacts, findings: Sequence[Sequence[Finding]], judged: int) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("visit", "destination", "first flight", "of", "", "reason"):
        table.add_column(name, no_wrap=name != "first flight")
    for flight, found in zip(facts["flights"], findings, strict=True):
        for number, finding in enumerate(found):
            ahead = (
                (str(flight["visit"]), flight["origin"], _first_flight(flight))
                if number == 0
                else ("", "", "")
            )
            table.add_row(*ahead, finding.mechanism.value, _mark(finding), finding.reason.value)
    console = data_console()
    console.print(table)
    _show_reasons(
        [
            finding
            for flight, found in zip(facts["flights"], findings, strict=True)
            if flight["visit"] == judged
            for finding in found
        ],
        judged,
    )


def _show_reasons(findings: Sequence[Finding], visit: int | None) -> None:
    """Prints each reason once, with what to do about it."""
    console = data_console()
    console.print(f"\nvisit {visit}:" if visit else "", style="bold")
    said: dict[tuple[str, str], int] = {}
    for finding in findings:
        said[finding.reason.value, finding.detail] = said.get((finding.reason.value, finding.detail), 0) + 1
    for finding in findings:
        key = (finding.reason.value, finding.detail)
        if key not in said:
            continue
        times = said.pop(key)
        more = f" ({times} connections)" if times > 1 else ""
        console.print(
            f"{finding.mechanism.value}: {finding.reason.value}. {finding.detail}{more}", soft_wrap=True
        )
        if finding.hint:
            console.print(f"  hint: {finding.hint}", soft_wrap=True)


def _mark(finding: Finding) -> Text:
    return Text("yes", "green") if finding.used else Text("no", "yellow")


def _first_flight(flight: Flight) -> str:
    if flight["protocol"] == "udp":
        return "; ".join(f"{kind} {size:,} B" for kind, size in flight["quic_packets"])
    parts = ["SYN"]
    if flight["cookie"] == "requested":
        parts.append("asks for a cookie")
    elif flight["cookie"] == "sent":
        parts.append(f"cookie, {flight['syn_payload_bytes']:,} B")
    if hello := flight["client_hello"]:
        parts.append(f"ClientHello {hello['bytes']:,} B")
    if flight["early_data_bytes"]:
        parts.append(f"early data {flight['early_data_bytes']:,} B")
    return "; ".join(parts)


def _warn(facts: ProveFacts, judged: int, program: str, around: Surroundings, talk: Talk) -> None:
    name, visits = Path(program).name, facts["visits"]
    if not judged:
        _warn_of_silence(name, visits, talk)
    elif judged < len(visits):
        talk.warn(
            f"{name} opened connections in visit 1 only, so that visit is judged",
            "let it connect on every run",
        )
    _warn_of_endings(name, visits, talk)
    for why in {visit["watched"]["blind"] for visit in visits} - {None}:
        talk.warn(
            f"the program's system calls could not be watched ({why}): what it asked for is not known",
            "run it where no other supervisor watches system calls, as some containers do",
        )
    if not facts["proof"]["ok"]:
        talk.warn(f"the witnesses of TFO disagree: {'; '.join(facts['proof']['disagreements'])}")
    here = _host_sysctl()
    if here is not None and not here & 1 and around.sysctl & 1:
        talk.warn(
            f"this machine has net.ipv4.tcp_fastopen={here}: outside the laboratory no client uses Fast Open",
            "as root: sysctl -w net.ipv4.tcp_fastopen=1; --sysctl 0 shows the machine as it is",
        )


def _warn_of_endings(name: str, visits: Sequence[Visit], talk: Talk) -> None:
    if left := max((visit["left_running"] for visit in visits), key=len):
        talk.warn(
            f"{name} ended and left {plural(len(left), 'process')} running ({', '.join(sorted(set(left)))}), "
            "stopped at the end of each visit",
            "keep it in the foreground (nginx -g 'daemon off;'), or give it longer with --linger",
        )
    for number, visit in enumerate(visits, start=1):
        if visit["timed_out"]:
            talk.warn(
                f"visit {number}: {name} was stopped after {visit['elapsed_ms'] / 1e3:.1f} s",
                "give it longer with --time-limit, or let it end by itself",
            )
        elif visit["exit_code"]:
            printed = f": {visit['output']}" if visit["output"] else ""
            talk.error(f"visit {number}: {name} ended with exit code {visit['exit_code']}{printed}")


def _warn_of_silence(name: str, visits: Sequence[Visit], talk: Talk) -> None:
    elsewhere = sorted(set(_destinations(visits)))
    tried = f"; it tried {', '.join(elsewhere[:5])}" if elsewhere else ""
    talk.error(
        f"{name} opened no connection to the laboratory's servers{tried}",
        "let it visit {http}, {https} or {dns}, or name its own hosts with --host; no other name resolves",
    )


def _destinations(visits: Sequence[Visit]) -> Iterator[str]:
    for visit in visits:
        for socket in visit["watched"]["sockets"]:
            if socket["destination"]:
                yield socket["destination"]


def _prove_server(server: ProvedServer, wanted: Sequence[Mechanism], talk: Talk, *, as_json: bool) -> int:
    try:
        with interruptible():
            facts = prove_server(server)
    except Interrupted as stop:
        return _stopped(stop, talk)
    findings = judge_server(facts, server.port, server.sysctl)
    unmet = _unmet(findings, wanted)
    last = facts["openings"][-1] if facts["openings"] else None
    if as_json:
        show_json(
            {
                "format": FORMAT,
                "server": {"command": list(server.argv), "port": server.port},
                "kernel": platform.release(),
                "conditions": {"rtt_ms": server.path.rtt_ms, "sysctl": server.sysctl},
                "unmet": [mechanism.value for mechanism in unmet],
                "findings": [finding.to_json() for finding in findings],
                **facts,
            }
        )
    else:
        _show_server(facts, findings, server)
    for mechanism in unmet:
        talk.error(f"expected {mechanism.value}: the server does not take it")
    if last is None or not last["has_heard"]:
        why = f": {last['error']}" if last and last["error"] else ""
        talk.error(
            f"{shlex.join(server.argv)} did not answer a request on port {server.port}{why}",
            "a server that speaks neither HTTP nor TLS is judged by the SYN alone",
        )
    return int(bool(unmet) or last is None or not last["is_answered"])


def _show_server(facts: ServerFacts, findings: Sequence[Finding], server: ProvedServer) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("connection", "first flight", "SYN data", "TLS", "early data", "first byte"):
        table.add_column(name, no_wrap=True)
    for number, opening in enumerate(facts["openings"], start=1):
        table.add_row(str(number), *_server_row(opening, server.path.rtt_ms))
    data_console().print(table)
    _show_reasons(findings, None)


def _server_row(opening: Opening, rtt_ms: float) -> tuple[str, ...]:
    asked = {
        "requested": "asks for a cookie",
        "sent": f"cookie, {opening['syn_payload_bytes']:,} B",
        "none": "",
    }
    first_byte = opening["first_byte_ms"]
    tls = opening["tls"] or "-"
    resumed = ", resumed" if opening["resumed"] else ""
    return (
        "; ".join(filter(None, ("SYN", asked[opening["cookie"]]))),
        "taken" if opening["syn_data_acked"] else "no",
        f"{tls}{resumed}",
        opening["early_data"],
        "-" if first_byte is None else f"{first_byte / rtt_ms:.1f} RTT" if rtt_ms else f"{first_byte:.1f} ms",
    )
