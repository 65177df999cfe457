"""Clients that are programs of their own: the laboratory runs them next to the page's servers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from firstflight.engines.engine import Answer, CommandJob, LabJob
    from firstflight.model.load import PlannedLoad
    from firstflight.pages import LoadedPage


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
