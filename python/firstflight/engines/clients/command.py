"""Clients that are programs of their own: the laboratory runs them next to the page's servers.

`Program` is one that reports nothing of its loads: what is known of them the servers and the relay saw.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from firstflight.engines.lab import CA_FILE
from firstflight.errors import UsageError

if TYPE_CHECKING:
    from firstflight.engines.engine import Answer, CommandJob, LabJob
    from firstflight.model.load import PlannedLoad
    from firstflight.pages import LoadedPage, Page


class ForeignClient(Protocol):
    """Tells the laboratory how a program loads a page, and what its answer means."""

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The laboratory's job with this client in it.

        Args:
            job: A job for the built-in loader.
            planned: The load to be made.
            page: Its page.
        """

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The laboratory's answer with what the client itself saw of the load."""


@dataclass(frozen=True)
class Command:
    """How a program loads one page.

    Attributes:
        argv: The program and its arguments.
        env: What its environment has beyond the few variables that the laboratory hands on.
        input: What it reads from standard input.
        accepts: Exit codes that mean success.
        result: File it leaves a result of its own in, a JSON object, if it does: the laboratory reads
            `started_ns` (navigation start, monotonic clock), `plt_ms`, `first_byte_ms` and `error`, and hands
            on the rest.
        reads: Files and folders that it needs beyond the system's own and itself.
        keeps: Files that it leaves in the laboratory's shared memory, and where each is to be kept.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    input: str = ""
    accepts: tuple[int, ...] = (0,)
    result: str | None = None
    reads: Sequence[str] = ()
    keeps: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, preload: str) -> CommandJob:
        """The form in which the laboratory takes it.

        Args:
            preload: The library that gives it TCP Fast Open; the same in every mode.
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
    """Where the caller's programs find their libraries, apart from the system's places (ld.so(8))."""
    return [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]


_CURL_OPTIONS = (
    "--disable",  # nothing of the user's; must stand first
    "--silent",
    "--show-error",
    # A page is no reason to read a file or to speak another protocol.
    "--proto",
    "=http,https",
    "--proto-redir",
    "=http,https",
    "--globoff",
    "--path-as-is",
    # It would first wait whether a connection can carry several transfers, as those of HTTP/2 can.
    "--http1.1",
    "--cacert",
    CA_FILE,
    "--parallel",
    "--parallel-max",
    "6",
    "--config",
    "-",
)
_CURL_CLASSIC = ("--curves", "X25519:P-256:P-384")
"""OpenSSL offers X25519MLKEM768 by itself from version 3.5 on."""


def _curl(program: str, page: Page, post_quantum: bool) -> Command:
    """Fetches every GET of `page`, in the page's order, six at a time, keeping nothing; it discovers nothing.

    Args:
        program: Path of curl.
        page: The page.
        post_quantum: Whether its TLS may offer X25519MLKEM768.
    """
    urls = (resource.url for resource in page.resources if resource.method == "GET")
    groups = () if post_quantum else _CURL_CLASSIC
    return Command((program, *_CURL_OPTIONS, *groups), input="".join(map(_curl_entry, urls)))


def _curl_entry(url: str) -> str:
    """One transfer of a config file (curl(1), --config), whose options end with their line."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url!r}: no URL that a page can hold")
    escaped = url.replace("\\", "\\\\").replace('"', '\\"')
    return f'url = "{escaped}"\noutput = "/dev/null"\n'


_WGET2_OPTIONS = (
    "--no-config",  # nothing of the user's
    "--no-netrc",
    "--no-hsts",
    "--no-ocsp",
    "--no-robots",
    "--no-tcp-fastopen",  # that is the preload's part, in every mode alike
    f"--ca-certificate={CA_FILE}",
    "--page-requisites",
    "--span-hosts",
    "--tries=1",
    "--no-verbose",
    "--output-document=/dev/null",
)
_WGET2_SERVER_ERROR = 8
"""Exit code of wget2 when a response is an error, as a recorded 404 is."""
_WGET2_CLASSIC = "--secure-protocol=NORMAL:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1"
"""GnuTLS offers X25519MLKEM768 by itself from version 3.8.8 on, where it was built with it."""


def _wget2(program: str, page: Page, post_quantum: bool) -> Command:
    """Loads `page` as `wget2 --page-requisites` does, keeping nothing.

    It fetches the document and what HTML and style sheets name; it runs no scripts.

    Args:
        program: Path of wget2.
        page: The page.
        post_quantum: Whether its TLS may offer X25519MLKEM768.
    """
    groups = () if post_quantum else (_WGET2_CLASSIC,)
    return Command((program, *_WGET2_OPTIONS, *groups, "--", page.url), accepts=(0, _WGET2_SERVER_ERROR))


COMMANDS: dict[str, Callable[[str, Page, bool], Command]] = {"curl": _curl, "wget2": _wget2}
"""How each of them is called for a page."""

_SIGNALS = 128
"""The laboratory reports 128 + n for a program that signal n ended."""


class Program:
    """One of them; implements `engines.clients.command.ForeignClient`.

    Args:
        name: A key of `COMMANDS`.
        program: Its path.
        preload: The library that gives it TCP Fast Open.
    """

    def __init__(self, name: str, program: str, preload: str) -> None:
        self._command = COMMANDS[name]
        self._program = program
        self._preload = preload

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        """The laboratory's job with the program in it."""
        command = self._command(self._program, page.page, planned.post_quantum)
        return {**job, "client": command.to_json(self._preload)}

    def complete(self, answer: Answer, page: LoadedPage) -> Answer:
        """The laboratory's answer, as it is; of a program that a signal ended the load is made once more."""
        killed = answer["client"]["exit_code"] > _SIGNALS
        return {**answer, "broken": True} if killed and answer["status"] == "failed" else answer


def find_program(name: str) -> str:
    """Where the program of a client is. Raises `UsageError` when it is nowhere."""
    program = shutil.which(name)
    if program is None:
        raise UsageError(
            f"client: {name} is not installed", f"install your system's package {name}, or use another client"
        )
    return program
