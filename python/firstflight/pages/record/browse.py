"""Records one page: loads it in unchanged Chromium, repeatedly if needed, and reads what crossed the wire."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firstflight.engines.clients.chromium.browser import FEATURES_OFF
from firstflight.engines.clients.job import Drive, DriveJob
from firstflight.pages.record.wire import Lost, Pair, exchanges_of, open_netlog, pair

NETLOG, SCREENSHOT = "net.json", "page.png"
"""Names of the files that a browser writes into its folder."""

_QUIET_MS = 1_500
"""After the load event the page is done when no request was active for this time."""

_DRIVER = "firstflight.pages.record.driver"
_START_S = 90.0
"""How long starting, becoming idle and ending may take in addition to the load."""
_END_S = 15.0
_HOSTS = Path("/etc/hosts")
_LONGEST = 60
"""Longest folder, bytes: a browser adds up to 45 for its socket."""
_SHORT = "/tmp"
_TOO_LATE = "Timeout"
"""Playwright's error when there was no load event in time."""


@dataclass(frozen=True)
class Browsing:
    """How pages are loaded.

    Attributes:
        browser: The browser's program.
        timeout_ms: Limit for loading a page.
        sandbox: Whether the browser must have its own sandbox.
    """

    browser: Path
    timeout_ms: int
    sandbox: bool = True


def browse(url: str, browsing: Browsing, folder: Path) -> Drive:
    """Loads a page in a fresh browser.

    Args:
        url: The page.
        browsing: How it is loaded.
        folder: Folder for the browser's files: `NETLOG`, `SCREENSHOT`, and its profile while it runs.
    """
    with _temporary(folder) as temporary:
        return _drive(url, browsing, folder, temporary)


def _drive(url: str, browsing: Browsing, folder: Path, temporary: str) -> Drive:
    result = folder / "result.json"
    writable = [str(folder), temporary] if browsing.sandbox else []
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", _DRIVER, str(result), *writable],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": temporary},
        start_new_session=True,
    )
    job = json.dumps(_job(url, browsing, folder).to_json()).encode()
    try:
        _, output = process.communicate(job, timeout=_START_S + browsing.timeout_ms / 1000)
    except subprocess.TimeoutExpired:
        _end(process)
        return Drive(error="the browser hung", broken=True)
    except BaseException:
        _end(process)
        raise
    return _result(result, output)


@contextmanager
def _temporary(folder: Path) -> Iterator[str]:
    """A folder for the browser's profile and socket, whose path is limited to 108 bytes (unix(7))."""
    if len(os.fsencode(folder)) <= _LONGEST:
        yield str(folder)
        return
    with tempfile.TemporaryDirectory(prefix="firstflight-", dir=_SHORT, ignore_cleanup_errors=True) as short:
        yield short


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the driver; waits for its standard error to close, when its child processes have ended too."""
    process.terminate()
    try:
        process.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _job(url: str, browsing: Browsing, folder: Path) -> DriveJob:
    # A dictionary comes from an earlier response. Without it the recorded bytes could not be decoded.
    off = ",".join([*FEATURES_OFF, "CompressionDictionaryTransport"])
    return DriveJob(
        url=url,
        browser=str(browsing.browser),
        preload=os.environ.get("LD_PRELOAD", ""),
        hosts=None,
        clear_hosts=_laboratory_hosts(),
        timeout_ms=browsing.timeout_ms,
        quiet_ms=_QUIET_MS,
        sandbox=browsing.sandbox,
        authority=_authority(),
        screenshot=str(folder / SCREENSHOT),
        flags=[
            f"--disable-features={off}",
            f"--log-net-log={folder / NETLOG}",
            "--net-log-capture-mode=Everything",
        ],
    )


def _laboratory_hosts() -> list[str]:
    """In a laboratory, all of its host names: Chromium must not request any of them by https only."""
    if "FIRSTFLIGHT_ECHO" not in os.environ:
        return []
    lines = (line.partition("#")[0].split() for line in _HOSTS.read_text().splitlines())
    return [name for line in lines for name in line[1:]]


def _authority() -> str | None:
    """The certificate of the laboratory's authority; `None` outside a laboratory."""
    file = os.environ.get("FIRSTFLIGHT_CA", "")
    return file if file and Path(file).is_file() else None


def _result(file: Path, output: bytes) -> Drive:
    try:
        return Drive.from_json(json.loads(file.read_text()))
    except (OSError, ValueError):
        last = output.decode(errors="replace").strip().rpartition("\n")[2]
        return Drive(error=f"the browser's driver failed: {last[:200] or 'it says nothing'}", broken=True)


@dataclass(frozen=True)
class Visit:
    """One page load.

    Attributes:
        asked: The URL that was to be recorded.
        pairs: Requests and responses, in the order in which they were sent.
        lost: Requests without a complete response.
        drive: What the browser reported of the load.
        epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
        screenshot: A screenshot of the page; `None`: there is none.
        attempts: How often the page was loaded.
    """

    asked: str
    pairs: list[Pair]
    lost: list[Lost]
    drive: Drive
    epoch_ms: float
    screenshot: Path
    attempts: int

    @property
    def url(self) -> str:
        """The page's first URL: the requested one, or its https form if the browser insists on https."""
        return self.pairs[0].exchange.url if self.pairs else self.asked

    @property
    def began_ms(self) -> float:
        """Navigation start, monotonic clock."""
        return (self.drive.started_ns or 0) / 1e6

    @property
    def had(self) -> bool:
        """Whether the page itself was received."""
        return bool(self.pairs) and (self.drive.error is None or self.too_late)

    @property
    def too_late(self) -> bool:
        """Whether the load event did not come in time."""
        return _TOO_LATE in (self.drive.error or "")

    @property
    def problem(self) -> str:
        """Why the page was not received, or what is wrong with it; empty if nothing is."""
        if not self.had:
            return self.drive.error or "no answer"
        if self.too_late:
            return "no load event in time; what came until then is recorded"
        status = next((p.exchange.status for p in self.pairs if not p.exchange.location), 0)
        return f"answered with status {status}" if status >= 400 else ""


def visit(
    url: str, browsing: Browsing, folder: Path, *, retries: int, starting: Callable[[int], None]
) -> Visit:
    """Loads a page, and again if something was lost that another attempt may get.

    Args:
        url: The page.
        browsing: How it is loaded.
        folder: Folder for its files.
        retries: How often at most it is loaded again.
        starting: Called with the number of each attempt, from 1.

    Returns:
        The attempt with the fewest losses.
    """
    made: list[Visit] = []
    for attempt in range(1, retries + 2):
        starting(attempt)
        made.append(_attempt(url, browsing, folder / f"{attempt}", attempt))
        if made[-1].had and all(lost.lasting for lost in made[-1].lost):
            break
    return min(made, key=lambda visit: (not visit.had, len(visit.lost)))


def _attempt(url: str, browsing: Browsing, folder: Path, number: int) -> Visit:
    bodies = folder / "bodies"
    bodies.mkdir(parents=True)
    drive = browse(url, browsing, folder)
    log = open_netlog(folder / NETLOG)
    exchanges = exchanges_of(log, bodies) if log else []
    # Its size is several times that of all that was transferred.
    (folder / NETLOG).unlink(missing_ok=True)
    pairs, lost = pair(exchanges, drive.fetches)
    epoch_ms = log.epoch_ms if log else 0.0
    return Visit(url, pairs, lost, drive, epoch_ms, folder / SCREENSHOT, number)
