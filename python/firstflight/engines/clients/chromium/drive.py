"""Loads one page in one browser: `python -m firstflight.engines.clients.chromium.drive RESULT < JOB`.

Runs inside the laboratory, whose names and network the browser then has. Its job comes by standard input,
what came of it goes to the file RESULT. Navigation starts when the browser is up and has come to rest: what
it does after its start must not show in what is measured.
"""

import html
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, CDPSession, Error, Page, Route, sync_playwright

from firstflight.engines.clients.chromium.browser import can_be_locked_up, flags, write_profile
from firstflight.engines.clients.chromium.determinism import script
from firstflight.engines.clients.chromium.job import Drive, DriveJob
from firstflight.engines.clients.chromium.network import CODINGS, Fetches, Targets

GRACE_S = 5.0
"""How long it may take to say what came of a load, once that has ended or its time is up."""

NO_SANDBOX = "Chromium cannot have its sandbox here"
_POLL_MS = 20.0
_WORKER_S = 5.0
"""How much longer nothing must have happened where the script of a worker seems to be under way."""
_FAVICON = "*://*/favicon.ico"
_VISITED_AT_ONCE = 6


def main(arguments: list[str]) -> int:
    """Reads the job, drives the browser, writes the result; 0 even if the load failed: the result says so."""
    result = Path(arguments[0])
    job = DriveJob(**json.load(sys.stdin))
    outcome = Drive()
    with _last_resort(result, outcome, (job.start_ms + job.timeout_ms) / 1000 + GRACE_S):
        drive(job, outcome)
    result.write_text(json.dumps(outcome.to_json()))
    return 0


def drive(job: DriveJob, outcome: Drive) -> None:
    """Loads the page once. What goes wrong is in `outcome`, with all that was known before it did."""
    with tempfile.TemporaryDirectory(prefix="firstflight-", ignore_cleanup_errors=True) as home:
        try:
            if job.sandbox and (os.geteuid() == 0 or not can_be_locked_up()):
                outcome.error, outcome.broken = NO_SANDBOX, True
                return
            outcome.sandboxed = job.sandbox
            with _browser(job, Path(home)) as context:
                _load(context, job, outcome)
        except Error as error:
            _fail(outcome, error)


@contextmanager
def _last_resort(result: Path, outcome: Drive, limit_s: float) -> Iterator[None]:
    """Answers for a browser that does not, and ends this process."""

    def give_up() -> None:
        outcome.error, outcome.broken = f"the browser hung: no answer after {limit_s:g} s", True
        result.write_text(json.dumps(outcome.to_json()))
        os._exit(0)

    timer = threading.Timer(limit_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _browser(job: DriveJob, home: Path) -> Iterator[BrowserContext]:
    write_profile(home / "profile", job)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            home / "profile",
            executable_path=job.browser,
            chromium_sandbox=job.sandbox,
            args=flags(job),
            # The laboratory has a /dev/shm of its own.
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
    # A page that cannot be had leaves one of the browser's own, with marks of its own.
    outcome.started_ns = outcome.started_ns or fetches.started_ns
    outcome.fetches = fetches.finished((outcome.started_ns or 0) / 1e9)


def _visit(context: BrowserContext, job: DriveJob) -> None:
    """Asks every server for nothing, with the browser's credentials and without: these are different tickets.

    The pages that ask come from here, on a site that will be loaded. They ask few servers at a time: a slow
    link would keep others waiting for too long. The servers close the connections.
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
    """Returns when all expected has ended, when nothing was under way for a while, or at the deadline.

    What is under way may be the script of a worker whose end went unreported.
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
    """A browser that says `net::` works: it is the page that does not. The first failure is the cause."""
    if outcome.error is None:
        outcome.error = error.message.splitlines()[0]
        outcome.broken = "net::" not in outcome.error


_WINDOW_S = 0.1
_WINDOWS = 3
_AT_REST = 0.05
_TIMEOUT_S = 10.0


def wait_until_idle() -> None:
    """Returns when the processes below this one used at most 5 % of a core in three tenths of a second."""
    deadline = time.monotonic() + _TIMEOUT_S
    at_rest, before = 0, _cpu_ticks()
    most = max(1.0, _AT_REST * _WINDOW_S * os.sysconf("SC_CLK_TCK"))
    while at_rest < _WINDOWS and time.monotonic() < deadline:
        time.sleep(_WINDOW_S)
        now = _cpu_ticks()
        at_rest = at_rest + 1 if now - before <= most else 0
        before = now


def _cpu_ticks() -> int:
    """Processor time of this process' descendants, clock ticks (proc_pid_stat(5))."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(entry / "stat")):
            children.setdefault(int(fields[1]), []).append(
                (int(entry.name), int(fields[11]) + int(fields[12]))
            )
    # By its number in this /proc, which may be another PID namespace's.
    total, waiting = 0, [int(Path("/proc/self").readlink().name)]
    while waiting:
        for pid, ticks in children.get(waiting.pop(), []):
            total += ticks
            waiting.append(pid)
    return total


def _fields(stat: Path) -> list[str]:
    """What follows the name, which stands in brackets and may hold anything."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


_MARKS = """() => new Promise(resolve => {
    const [navigation] = performance.getEntriesByType("navigation");
    const paint = name => performance.getEntriesByName(name, "paint")[0]?.startTime;
    const answer = lcp => resolve({
        load: navigation.loadEventStart,
        first_byte: navigation.responseStart,
        dom_content_loaded: navigation.domContentLoadedEventStart,
        first_paint: paint("first-paint"),
        first_contentful_paint: paint("first-contentful-paint"),
        lcp,
    });
    new PerformanceObserver(list => answer(list.getEntries().at(-1).startTime))
        .observe({type: "largest-contentful-paint", buffered: true});
    setTimeout(answer, 200);
})"""


class Marks:
    """Reads the marks of whatever `page` has loaded.

    Args:
        page: The page.
        session: A DevTools session of it.
    """

    def __init__(self, page: Page, session: CDPSession) -> None:
        self._page = page
        self._session = session
        session.send("Performance.enable")

    def read(self, outcome: Drive) -> None:
        """Puts the marks into `outcome`; those that were never reached stay `None`."""
        found: dict[str, float | None] = self._page.evaluate(_MARKS)
        outcome.started_ns = self._started_ns()
        outcome.plt_ms = found.pop("load") or None
        outcome.first_byte_ms = found.pop("first_byte") or None
        outcome.marks = {f"{name}_ms": found[name] for name in sorted(found)}

    def _started_ns(self) -> int:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        by_name = {str(metric["name"]): float(metric["value"]) for metric in metrics}
        return round(by_name["NavigationStart"] * 1e9)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
