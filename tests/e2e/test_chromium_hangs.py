"""Browsers that crash, stop or never finish: the load fails, is made once more, and is reported."""

import sys
import textwrap
from pathlib import Path

import pytest
from small_pages import document, load, page
from synth_site import program as installed

from firstflight.engines.clients.browser import TimeLimits
from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.clients.job import DriveJob
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import LabJob
from firstflight.experiment.recorder import Outcome, is_settled
from firstflight.experiment.run import run_experiment
from firstflight.experiment.setup import threads
from firstflight.model.load import PlannedLoad
from firstflight.model.plan import Plan
from firstflight.pages import LoadedPage
from firstflight.results import Journal, LoadRecord

LOAD_MS = 4_000
LIMITS = TimeLimits(start_ms=8_000, load_ms=LOAD_MS)
PLAN = Plan(pages=("slow",), rtt=(20.0,), mode=("tcp",), client="chromium", repeats=1, jobs=1)
SLOW = page("slow", document(server_ms=1_000.0))

FLAG = "--treacherous"
# A program that replaces itself with the browser. With FLAG it first starts a child, which sends the signal
# to the browser once the browser has a connection to port 80.
TREACHEROUS = """\
    #!{python}
    import os, signal, sys, time
    browser = os.getpid()

    def connected():
        lines = open("/proc/self/net/tcp").read().splitlines()[1:]
        return any(line.split()[2].endswith(":0050") and line.split()[3] == "01" for line in lines)

    if {flag!r} in sys.argv and os.fork() == 0:
        while not connected():
            time.sleep(0.02)
        os.kill(browser, signal.{signal})
        os._exit(0)
    os.execv({browser!r}, [{browser!r}, *sys.argv[1:]])
"""


class Treacherous(Chromium):
    """A browser that receives `signal` in the middle of its first load, or of every load if `always`."""

    def __init__(self, folder: Path, signal: str, *, always: bool) -> None:
        browser = str(find_browser(installed("chromium")))
        # When root runs the tests, the browser runs as another user, who must be able to enter this folder.
        folder.chmod(0o755)
        program = folder / "browser"
        values = {"python": sys.executable, "browser": browser, "signal": signal, "flag": FLAG}
        program.write_text(textwrap.dedent(TREACHEROUS).format(**values))
        program.chmod(0o755)
        super().__init__(program, limits=LIMITS)
        self._always, self._loads = always, 0

    def _drive(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> DriveJob:
        drive = super()._drive(job, planned, page)
        self._loads += 1
        if self._always or self._loads == 1:
            drive.flags.append(FLAG)
        return drive


def run(browser: Chromium, slow: LoadedPage, folder: Path) -> tuple[Outcome, list[tuple[LoadRecord, bool]]]:
    """A run of one load: its attempts, and whether each is final.

    Leaves out those repeated for a late relay.
    """
    engine = Emulator(clients={"chromium": browser})
    outcome = run_experiment(PLAN, [slow], threads(PLAN, engine), folder)
    attempts = ((record, is_settled(record)) for record in Journal(folder / "journal.jsonl").attempts())
    return outcome, [(record, settled) for record, settled in attempts if settled or record.get("broken")]


@pytest.mark.usefixtures("emulator")
def test_a_load_whose_browser_crashes_is_made_once_more(tmp_path: Path) -> None:
    outcome, told = run(Treacherous(tmp_path, "SIGSEGV", always=False), SLOW, tmp_path / "out")
    assert [(record["load"]["status"], settled) for record, settled in told] == [
        ("failed", False),
        ("ok", True),
    ]
    assert told[0][0].get("broken") is True
    assert "broken" not in told[1][0]
    assert outcome.empty_cells == 0


@pytest.mark.usefixtures("emulator")
def test_a_browser_that_always_stops_fails_the_load_for_good(tmp_path: Path) -> None:
    outcome, told = run(Treacherous(tmp_path, "SIGSTOP", always=True), SLOW, tmp_path / "out")
    assert [(record["load"]["status"], settled) for record, settled in told] == [
        ("failed", False),
        ("failed", True),
    ]
    for record, _ in told:
        assert "hung" in str(record["load"]["error"]), record["load"]
    assert outcome.empty_cells == 1


@pytest.mark.usefixtures("emulator")
def test_a_page_whose_script_never_ends_fails_at_the_loads_limit(tmp_path: Path) -> None:
    body = b"<!doctype html><script>for (;;);</script>"
    file = tmp_path / "document.html"
    file.write_bytes(body)
    endless = LoadedPage(page("slow", document(body_bytes=len(body))).page, {0: file})
    browser = Chromium(find_browser(installed("chromium")), limits=LIMITS)
    record = load(Emulator(clients={"chromium": browser}), endless, "tcp", client="chromium")
    assert record["load"]["status"] == "failed"
    assert f"{LOAD_MS}ms" in str(record["load"]["error"])
