"""Clients that say nothing of their loads: what is known of them the servers and the relay saw."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from firstflight.engines.clients import curl, wget2
from firstflight.engines.clients.command import Command
from firstflight.errors import UsageError

if TYPE_CHECKING:
    from firstflight.engines.engine import Answer, LabJob
    from firstflight.model.load import PlannedLoad
    from firstflight.pages import LoadedPage, Page

COMMANDS: dict[str, Callable[[str, Page, bool], Command]] = {"curl": curl.command, "wget2": wget2.command}
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
