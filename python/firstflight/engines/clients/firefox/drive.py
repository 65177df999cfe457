"""Loads one page in one Firefox: `python -m firstflight.engines.clients.firefox.drive RESULT < JOB`.

Runs in the laboratory, so the browser has the laboratory's names and network; see `chromium.drive`. Scripts
in the browser's own window (`--remote-allow-system-access`) add the laboratory's authority, and delete
everything that a visit before the load left, apart from tickets.
"""

import base64
import html
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firstflight.engines.clients.determinism import script
from firstflight.engines.clients.driver import MARKS, run, take_marks, wait_until_idle
from firstflight.engines.clients.firefox.bidi import Bidi, BidiError, Params
from firstflight.engines.clients.firefox.network import EVENTS, Fetches
from firstflight.engines.clients.firefox.profile import arguments, write_profile
from firstflight.engines.clients.job import Drive, DriveJob

NO_SANDBOX = "Firefox cannot have its sandbox here"
_POLL_S = 0.02
_END_S = 5.0
_WINDOW = {"width": 1280, "height": 720}

_TRUST = """Cc["@mozilla.org/security/x509certdb;1"].getService(Ci.nsIX509CertDB)
    .addCertFromBase64({certificate}, "C,,")"""
_SANDBOX = 'Services.sysinfo.getProperty("canSandboxContent")'
_VISITED_AT_ONCE = 6
_FORGET = """Services.cookies.removeAll(); Services.cache2.clear(); Services.dns.clearCache(true)"""
"""Deletes cookies, the HTTP cache and the DNS cache. TLS tickets stay."""
_HANG_UP = 'Services.obs.notifyObservers(null, "net:prune-all-connections")'
"""Closes idle connections. Firefox also forgets which servers speak HTTP/2."""


def main(arguments: list[str]) -> int:
    """Controls the browser as standard input says; see `driver.run`."""
    return run(arguments, drive)


def drive(job: DriveJob, outcome: Drive) -> None:
    """Loads the page once. `outcome` gets the error, with all that was known before it."""
    with tempfile.TemporaryDirectory(prefix="firstflight-", ignore_cleanup_errors=True) as home:
        try:
            with _browser(job, Path(home)) as firefox:
                firefox.load(job, outcome)
        except (BidiError, OSError) as error:
            _fail(outcome, error)


def _fail(outcome: Drive, error: Exception) -> None:
    """Records the first error. If the browser answered, the error is the page's; else the browser broke."""
    if outcome.error is None:
        outcome.error = str(error)
        outcome.broken = not (isinstance(error, BidiError) and error.is_refused)


@contextmanager
def _browser(job: DriveJob, home: Path) -> Iterator["Firefox"]:
    profile, said = home / "profile", home / "said"
    write_profile(profile, job)
    quiet = {} if job.sandbox else {"MOZ_DISABLE_CONTENT_SANDBOX": "1"}
    env = {**os.environ, "HOME": str(home), "LD_PRELOAD": job.preload, "MOZ_CRASHREPORTER_DISABLE": "1"}
    with said.open("wb") as output:
        process = subprocess.Popen(
            arguments(profile, job),
            env={**env, **quiet},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        firefox = Firefox(_port(profile, process, job.start_ms / 1000, said))
        yield firefox
        firefox.end()
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        # The result is known, and the laboratory ends whatever is left.
        pass
    finally:
        process.kill()


def _port(profile: Path, process: subprocess.Popen[bytes], limit_s: float, said: Path) -> int:
    """The port that the browser listens on, as soon as it does."""
    file, deadline_s = profile / "WebDriverBiDiServer.json", time.monotonic() + limit_s
    while process.poll() is None:
        try:
            return int(json.loads(file.read_text())["ws_port"])
        except (OSError, ValueError):
            time.sleep(_POLL_S)
        if time.monotonic() > deadline_s:
            raise BidiError(f"the browser did not start within {limit_s:g} s")
    lines = said.read_text(errors="replace").splitlines()
    last = f": {lines[-1]}" if lines else ""
    raise BidiError(f"the browser ended with code {process.returncode} before it listened{last}")


class Firefox:
    """A browser with one tab.

    Args:
        port: The port that it listens on.
    """

    def __init__(self, port: int) -> None:
        self._fetches = Fetches()
        self._blocked: list[str] = []
        self._bidi = Bidi(port, self._note)
        capabilities = self._bidi.call("session.new", {"capabilities": {}})["capabilities"]
        self.version = str(capabilities["browserVersion"])
        self._tab = self._bidi.call("browsingContext.getTree")["contexts"][0]["context"]
        self._window = self._bidi.call("browsingContext.getTree", {"moz:scope": "chrome"})["contexts"][0][
            "context"
        ]

    def load(self, job: DriveJob, outcome: Drive) -> None:
        """Loads the page once."""
        outcome.browser = self.version
        outcome.sandboxed = job.sandbox and self._own(_SANDBOX) is True
        if job.sandbox and not outcome.sandboxed:
            outcome.error, outcome.broken = NO_SANDBOX, True
            return
        if job.authority:
            self._own(_TRUST.format(certificate=json.dumps(_certificate(Path(job.authority)))))
        self._call("browsingContext.setViewport", context=self._tab, viewport=_WINDOW)
        self._call("session.subscribe", events=list(EVENTS))
        wait_until_idle()
        if job.visits:
            self._visit(job)
            wait_until_idle()
        if job.clock_ms is not None:
            source = script(job.clock_ms, time.time() * 1000)
            self._call("script.addPreloadScript", functionDeclaration=f"() => {{ {source} }}")
        self._fetches = Fetches()
        deadline_s = time.monotonic() + job.timeout_ms / 1000
        try:
            self._navigate(job.url, job.timeout_ms)
            self._wait_until_quiet(job, deadline_s)
            if job.screenshot:
                picture = self._call("browsingContext.captureScreenshot", context=self._tab)["data"]
                Path(job.screenshot).write_bytes(base64.b64decode(picture))
            # In a sandbox of its own, so that changes by the page's scripts have no effect.
            target = {"context": self._tab, "sandbox": "firstflight"}
            take_marks(outcome, json.loads(str(self._evaluate(f"({MARKS})().then(JSON.stringify)", target))))
        except BidiError as error:
            _fail(outcome, error)
        if started_ms := self._fetches.started_ms:
            outcome.started_ns = _monotonic_ns(started_ms)
        outcome.fetches = self._fetches.finished()

    def end(self) -> None:
        """Tells the browser to quit."""
        self._call("browser.close")

    def _visit(self, job: DriveJob) -> None:
        """Sends each server two requests, with and without credentials: the browser keeps separate tickets.

        Over TCP the servers close the connections.
        """
        self._ask(job, 1)
        if job.quic:
            # Over QUIC, if the server sent no NEW_TOKEN (RFC 9000, section 8.1.3), Firefox uses a ticket only
            # three probe timeouts after its arrival. It sets no timer for that: another event must trigger
            # it.
            self._bidi.listen(_probe_timeouts_s(job))
            self._ask(job, 2)
        self._navigate("about:blank", job.timeout_ms)
        self._own(_FORGET)
        if job.quic:
            self._own(_HANG_UP)
            # A closed connection still counts as open for three more probe timeouts (RFC 9000, section 10.2).
            self._bidi.listen(_probe_timeouts_s(job))

    def _ask(self, job: DriveJob, turn: int) -> None:
        """Sends the requests from pages made here, on a site that will be loaded, few servers at a time."""
        deadline_s = time.monotonic() + job.timeout_ms / 1000
        tags = ('<img src="{}{}">', '<img src="{}{}" crossorigin>')
        queries = ("?lasting", "?lasting") if job.quic else ("", "?anonymous")
        for first in range(0, len(job.visits), _VISITED_AT_ONCE):
            visited = job.visits[first : first + _VISITED_AT_ONCE]
            images = "".join(
                tag.format(html.escape(url), query)
                for url in visited
                for tag, query in zip(tags, queries, strict=True)
            )
            document = f"{job.visits[0]}/page{turn}-{first}"
            self._fetches = Fetches()
            self._serve(document, f"<!doctype html>{images}", deadline_s)
            # One more: the page itself.
            self._wait_until_ended(2 * len(visited) + 1, deadline_s)

    def _serve(self, url: str, body: str, deadline_s: float) -> None:
        """Navigates to a page whose body is given here and not by a server."""
        pattern = {"type": "string", "pattern": url}
        self._call("network.addIntercept", phases=["beforeRequestSent"], urlPatterns=[pattern])
        # The navigation is answered only after the page's response, which is provided below.
        self._bidi.post("browsingContext.navigate", {"context": self._tab, "url": url, "wait": "none"})
        while not self._blocked and time.monotonic() < deadline_s:
            self._bidi.listen(_POLL_S)
        fields = [{"name": "Content-Type", "value": {"type": "string", "value": "text/html"}}]
        for request in self._blocked:
            answer = {"statusCode": 200, "headers": fields, "body": {"type": "string", "value": body}}
            self._call("network.provideResponse", request=request, **answer)
        self._blocked.clear()

    def _wait_until_ended(self, requests: int, deadline_s: float) -> None:
        """Waits until at least this many requests were made and all have ended, or until the deadline."""
        while (
            len(self._fetches.finished()) < requests or self._fetches.under_way
        ) and time.monotonic() < deadline_s:
            self._bidi.listen(_POLL_S)

    def _wait_until_quiet(self, job: DriveJob, deadline_s: float) -> None:
        """Waits until all expected requests have ended, none was active for a while, or the deadline."""
        expected, fetches = set(job.expected), self._fetches
        while time.monotonic() < deadline_s and (
            fetches.under_way or not expected or not expected <= fetches.ended
        ):
            if not fetches.under_way and time.monotonic() - fetches.changed_s > job.quiet_ms / 1000:
                return
            self._bidi.listen(_POLL_S)

    def _note(self, event: str, params: Params) -> None:
        self._fetches.note(event, params)
        if params.get("isBlocked"):
            self._blocked.append(params["request"]["request"])

    def _navigate(self, url: str, timeout_ms: float) -> None:
        params = {"context": self._tab, "url": url, "wait": "complete"}
        self._bidi.call("browsingContext.navigate", params, timeout_ms / 1000)

    def _own(self, expression: str) -> object:
        """The result of a script in the browser's own window."""
        return self._evaluate(expression, {"context": self._window})

    def _evaluate(self, expression: str, target: Params) -> object:
        answer = self._call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise BidiError(f"script.evaluate: {answer['exceptionDetails']['text']}", is_refused=True)
        return answer["result"].get("value")

    def _call(self, method: str, **params: object) -> Params:
        return self._bidi.call(method, params)


def _probe_timeouts_s(job: DriveJob) -> float:
    """More than three probe timeouts (RFC 9002, section 6.2.1): 9 RTTs where the RTT was measured once."""
    return (12 * job.rtt_ms + 300) / 1000


def _certificate(file: Path) -> str:
    """The one certificate of a file (PEM, RFC 7468), in base64."""
    inside = file.read_text().partition("-----BEGIN CERTIFICATE-----")[2]
    return "".join(inside.partition("-----END CERTIFICATE-----")[0].split())


def _monotonic_ns(unix_ms: float) -> int:
    """Converts a recent time, ms since 1970, to the monotonic clock that the laboratory uses, ns."""
    return round(unix_ms * 1e6) + time.monotonic_ns() - time.time_ns()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
