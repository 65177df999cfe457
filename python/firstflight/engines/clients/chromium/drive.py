"""Loads one page in one browser: `python -m firstflight.engines.clients.chromium.drive RESULT < JOB`.

Runs in the laboratory, so the browser has the laboratory's names and network. It reads its job from standard
input and writes the result to the file RESULT. Navigation starts when the browser is idle, so that the work
after its start does not affect the measurement.
"""

import html
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, CDPSession, Error, Page, Route, sync_playwright

from firstflight.engines.clients.chromium.browser import NO_SANDBOX, can_have_sandbox, flags, write_profile
from firstflight.engines.clients.chromium.network import CODINGS, Fetches, Targets
from firstflight.engines.clients.determinism import script
from firstflight.engines.clients.driver import MARKS, run, take_marks, wait_until_idle
from firstflight.engines.clients.job import Drive, DriveJob

_POLL_MS = 20.0
_WORKER_S = 5.0
"""Further time without events after which a worker's script that has no end event counts as ended."""
_FAVICON = "*://*/favicon.ico"
_VISITED_AT_ONCE = 6


def main(arguments: list[str]) -> int:
    """Controls the browser as standard input says; see `driver.run`."""
    return run(arguments, drive)


def drive(job: DriveJob, outcome: Drive) -> None:
    """Loads the page once. `outcome` gets the error, with all that was known before it."""
    with tempfile.TemporaryDirectory(prefix="firstflight-", ignore_cleanup_errors=True) as home:
        try:
            if job.sandbox and (os.geteuid() == 0 or not can_have_sandbox()):
                outcome.error, outcome.broken = NO_SANDBOX, True
                return
            outcome.sandboxed = job.sandbox
            with _browser(job, Path(home)) as context:
                _load(context, job, outcome)
        except Error as error:
            _fail(outcome, error)


@contextmanager
def _browser(job: DriveJob, home: Path) -> Iterator[BrowserContext]:
    write_profile(home / "profile", job)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            home / "profile",
            executable_path=job.browser,
            chromium_sandbox=job.sandbox,
            args=flags(job),
            # Shared memory is the laboratory's own, so the browser may use /dev/shm.
            ignore_default_args=["--disable-dev-shm-usage"],
            env={**os.environ, "HOME": str(home), "LD_PRELOAD": job.preload},
            record_har_path=job.har,
            record_har_content="omit",
            timeout=job.start_ms,
        )
        try:
            yield context
        finally:
            context.close()


def _load(context: BrowserContext, job: DriveJob, outcome: Drive) -> None:
    outcome.browser = context.browser.version if context.browser else ""
    page, fetches = context.pages[0], Fetches()
    session = context.new_cdp_session(page)
    Targets(
        session,
        fetches.note,
        blocked=[] if job.favicon else [_FAVICON],
        headers=CODINGS if job.hosts and job.clear_hosts else None,
    )
    marks = Marks(page, session)
    wait_until_idle()
    if job.visits:
        _visit(context, job)
        wait_until_idle()
    if job.clock_ms is not None:
        context.add_init_script(script(job.clock_ms, time.time() * 1000))
    deadline_s = time.monotonic() + job.timeout_ms / 1000
    try:
        page.goto(job.url, timeout=job.timeout_ms)
        _wait_until_quiet(page, fetches, job, deadline_s)
        if job.screenshot:
            page.screenshot(path=job.screenshot)
        marks.read(outcome)
    except Error as error:
        _fail(outcome, error)
    # When a page cannot be loaded, the browser shows an error page, which has marks of its own.
    outcome.started_ns = outcome.started_ns or fetches.started_ns
    outcome.fetches = fetches.finished((outcome.started_ns or 0) / 1e9)


def _visit(context: BrowserContext, job: DriveJob) -> None:
    """Sends each server two requests, with and without credentials: the browser keeps separate tickets.

    The pages that send them are made here, on a site that will be loaded. Each sends requests to few servers:
    on a slow link the others would wait for too long. The servers close the connections.
    """
    tags = ('<img src="{}">', '<img src="{}?anonymous" crossorigin>')
    page = context.new_page()
    for first in range(0, len(job.visits), _VISITED_AT_ONCE):
        visited = job.visits[first : first + _VISITED_AT_ONCE]
        images = "".join(tag.format(html.escape(url)) for url in visited for tag in tags)
        document, body = f"{job.visits[0]}/page{first}", f"<!doctype html>{images}"
        page.route(document, _answer(body))
        page.goto(document, timeout=job.timeout_ms)
    page.wait_for_timeout(job.quiet_ms)
    page.close()


def _answer(body: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=body, content_type="text/html")


def _wait_until_quiet(page: Page, fetches: Fetches, job: DriveJob, deadline_s: float) -> None:
    """Waits until all expected requests have ended, or no request was active for a while, or the deadline.

    A request that seems active may be a worker's script, whose end is not always reported.
    """
    expected = set(job.expected)
    while time.monotonic() < deadline_s and (
        fetches.under_way or not expected or not expected <= fetches.ended
    ):
        silent_s = time.monotonic() - fetches.changed_s - job.quiet_ms / 1000
        if silent_s > (_WORKER_S if fetches.under_way else 0) and fetches.awaits_workers_alone:
            return
        page.wait_for_timeout(_POLL_MS)


def _fail(outcome: Drive, error: Error) -> None:
    """Records the first error. One without `net::` means that the browser broke."""
    if outcome.error is None:
        outcome.error = error.message.splitlines()[0]
        outcome.broken = "net::" not in outcome.error


class Marks:
    """Reads the marks of the document that `page` has loaded.

    Args:
        page: The page.
        session: A DevTools session of `page`.
    """

    def __init__(self, page: Page, session: CDPSession) -> None:
        self._page = page
        self._session = session
        session.send("Performance.enable")

    def read(self, outcome: Drive) -> None:
        """Puts the marks into `outcome`; a mark that the page did not reach stays `None`."""
        found: dict[str, float | None] = self._page.evaluate(MARKS)
        outcome.started_ns = self._started_ns()
        take_marks(outcome, found)

    def _started_ns(self) -> int:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        by_name = {str(metric["name"]): float(metric["value"]) for metric in metrics}
        return round(by_name["NavigationStart"] * 1e9)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
