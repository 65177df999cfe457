"""Headless Chromium, spoken to over a pair of pipes with the DevTools protocol."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from synth_site import program

FLAGS = [
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

# The protocol is read from descriptor 3 and written to descriptor 4.
WIRED = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
for descriptor, pipe in enumerate(pipes, 3):
    os.dup2(pipe, descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """A browser that loads one page after another, each with an empty cache and a proxy of its own."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [program("chromium"), *FLAGS, f"--user-data-dir={profile}"]
        wired = [sys.executable, "-c", WIRED, str(to_browser), str(from_browser), *command]
        quiet = subprocess.DEVNULL
        self._temporary = tempfile.TemporaryDirectory(prefix="ff-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            wired,
            pass_fds=(to_browser, from_browser),
            stdout=quiet,
            stderr=quiet,
            # A folder of the test, so that what Chromium leaves there is deleted. Its path is short, because
            # the name of Chromium's socket in it may have at most 108 bytes.
            env={**os.environ, "TMPDIR": self._temporary.name},
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None
        self._loaded = False

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._temporary.cleanup()

    @contextmanager
    def loaded(self, url: str, port: int) -> Iterator[None]:
        """Opens `url` through a proxy on `port` of 127.0.0.1; the context begins after its load event."""
        proxy = {"proxyServer": f"http://127.0.0.1:{port}"}
        context = self._call("Target.createBrowserContext", proxy)
        target = self._call("Target.createTarget", {"url": "about:blank", **context})
        attached = self._call("Target.attachToTarget", {**target, "flatten": True})
        self._session, self._loaded = attached["sessionId"], False
        try:
            self._call("Page.enable", {})
            self._call("Page.navigate", {"url": url})
            while not self._loaded:
                self._receive()
            yield
        finally:
            self._session = None
            self._call("Target.disposeBrowserContext", context)

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401
        """The value of a JavaScript expression in the page, awaited if it is a promise."""
        call = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._call("Runtime.evaluate", call)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 1 << 16)
            assert chunk, "Chromium ended"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("sessionId") == self._session:
            self._loaded |= message.get("method") == "Page.loadEventFired"
        return message
