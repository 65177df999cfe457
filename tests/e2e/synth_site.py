"""A page's synthesised bodies on a local HTTP server."""

import json
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import firstflight
from firstflight import _core

Profile = dict[str, Any]

EMBEDDED = Path(firstflight.__file__).parent / "pages" / "embedded"
PAPER = ["amazon", "nytimes", "wikipedia", "wsj"]
DEADLINE_S = 60.0


def program(name: str) -> str:
    """The path of the program `name`.

    If it is not installed, the test fails in CI and is skipped elsewhere.
    """
    if found := shutil.which(name):
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{name} is not installed")
    pytest.skip(f"{name} is not installed")


def embedded(name: str) -> Profile:
    """An embedded profile with http URLs only; the last label of each host becomes as many letters `t`.

    The real hosts are on Chromium's HSTS preload list: Chromium would request them with https in any case.
    """
    page: Profile = json.loads((EMBEDDED / f"{name}.json").read_text())
    for resource in page["resources"]:
        resource["url"] = re.sub(
            r"^https?://([^/:?]*\.)?(\w+)",
            lambda host: f"http://{host[1] or ''}{'t' * len(host[2])}",
            resource["url"],
        )
    return page


class Site:
    """All origins of a page on one port of 127.0.0.1: the Host header tells them apart."""

    def __init__(self, page: Profile) -> None:
        self.page = json.loads(_core.check_page(json.dumps(page)))
        text, resources = json.dumps(page), self.page["resources"]
        self.answers = {
            resource["url"]: (resource, _core.synthesize(text, index), location(resources, index))
            for index, resource in enumerate(resources)
        }
        self.expected = {resource["url"] for resource in resources}
        for index in range(len(resources)):
            self.expected -= {resources[lost]["url"] for lost in _core.unplaced(text, index)}
        self._hosts = {urlsplit(url).netloc for url in self.answers}
        self._asked: list[str] = []
        self._changed = threading.Condition()

    @property
    def asked(self) -> Counter[str]:
        """How often each URL was requested.

        Requests to hosts outside the page, the browser's own, do not count.
        """
        return Counter(url for url in self._asked if urlsplit(url).netloc in self._hosts)

    def hold(self, url: str) -> threading.Event:
        """Delays the answer to `url` until the caller sets the event that this returns."""
        self.answers[url][0]["held"] = threading.Event()
        event: threading.Event = self.answers[url][0]["held"]
        return event

    def wait_for(self, urls: set[str]) -> None:
        """Waits until all `urls` have been requested, or until the deadline."""
        with self._changed:
            self._changed.wait_for(lambda: urls <= self.asked.keys(), DEADLINE_S)

    @contextmanager
    def served(self) -> Iterator[int]:
        """Serves the page while the context lasts; gives the port."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                site._answer(self)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        absolute = request.path.startswith("http://")  # as a proxy is asked
        url = request.path if absolute else f"http://{request.headers['Host']}{request.path}"
        with self._changed:
            self._asked.append(url)
            self._changed.notify_all()
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        resource, body, target = self.answers.get(url, ({"status": 404, "mime": "text/plain"}, b"", None))
        time.sleep(resource.get("server_ms", 0) / 1000)
        if held := resource.get("held"):
            held.wait(DEADLINE_S)
        try:
            send(request, resource, body, target)
        except ConnectionError:
            request.close_connection = True


def send(request: BaseHTTPRequestHandler, resource: Profile, body: bytes, target: str | None) -> None:
    """Answers as the page says, with CORS open to all origins as in the laboratory."""
    request.send_response(resource.get("status", 200))
    request.send_header("Access-Control-Allow-Origin", "*")
    if resource["mime"]:
        request.send_header("Content-Type", resource["mime"])
    if target:
        request.send_header("Location", target)
    if resource.get("status") not in (204, 304):
        request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def location(resources: list[Profile], index: int) -> str | None:
    """Where resource `index` redirects to."""
    for resource in resources:
        by = resource.get("initiator")
        if by and by["resource"] == index and by["via"] == "redirect":
            return str(resource["url"])
    return None
