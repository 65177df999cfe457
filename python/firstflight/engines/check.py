"""Tests RFC 7413 with a list of experiments. Each row runs in a laboratory of its own, many in parallel.

With a server on another machine some rows run outside of a laboratory, one after the other: the kernel has
one cookie per address, which all rows share.
"""

import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NotRequired, Self, TypedDict, cast

from firstflight.engines.lab import Lab
from firstflight.errors import LabError, UsageError
from firstflight.observer import Observer

_ROW_S = 120.0
"""After this time a laboratory is killed. The waits inside it are shorter."""
_SERVER_S = 30.0
_HTTP = 80

IpVersion = Literal["4", "6"]
HOLDS, DEVIATES, NOT_APPLICABLE = "holds", "deviates", "not applicable"
"""Verdicts of the laboratory."""
NOT_JUDGED = "not judged"
"""Verdict of a row that could not be run."""
VERDICTS = (HOLDS, DEVIATES, NOT_APPLICABLE, NOT_JUDGED)

Strength = Literal["MUST", "SHOULD", "described", "Linux"]
STRENGTHS: dict[str, Strength] = {
    "MUST": "MUST",
    "MUST NOT": "MUST",
    "SHOULD": "SHOULD",
    "MAY": "described",
    "described": "described",
    "advice": "described",
    "Linux": "Linux",
}
"""How each level counts: a deviation from a MUST fails a check, any other deviation is only reported."""


class Row(TypedDict):
    """A row of the list: the experiment and, once it was run, its result.

    `verdict` is `NOT_JUDGED` if it could not be run; then `hint` says what to do about it. `remote` says
    whether it can be run with a server on another machine.
    """

    id: str
    side: str
    level: str
    section: str | None
    behaviour: str
    done: str
    remote: bool
    verdict: NotRequired[str]
    seen: NotRequired[str]
    packets: NotRequired[list[object]]
    counters: NotRequired[object]
    elapsed_ms: NotRequired[float]
    capture: NotRequired[str | None]
    hint: NotRequired[str]


def must_deviate(row: Row) -> bool:
    """Whether the row's result deviates from a MUST or a MUST NOT."""
    return row["verdict"] == DEVIATES and STRENGTHS[row["level"]] == "MUST"


@dataclass(frozen=True)
class Server:
    """A server program of the user: its command and the port that it listens on."""

    argv: Sequence[str]
    port: int


@dataclass(frozen=True)
class Remote:
    """A server that is already running, on this machine or another one.

    Attributes:
        host: Its name or address, as the user gave it.
        port: The port that it listens on.
        address: Its address.
        ip: The IP version of `address`.
    """

    host: str
    port: int
    address: str
    ip: IpVersion

    @classmethod
    def named(cls, name: str, ip: IpVersion | None) -> Self:
        """Looks up a server's address.

        Args:
            name: `HOST:PORT`, or `HOST` for port 80. An IPv6 address with a port is in brackets.
            ip: The IP version; `None`: that of the first address that the system returns.

        Raises:
            UsageError: `name` has another form, or no address of that IP version.
        """
        host, port = _host_and_port(name)
        family = {"4": socket.AF_INET, "6": socket.AF_INET6, None: socket.AF_UNSPEC}[ip]
        try:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            of_version = f" of IPv{ip}" if ip else ""
            raise UsageError(
                f"connect: {host} has no address{of_version}: {error}",
                "name a host that this machine can look up",
            ) from error
        family, *_, place = found[0]
        return cls(host, port, str(place[0]), "6" if family == socket.AF_INET6 else "4")

    def job(self) -> dict[str, object]:
        """The server in the JSON form that the laboratory's program takes."""
        address = f"[{self.address}]" if self.ip == "6" else self.address
        host = f"[{self.host}]" if ":" in self.host else self.host
        named = host if self.port == _HTTP else f"{host}:{self.port}"
        return {"address": f"{address}:{self.port}", "host": named}


def _host_and_port(name: str) -> tuple[str, int]:
    wrong = UsageError(
        f"connect: {name!r} is not HOST:PORT", "such as www.example.org:80 or [2001:db8::1]:80"
    )
    host, colon, port = name.rpartition(":")
    if not colon or name.endswith("]"):
        host, port = name, str(_HTTP)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise wrong
    if not host or any(char in "/@[]" or char.isspace() for char in host):
        raise wrong
    if not (port.isascii() and port.isdigit() and len(port) <= len("65535") and 1 <= int(port) <= 65_535):
        raise wrong
    return host, int(port)


class Checker:
    """Runs rows of the list.

    Args:
        ip: The IP version in the laboratories.
    """

    def __init__(self, ip: IpVersion = "4") -> None:
        self._lab = Lab()
        self._ip = ip

    def rows(self) -> list[Row]:
        """The list, in order, without results."""
        rows: list[Row] = self._lab.ask("check-rows", timeout_s=_SERVER_S)["rows"]
        return rows

    def try_server(self, server: Server | Remote) -> None:
        """Sends one ordinary request to the server.

        Raises:
            LabError: The server cannot be started or reached, does not listen in time, or does not answer.
        """
        if isinstance(server, Remote):
            self._lab.ask("try-remote", server.job(), timeout_s=_SERVER_S)
        else:
            self._lab.ask("try-server", {"server": asdict(server), "ip": self._ip}, timeout_s=_SERVER_S)

    def check(
        self,
        rows: Sequence[Row],
        *,
        server: Server | Remote | None,
        captures: Path | None,
        jobs: int,
        observer: Observer,
    ) -> list[Row]:
        """Runs `rows`, `jobs` at a time; with a `Remote` one after the other.

        Args:
            rows: Rows from `rows()`.
            server: The server to test; `None`: this kernel's client with firstflight's own server.
            captures: Folder for a packet capture of each row; none is made of a `Remote`.
            jobs: How many rows run at a time.
            observer: Is told how many rows are done.

        Returns:
            Each row with `verdict`, `seen`, `packets`, `counters`, `elapsed_ms` and `capture`, in order. A
            row that could not be run has the verdict `NOT_JUDGED` and a `hint`.
        """
        observer.begin("rows", len(rows))
        pool = ThreadPoolExecutor(1 if isinstance(server, Remote) else jobs)
        try:
            futures = [pool.submit(self._check, row, server, captures) for row in rows]
            for future in as_completed(futures):
                future.result()
                observer.advance()
            return [future.result() for future in futures]
        finally:
            self._lab.stop()
            pool.shutdown(cancel_futures=True)

    def _check(self, row: Row, server: Server | Remote | None, captures: Path | None) -> Row:
        if isinstance(server, Remote):
            return self._ask("check-remote", row, {"row": row["id"], **server.job()})
        if server and row["side"] != "server":
            why = "It examines this kernel's client; --server examines a server."
            return {**row, "verdict": NOT_APPLICABLE, "seen": why, "packets": [], "capture": None}
        file = captures / f"{row['id']}.pcapng" if captures else None
        job = {
            "row": row["id"],
            "ip": self._ip,
            "server": asdict(server) if server else None,
            "capture": str(file.absolute()) if file else None,
        }
        done = self._ask("check", row, job)
        return {**done, "capture": file.name if file and file.exists() else None}

    def _ask(self, command: str, row: Row, job: Mapping[str, object]) -> Row:
        try:
            seen = self._lab.ask(command, job, timeout_s=_ROW_S)
        except LabError as error:
            seen = {"verdict": NOT_JUDGED, "seen": error.message, "hint": error.hint, "packets": []}
        return cast(Row, {"capture": None, **row, **seen})
