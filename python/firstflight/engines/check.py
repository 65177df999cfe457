"""RFC 7413 as a list of experiments: each row is done in a laboratory of its own, many side by side.

With a server on another machine some rows are done outside of a laboratory, one after the other: the
kernel keeps one cookie for an address, which all rows share.
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
"""After this a laboratory is killed; its waits are shorter."""
_SERVER_S = 30.0
_HTTP = 80

IpVersion = Literal["4", "6"]
HOLDS, DEVIATES, NOT_APPLICABLE = "holds", "deviates", "not applicable"
"""Verdicts of the laboratory."""
NOT_JUDGED = "not judged"
"""Verdict of a row that could not be done."""
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
"""What each level counts as: a deviation from a MUST fails a check, any other is reported."""


class Row(TypedDict):
    """A row of the list: what is done, and once it is done, what was seen.

    `verdict` is `NOT_JUDGED` where it could not be done, and `hint` says what can be done about it.
    `remote` says whether it can be done with a server on another machine.
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
    """Whether a row that was done deviates from a MUST or a MUST NOT."""
    return row["verdict"] == DEVIATES and STRENGTHS[row["level"]] == "MUST"


@dataclass(frozen=True)
class Server:
    """A server program of the user's: the command, and the port that it listens on."""

    argv: Sequence[str]
    port: int


@dataclass(frozen=True)
class Remote:
    """A server that the user names, on this machine or another one.

    Attributes:
        host: Its name or address, as the user gave it.
        port: Where it listens.
        address: Its address.
        ip: The version of IP of that.
    """

    host: str
    port: int
    address: str
    ip: IpVersion

    @classmethod
    def named(cls, name: str, ip: IpVersion | None) -> Self:
        """Looks a server up.

        Args:
            name: `HOST:PORT`, or `HOST` for port 80; an address of IPv6 with a port stands in brackets.
            ip: The version of IP; without, that of the first address that the system knows.

        Raises:
            UsageError: `name` is no such thing, or has no address of that version.
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
        """As the laboratory's program takes it."""
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
    """Does rows of the list.

    Args:
        ip: The version of IP on the wires of laboratories.
    """

    def __init__(self, ip: IpVersion = "4") -> None:
        self._lab = Lab()
        self._ip = ip

    def rows(self) -> list[Row]:
        """The list, in order; nothing is done yet."""
        rows: list[Row] = self._lab.ask("check-rows", timeout_s=_SERVER_S)["rows"]
        return rows

    def try_server(self, server: Server | Remote) -> None:
        """Has a server answer one ordinary request.

        Raises:
            LabError: It cannot be started or reached, does not listen in time, or does not answer.
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
        """Does `rows`, `jobs` at a time; with a `Remote` one after the other.

        Args:
            rows: Of those that `rows` gives.
            server: The server to examine; this kernel's client and our own server without.
            captures: Folder for a capture of each row; there is none of a `Remote`.
            jobs: How many at a time.
            observer: Is told how many are done.

        Returns:
            Each row with `verdict`, `seen`, `packets`, `counters`, `elapsed_ms` and `capture`, in order; one
            that could not be done has the verdict `NOT_JUDGED`, and a `hint`.
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
