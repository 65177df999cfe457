"""Chromium's net log (`--log-net-log`, capture mode `Everything`): a JSON document with an event a line.

Only this one place knows how the log is written (net/log/file_net_log_observer.cc). It is read line by line,
since it holds all that was transferred, several times over. A log whose end is missing, as a browser leaves
it that is killed, ends where it ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import unquote_to_bytes

_ESCAPED = "%ESCAPED:\u200b "
"""In front of text with other characters than ASCII, which then stand in percent-encoding."""


class Params(TypedDict, total=False):
    """What events say that are read here; each type says some of it."""

    url: str
    method: str
    initiator: str
    line: str
    headers: list[str]
    bytes: str
    net_error: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a request.

    Attributes:
        type: Its name, e.g. `URL_REQUEST_START_JOB`.
        request: Number of the request.
        ms: When, monotonic clock.
        begins: Whether something begins that a later event of this type ends.
        params: What it says.
    """

    type: str
    request: int
    ms: float
    begins: bool
    params: Params


@dataclass(frozen=True, slots=True)
class NetLog:
    """A log on disk.

    Attributes:
        epoch_ms: Added to a time of the monotonic clock it gives ms since 1970.
    """

    epoch_ms: float
    _file: Path
    _types: dict[int, str]
    _request: int
    _begin: int

    def events(self) -> Iterator[Event]:
        """All that happened to requests, in order."""
        with self._file.open("rb") as lines:
            for line in lines:
                if not line.startswith(b"{") or (found := _parsed(line)) is None:
                    continue
                if found.get("source", {}).get("type") == self._request:
                    yield self._event(found)

    def _event(self, found: Any) -> Event:  # noqa: ANN401
        return Event(
            self._types[found["type"]],
            found["source"]["id"],
            float(found["time"]),
            found["phase"] == self._begin,
            found.get("params") or Params(),
        )


def open_netlog(file: Path) -> NetLog | None:
    """Reads what the log says of itself; `None` if there is none, as of a browser that did not start."""
    if not file.is_file():
        return None
    with file.open("rb") as lines:
        found = _parsed(lines.readline().rstrip(b", \n") + b"}")
    if found is None:
        return None
    constants = found["constants"]
    return NetLog(
        float(constants["timeTickOffset"]),
        file,
        {number: name for name, number in constants["logEventTypes"].items()},
        constants["logSourceType"]["URL_REQUEST"],
        constants["logEventPhase"]["PHASE_BEGIN"],
    )


def plain(text: str) -> str:
    """Text of the log as it was: a character for each byte of the wire."""
    if not text.startswith(_ESCAPED):
        return text
    return unquote_to_bytes(text.removeprefix(_ESCAPED)).decode("latin-1")


def _parsed(line: bytes) -> Any:  # noqa: ANN401
    """The JSON object in a line; None where there is none."""
    try:
        found = json.loads(line.rstrip(b",] \n"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
