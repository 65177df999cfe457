"""One page recorded: loaded as often as it takes, and what crossed the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firstflight.engines.clients.chromium.job import Drive
from firstflight.record.browse import NETLOG, SCREENSHOT, Browsing, browse
from firstflight.record.netlog import open_netlog
from firstflight.record.pairs import Lost, Pair, pair
from firstflight.record.wire import exchanges_of

_TOO_LATE = "Timeout"
"""How Playwright says that there was no load event in time."""


@dataclass(frozen=True)
class Visit:
    """One page load.

    Attributes:
        asked: The URL that was to be recorded.
        pairs: Requests and answers, in the order of being sent.
        lost: What could not be had.
        drive: What the browser said of the load.
        epoch_ms: Added to the monotonic clock it gives ms since 1970.
        screenshot: A picture of the page, if there is one.
        attempts: How often the page was loaded for it.
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
        """Where the page begins: what was asked for, or its https form if the browser insists on that."""
        return self.pairs[0].exchange.url if self.pairs else self.asked

    @property
    def began_ms(self) -> float:
        """Navigation start, monotonic clock."""
        return (self.drive.started_ns or 0) / 1e6

    @property
    def had(self) -> bool:
        """Whether the page itself could be had."""
        return bool(self.pairs) and (self.drive.error is None or self.too_late)

    @property
    def too_late(self) -> bool:
        """Whether there was no load event in time."""
        return _TOO_LATE in (self.drive.error or "")

    @property
    def problem(self) -> str:
        """Why the page could not be had, or what is wrong with it; empty if nothing is."""
        if not self.had:
            return self.drive.error or "no answer"
        if self.too_late:
            return "no load event in time; what came until then is recorded"
        status = next((p.exchange.status for p in self.pairs if not p.exchange.location), 0)
        return f"answered with status {status}" if status >= 400 else ""


def visit(
    url: str, browsing: Browsing, folder: Path, *, retries: int, starting: Callable[[int], None]
) -> Visit:
    """Loads a page, once more if anything was lost that might be had the next time.

    Args:
        url: The page.
        browsing: How.
        folder: For what is on disk of it.
        retries: How often at most it is loaded again.
        starting: Is told the number of each attempt, from 1.

    Returns:
        The attempt that lost least.
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
    # As large as all that was transferred, several times over.
    (folder / NETLOG).unlink(missing_ok=True)
    pairs, lost = pair(exchanges, drive.fetches)
    epoch_ms = log.epoch_ms if log else 0.0
    return Visit(url, pairs, lost, drive, epoch_ms, folder / SCREENSHOT, number)
