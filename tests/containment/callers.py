"""Runs a probe in three places, each with a terminal: as the laboratory's client, in `exec`, and outside."""

import json
import os
import pty
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from baits import PROBE, Host
from program import COMMAND
from small_pages import document, page, planned

from firstflight.engines.clients.command import Command
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Answer as LabAnswer
from firstflight.engines.engine import LabJob
from firstflight.engines.lab import preload_library
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage

E2E = Path(__file__).parents[1] / "e2e"
_RESULT = "/dev/shm/result.json"
_AS_CLIENT = "import sys; sys.path += sys.argv[1:3]; from callers import as_client; as_client(sys.argv[3])"


@dataclass(frozen=True)
class Probed:
    """What a probe found.

    Attributes:
        ways: For each way out, by name, the evidence that it is open; empty where it is closed.
        status: What the kernel reports of the probe's process (`/proc/self/status`).
    """

    ways: dict[str, str]
    status: dict[str, str]


class Prober:
    """A foreign client that runs the probe; implements `engines.clients.command.ForeignClient`."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self.result: dict[str, Any] | None = None

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        folders = [sys.prefix, sys.base_prefix, str(PROBE)]
        command = Command(
            (sys.executable, "-I", str(PROBE), self._spec, _RESULT), result=_RESULT, reads=folders
        )
        return {**job, "client": command.to_json(preload_library())}

    def complete(self, answer: LabAnswer, page: LoadedPage) -> LabAnswer:
        self.result = cast(dict[str, Any] | None, answer.get("result"))
        if self.result is None:
            raise AssertionError(answer)
        return answer


def probed(place: str, host: Host) -> Probed:
    """Runs the probe in `place`: `client`, `exec` or `outside`.

    A packet to the host counts as evidence if the host's server received it.
    """
    word = f"{place}-{host.spec['token']}"
    probe = [sys.executable, "-I", str(PROBE)]
    argv = {
        "client": [sys.executable, "-c", _AS_CLIENT, *map(str, (PROBE.parent, E2E))],
        "exec": [*COMMAND, "exec", "--quiet", "--rtt", "2", "--", *probe],
        "outside": probe,
    }[place]
    answer = _at_a_terminal(argv, host, word)
    ways = dict(answer["ways"])
    ways["packet to the host"] = "heard" if word in host.heard else ""
    return Probed(ways, answer["status"])


def _at_a_terminal(argv: list[str], host: Host, word: str) -> dict[str, Any]:
    """Runs a command at a new terminal, with the spec as last argument; returns the JSON that it prints."""
    pid, terminal = pty.fork()
    if pid == 0:
        spec = host.told(word=word, terminal=os.ttyname(0))
        os.execvpe(argv[0], [*argv, spec], host.environment)
    shown = bytearray()
    while chunk := _read(terminal):
        shown += chunk
    os.close(terminal)
    os.waitpid(pid, 0)
    for line in shown.decode(errors="replace").replace("\a", "").splitlines():
        start = line.find('{"')
        if start >= 0:
            answer: dict[str, Any] = json.loads(line[start:])
            return answer
    raise AssertionError(shown.decode(errors="replace"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # EIO: no process has the other end open any more
        return b""


def as_client(spec: str) -> None:
    """Makes one load whose client is the probe, and prints what the probe found."""
    prober = Prober(spec)
    site = page("one", document())
    record = Emulator(clients={"curl": prober}).load(planned(site, "tcp", 2.0, client="curl"), site)
    if prober.result is None:
        raise AssertionError(record["load"])
    print(json.dumps(prober.result))
