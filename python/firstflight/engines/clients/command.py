"""Clients that are external programs: the laboratory runs them next to the page's servers.

A `Program` reports nothing of its loads. What is known of them comes from the servers and the relay.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from firstflight.engines.lab import CA_FILE
from firstflight.errors import UsageError
from firstflight.model.treatment import MODES, PLAIN, Mode

if TYPE_CHECKING:
    from firstflight.engines.engine import Answer, CommandJob, LabJob
    from firstflight.model.load import PlannedLoad
    from firstflight.pages import LoadedPage, Page


class ForeignClient(Protocol):
    """Tells the laboratory how a program loads a page, and interprets its answer."""

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The laboratory's job with this client added.

        Args:
            job: A job for the built-in loader.
            planned: The load to be made.
            page: Its page.
        """

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The laboratory's answer, with what the client itself reported of the load."""


@dataclass(frozen=True)
class Command:
    """How a program loads one page.

    Attributes:
        argv: The program and its arguments.
        env: Environment variables in addition to the few that the laboratory passes on.
        input: Its standard input.
        accepts: Exit codes that mean success.
        result: File in which it writes a result, a JSON object, if it writes one. The laboratory reads
            `started_ns` (navigation start, monotonic clock), `plt_ms`, `first_byte_ms` and `error`, and
            passes the rest on.
        reads: Files and folders that it needs in addition to itself and those of the system.
        keeps: Files that it writes into the laboratory's shared memory, and where each is copied to.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    input: str = ""
    accepts: tuple[int, ...] = (0,)
    result: str | None = None
    reads: Sequence[str] = ()
    keeps: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, preload: str) -> CommandJob:
        """The JSON form of the command that the laboratory takes.

        Args:
            preload: The library that adds TCP Fast Open; the same in every mode.
        """
        return {
            "kind": "command",
            "argv": list(self.argv),
            "env": {**self.env, "LD_PRELOAD": preload},
            "input": self.input,
            "accepts": list(self.accepts),
            "result": self.result,
            "reads": [self.argv[0], preload, *_library_folders(), *self.reads],
            "keeps": dict(self.keeps),
        }


def _library_folders() -> list[str]:
    """The folders of the caller's LD_LIBRARY_PATH (ld.so(8))."""
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


@dataclass(frozen=True)
class Way:
    """How a program is to load a page.

    Attributes:
        post_quantum: Whether its TLS may offer X25519MLKEM768.
        mode: The mode of transport.
        visits: Whether it first visits every https origin to get a TLS ticket.
        in_turn: Whether it requests one resource after the other.
    """

    post_quantum: bool = True
    mode: Mode = MODES[PLAIN]
    visits: bool = False
    in_turn: bool = False


VISIT = "/.well-known/firstflight-visit"
"""A path that servers answer with an empty body, then close the connection (crates/lab/src/origin/log.rs)."""


def visits(urls: Iterable[str]) -> list[str]:
    """The URLs that give the client a TLS ticket of each https origin."""
    parts = (urlsplit(url) for url in urls)
    return list(dict.fromkeys(f"https://{part.netloc}{VISIT}" for part in parts if part.scheme == "https"))


_CURL_OPTIONS = (
    "silent",
    "show-error",
    # A page must not make curl read a file or use another protocol.
    'proto = "=http,https"',
    'proto-redir = "=http,https"',
    "globoff",
    "path-as-is",
    f'cacert = "{CA_FILE}"',
)
_CURL_PARALLEL = ("parallel", 'parallel-max = "6"')
_CURL_CLASSIC = 'curves = "X25519:P-256:P-384"'
"""From version 3.5 on OpenSSL offers X25519MLKEM768 by default."""
_CURL_CLAIM = "early data that curl says it sent: "
_CURL_OF_MODE = {
    "tls12": ('tls-max = "1.2"',),
    "early-data": ("tls-earlydata",),
    "tfo+early-data": ("tls-earlydata",),
    "quic": ("http3-only",),
    "quic-0rtt": ("http3-only", "tls-earlydata"),
}


def _curl(program: str, page: Page, way: Way) -> Command:
    """Fetches every GET of `page`, in the page's order, and discards the bodies. It discovers no resources.

    It fetches six at a time, or one. One is needed for visits: curl keeps two tickets of a server, and one
    process cannot first make visits one by one and then fetch in parallel.

    Args:
        program: Path of curl.
        page: The page.
        way: How it loads the page.
    """
    urls = [resource.url for resource in page.resources if resource.method == "GET"]
    # Without parallel transfers curl exits with the result of the last one, so it must stop at the first
    # error.
    config = ["fail-early"] if way.in_turn else list(_CURL_PARALLEL)
    if way.visits:
        tls = _curl_options(way, secure=True)
        config += [*tls, *map(_curl_entry, visits(urls)), "next"]
    claim = f'write-out = "{_CURL_CLAIM}%{{tls_earlydata}}\\n"'
    for number, (secure, group) in enumerate(groupby(urls, lambda url: url.startswith("https:"))):
        config += ["next"] if number else []
        config += _curl_options(way, secure=secure)
        # curl reuses a connection only if both transfers were told the same IP version.
        config += ["ipv4"] if way.visits else []
        config += [claim] if way.mode.early_data and secure else []
        config += map(_curl_entry, group)
    # --disable: ignore the user's configuration; it must be the first option.
    return Command(
        (program, "--disable", "--config", "-"),
        input="".join(f"{line}\n" for line in config),
        reads=_beside(program),
    )


def _curl_options(way: Way, *, secure: bool) -> list[str]:
    """The options of a transfer with TLS, or without; HTTP/3 exists only with TLS."""
    options = [*_CURL_OPTIONS, *(_CURL_OF_MODE.get(way.mode.name, ()) if secure else ())]
    if not (way.mode.quic and secure):
        # Otherwise parallel transfers wait to learn whether the connection can multiplex them, as HTTP/2 can.
        options.append("http1.1")
    if not way.post_quantum:
        options.append(_CURL_CLASSIC)
    return options


@dataclass(frozen=True)
class CurlBuild:
    """The build of a curl, as `curl -V` reports it.

    Attributes:
        version: Version of curl.
        tls: Name of its TLS library.
        features: Names of features, as curl prints them.
    """

    version: tuple[int, ...]
    tls: str
    features: frozenset[str]

    @classmethod
    def of(cls, program: str) -> CurlBuild:
        """Runs `curl -V`. Raises `UsageError` if the program is not curl."""
        try:
            said = subprocess.run(
                [program, "-V"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"client: {program} cannot be run: {error}", "name a curl") from error
        version = re.match(r"curl (\d+(?:\.\d+)+)", said)
        if version is None:
            raise UsageError(f"client: {program} -V does not say which curl it is", "name a curl")
        first = said.partition("\n")[0]
        tls = next((name for name in _CURL_EARLY_DATA if f" {name}/" in first), "")
        features = re.search(r"^Features: (.*)$", said, re.MULTILINE)
        return cls(
            tuple(map(int, version[1].split("."))), tls, frozenset(features[1].split() if features else [])
        )

    def check(self, mode: Mode) -> None:
        """Raises `UsageError` if this curl cannot load with `mode`; the message names what it lacks."""
        own = ".".join(map(str, self.version))
        if mode.quic and "HTTP3" not in self.features:
            raise UsageError(
                f"mode: curl {own} was built without HTTP/3, which {mode.name} needs",
                "name a curl whose `curl -V` says HTTP3 with --program PATH, or leave the mode out",
            )
        since = _CURL_EARLY_DATA.get(self.tls)
        if mode.early_data and (since is None or self.version < since):
            needed = ", ".join(f"{v[0]}.{v[1]} with {name}" for name, v in _CURL_EARLY_DATA.items())
            raise UsageError(
                f"mode: curl {own} with {self.tls or 'its TLS library'} has no early data (--tls-earlydata), "
                f"which {mode.name} needs",
                f"name a newer one with --program PATH ({needed}), or leave the mode out",
            )


_CURL_EARLY_DATA = {"OpenSSL": (8, 13), "GnuTLS": (8, 11), "wolfSSL": (8, 13), "quictls": (8, 13)}
"""TLS libraries with which curl sends early data, and the first curl version (CURLOPT_SSL_OPTIONS(3))."""
_TIMEOUT_S = 20
_CURL_SERVERS = 25
"""Number of servers whose tickets curl keeps (Curl_ssl_scache_create in its source)."""


def check_tickets(page: Page) -> None:
    """Refuses a page with more https origins than curl keeps tickets of. Raises `UsageError`."""
    secure = sum(origin.startswith("https:") for origin in page.origins)
    if secure > _CURL_SERVERS:
        raise UsageError(
            f"{secure} https origins, and curl keeps tickets of {_CURL_SERVERS} servers",
            "use --client loader, or leave the page or the modes with tickets out",
        )


def _curl_entry(url: str) -> str:
    """One transfer of a config file (curl(1), --config), in which each option ends with its line."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r}: no URL that a page can hold")
    escaped = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'url = "{escaped}"\noutput = "/dev/null"'


_WGET2_OPTIONS = (
    "--no-config",  # ignore the user's configuration
    "--no-netrc",
    "--no-hsts",
    "--no-ocsp",
    "--no-robots",
    "--no-tcp-fastopen",  # the preloaded library does that, in every mode alike
    f"--ca-certificate={CA_FILE}",
    "--page-requisites",
    "--span-hosts",
    "--tries=1",
    "--no-verbose",
    "--output-document=/dev/null",
)
_WGET2_SERVER_ERROR = 8
"""Exit code of wget2 when a response has an error status, such as a recorded 404."""
_WGET2_CLASSIC = "--secure-protocol=NORMAL:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1"
"""From version 3.8.8 on GnuTLS offers X25519MLKEM768 by default, if it was built with it."""


def _wget2(program: str, page: Page, way: Way) -> Command:
    """Loads `page` as `wget2 --page-requisites` does, and discards the bodies.

    It fetches the document and the resources that HTML and style sheets name. It runs no scripts.

    Args:
        program: Path of wget2.
        page: The page.
        way: How it loads the page.
    """
    groups = () if way.post_quantum else (_WGET2_CLASSIC,)
    return Command(
        (program, *_WGET2_OPTIONS, *groups, "--", page.url),
        accepts=(0, _WGET2_SERVER_ERROR),
        reads=_beside(program),
    )


def _beside(program: str) -> list[str]:
    """The folder of a program, which may be a wrapper script that starts another file of that folder."""
    return [str(Path(program).resolve().parent)]


COMMANDS: dict[str, Callable[[str, Page, Way], Command]] = {"curl": _curl, "wget2": _wget2}
"""Builds the command of each program for a page."""

_SIGNALS = 128
"""The laboratory reports exit code 128 + n for a program that was ended by signal n."""


class Program:
    """A key of `COMMANDS` as a client; implements `engines.clients.command.ForeignClient`.

    Args:
        name: A key of `COMMANDS`.
        program: Its path.
        preload: The library that adds TCP Fast Open.
        in_turn: Whether it requests one resource after the other.
    """

    def __init__(self, name: str, program: str, preload: str, *, in_turn: bool = False) -> None:
        self._name = name
        self._command = COMMANDS[name]
        self._program = program
        self._preload = preload
        self._in_turn = in_turn

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The laboratory's job with the program added."""
        mode = MODES[planned.mode]
        way = Way(planned.post_quantum, mode, mode.sessions and planned.cookies == "warm", self._in_turn)
        command = self._command(self._program, page.page, way)
        return {**job, "client": command.to_json(self._preload)}

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The laboratory's answer; `broken`, so that the load is repeated, if a signal ended the program.

        To a missing proof it adds how much early data the program says that it sent.
        """
        if answer["status"] != "failed":
            return answer
        if answer["client"]["exit_code"] > _SIGNALS:
            return {**answer, "broken": True}
        claims = [int(bytes_) for bytes_ in re.findall(f"{_CURL_CLAIM}(-?\\d+)", answer["client"]["said"])]
        if not claims or not str(answer["error"]).startswith(_NO_PROOF):
            return answer
        sent = [claim for claim in claims if claim]
        claimed = f"{self._name} says that it sent early data with {len(sent)} of {len(claims)} requests"
        return {**answer, "error": f"{answer['error']}; {claimed} ({sum(map(abs, sent))} bytes)"}


_NO_PROOF = "no proof: "
"""The prefix of the laboratory's error for a load whose proof failed."""


def find_program(name: str, program: str = "") -> str:
    """The path of a client's program. Raises `UsageError` when there is none.

    Args:
        name: The client.
        program: Its path; empty: look it up in the PATH.
    """
    found = shutil.which(program or name)
    if found:
        return str(Path(found).absolute())
    if program:
        raise UsageError(f"program: {program} cannot be run", "name a file that exists and is executable")
    raise UsageError(
        f"client: {name} is not installed", f"install your system's package {name}, or use another client"
    )
