"""Chromium sends no packet out of its laboratory, and makes no requests of its own there.

The page refers to 30 hosts that it was not recorded with. Outside, a packet socket of the host reads every
packet on every interface while the laboratory runs. None may have an address of a laboratory or hold the name
of one of these hosts. Inside, the tests read the browser's own network log.
"""

import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from small_pages import assert_ok, document, load, page
from synth_site import program as installed

from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.clients.job import DriveJob
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import LabJob, Record
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage, open_pages

STRANGERS = 30
NET_LOG = "/dev/shm/net.json"
"""A path inside the laboratory to which the browser may write."""
ALL_PROTOCOLS = 3
"""ETH_P_ALL (packet(7))."""
LABORATORY = bytes((198, 18)), bytes((198, 19))
"""The first two bytes of the addresses of laboratories, 198.18.0.0/15."""


class Logging(Chromium):
    """Keeps the browser's network log."""

    def __init__(self, browser: Path, log: Path) -> None:
        super().__init__(browser)
        self._log = log

    def _drive(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> DriveJob:
        drive = super()._drive(job, planned, page)
        drive.flags.append(f"--log-net-log={NET_LOG}")
        return drive

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        equipped = super().equip(job, planned, page)
        equipped["client"]["keeps"][NET_LOG] = str(self._log)
        return equipped


class Outside:
    """Collects the host's packets that hold `mark` or have an address of a laboratory."""

    def __init__(self, mark: bytes) -> None:
        self.packets = 0
        self.found: list[bytes] = []
        self._mark = mark
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
        self._socket.settimeout(0.1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @contextmanager
    def watching(self) -> Iterator["Outside"]:
        """Reads every packet of every interface while the context lasts."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()
            self._socket.close()

    def _watch(self) -> None:
        while (packet := self._next()) is not None:
            self.packets += 1
            ends = (packet[12:14], packet[16:18]) if packet[0] >> 4 == 4 else ()
            if self._mark in packet or any(end in LABORATORY for end in ends):
                self.found.append(packet)

    def _next(self) -> bytes | None:
        """The next packet.

        After the end of the watch, the rest of what had arrived by then, and then `None`.
        """
        while True:
            if self._ended.is_set():
                self._socket.setblocking(False)
            try:
                return self._socket.recv(65_536)
            except TimeoutError:
                continue
            except BlockingIOError:
                return None


def crowded(folder: Path, mark: str) -> LoadedPage:
    """A page that refers to 30 unrecorded hosts with images, scripts, frames and resource hints."""
    hosts = [f"{mark}-{number}.example.com" for number in range(STRANGERS)]
    body = "<!doctype html>" + "".join(
        f"<link rel=preconnect href=http://{host}><link rel=dns-prefetch href=http://d-{host}>"
        f"<img src=http://{host}/i.png><script async src=http://{host}/s.js></script>"
        f"<iframe src=http://{host}/></iframe>"
        for host in hosts
    )
    file = folder / "document.html"
    file.write_text(body)
    return LoadedPage(page("crowded", document(body_bytes=len(body))).page, {0: file})


@pytest.mark.usefixtures("emulator")
def test_no_packet_leaves_while_a_page_asks_for_thirty_strangers(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root sees every packet of the host")
    mark = f"stranger{uuid.uuid4().hex}"
    site = crowded(tmp_path, mark)
    engine = Emulator(clients={"chromium": Chromium(find_browser(installed("chromium")))})
    with Outside(mark.encode()).watching() as outside:
        record = load(engine, site, "tfo", client="chromium")
    assert record["load"]["status"] == "ok"
    assert record["load"]["unmatched_requests"] == 3 * STRANGERS
    assert outside.found == []


def test_the_watch_on_the_outside_sees_what_is_there() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root sees every packet of the host")
    mark = uuid.uuid4().hex.encode()
    with (
        Outside(mark).watching() as outside,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        sender.sendto(mark, receiver.getsockname())
        receiver.recv(100)
    assert outside.found


@pytest.mark.usefixtures("emulator")
def test_the_browser_resolves_and_connects_to_nothing_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "net.json"
    engine = Emulator(clients={"chromium": Logging(find_browser(installed("chromium")), log)})
    [site] = open_pages(["wikipedia"])
    record = load(engine, site, "tfo", client="chromium")
    assert_ok(record)
    own = asked_in(log) - hosts_of(record)
    # The browser asks for the hosts of its account and update services. Inside its own process it finds that
    # they do not exist, and it sends nothing.
    assert own <= {"accounts.google.com", "update.googleapis.com", "~notfound"}
    assert resolved_in(log) == hosts_of(record)
    assert connected_in(log) <= {f"198.19.0.{number}:80" for number in range(1, 255)}


def hosts_of(record: Record) -> set[str]:
    return {urlsplit(row["url"]).hostname or "" for row in record["requests"]}


def asked_in(log: Path) -> set[str]:
    """Every host for which the browser made a request or looked up the name, from its start to its end."""
    urls = {
        params.get("url") or f"//{params['host'].rpartition('//')[2]}"
        for name, params in events(log)
        if (name == "URL_REQUEST_START_JOB" and params.get("url", "").startswith("http"))
        or (name == "HOST_RESOLVER_MANAGER_REQUEST" and "host" in params)
    }
    return {urlsplit(url).hostname or "" for url in urls}


def resolved_in(log: Path) -> set[str]:
    """Every name that the browser asked the system to resolve."""
    return {
        urlsplit(params["host"]).hostname or ""
        for name, params in events(log)
        if name == "HOST_RESOLVER_MANAGER_JOB" and "host" in params
    }


def connected_in(log: Path) -> set[str]:
    """Every address to which the browser tried to open a TCP connection."""
    return {
        params["address"]
        for name, params in events(log)
        if name == "TCP_CONNECT_ATTEMPT" and "address" in params
    }


def events(log: Path) -> list[tuple[str, dict[str, Any]]]:
    """Name and parameters of every event of a network log."""
    document = json.loads(log.read_text())
    names = {number: name for name, number in document["constants"]["logEventTypes"].items()}
    return [(names[event["type"]], event.get("params", {})) for event in document["events"]]
