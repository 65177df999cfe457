"""RFC 7413 as a list of experiments: each row is done in a laboratory of its own, many side by side."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from firstflight.engines.lab import Lab
from firstflight.errors import LabError
from firstflight.observer import Observer

_ROW_S = 120.0
"""After this a laboratory is killed; its waits are shorter."""
_SERVER_S = 30.0

NOT_JUDGED = "not judged"
"""Verdict of a row that could not be done; the others are the laboratory's."""


class Row(TypedDict):
    """A row of the list: what is done, and once it is done, what was seen.

    `verdict` is `NOT_JUDGED` where it could not be done, and `hint` says what can be done about it.
    """

    id: str
    side: str
    level: str
    section: str | None
    behaviour: str
    done: str
    verdict: NotRequired[str]
    seen: NotRequired[str]
    packets: NotRequired[list[object]]
    counters: NotRequired[object]
    elapsed_ms: NotRequired[float]
    capture: NotRequired[str | None]
    hint: NotRequired[str]


@dataclass(frozen=True)
class Server:
    """A server program of the user's: the command, and the port that it listens on."""

    argv: Sequence[str]
    port: int


class Checker:
    """Does rows of the list."""

    def __init__(self) -> None:
        self._lab = Lab()

    def rows(self) -> list[Row]:
        """The list, in order; nothing is done yet."""
        rows: list[Row] = self._lab.ask("check-rows", timeout_s=_SERVER_S)["rows"]
        return rows

    def try_server(self, server: Server) -> None:
        """Has a server answer one ordinary request.

        Raises:
            LabError: It cannot be started, does not listen in time, or does not answer.
        """
        self._lab.ask("try-server", asdict(server), timeout_s=_SERVER_S)

    def check(
        self,
        rows: Sequence[Row],
        *,
        server: Server | None,
        captures: Path | None,
        jobs: int,
        observer: Observer,
    ) -> list[Row]:
        """Does `rows`, `jobs` at a time.

        Args:
            rows: Of those that `rows` gives.
            server: The server to examine; this kernel's client and our own server without.
            captures: Folder for a capture of each row.
            jobs: How many at a time.
            observer: Is told how many are done.

        Returns:
            Each row with `verdict`, `seen`, `packets`, `counters`, `elapsed_ms` and `capture`, in order; one
            that could not be done has the verdict `NOT_JUDGED`, and a `hint`.
        """
        observer.begin("rows", len(rows))
        pool = ThreadPoolExecutor(jobs)
        try:
            futures = [pool.submit(self._check, row, server, captures) for row in rows]
            for future in as_completed(futures):
                future.result()
                observer.advance()
            return [future.result() for future in futures]
        finally:
            self._lab.stop()
            pool.shutdown(cancel_futures=True)

    def _check(self, row: Row, server: Server | None, captures: Path | None) -> Row:
        if server and row["side"] != "server":
            why = "It examines this kernel's client; --server examines a server."
            return {**row, "verdict": "not applicable", "seen": why, "packets": [], "capture": None}
        file = captures / f"{row['id']}.pcapng" if captures else None
        job = {
            "row": row["id"],
            "server": asdict(server) if server else None,
            "capture": str(file.absolute()) if file else None,
        }
        try:
            seen = self._lab.ask("check", job, timeout_s=_ROW_S)
        except LabError as error:
            seen = {"verdict": NOT_JUDGED, "seen": error.message, "hint": error.hint, "packets": []}
        kept = file.name if file and file.exists() else None
        return cast(Row, {**row, **seen, "capture": kept})
