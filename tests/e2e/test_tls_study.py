"""The facts in studies/tls/README.md: the length of a ClientHello, and the round trip that it costs."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pcapng
import pytest
from small_pages import assert_ok, document, load, page
from synth_site import program as installed

from firstflight.analysis.records import known
from firstflight.engines.clients.chromium.browser import find_browser
from firstflight.engines.clients.chromium.client import Chromium
from firstflight.engines.clients.command import Program
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import LabJob, Record
from firstflight.engines.lab import preload_library
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage

pytestmark = pytest.mark.timing

RTT_MS = 200.0
SYN_DATA_BYTES = 1420
RECORD_HEADER_BYTES = 5

Fetch = Callable[..., Record]


class Captured(Chromium):
    """Chromium, with a capture of its packets in `file`."""

    def __init__(self, browser: Path, file: Path) -> None:
        super().__init__(browser)
        self._file = file

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        return super().equip({**job, "capture": str(self._file)}, planned, page)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the captures."""
    return tmp_path_factory.mktemp("captures")


@pytest.fixture(scope="module")
def fetch(emulator: Emulator, folder: Path) -> Fetch:
    """A function that loads a document over TLS in Chromium, once for each mode and key share."""

    @cache
    def fetch(mode: str, *, post_quantum: bool) -> Record:
        browser = Captured(find_browser(installed("chromium")), capture(folder, mode, post_quantum))
        engine = Emulator(clients={"chromium": browser})
        secure = page("secure", document(url="https://o0.test/"))
        fields = {"client": "chromium", "scheme": "recorded", "post_quantum": post_quantum}
        record = load(engine, secure, mode, RTT_MS, **fields)
        assert_ok(record)
        return record

    return fetch


def capture(folder: Path, mode: str, post_quantum: bool) -> Path:
    return folder / f"{mode}-{post_quantum}.pcapng"


def hello_bytes(capture: Path) -> tuple[int, int]:
    """Bytes of the TLS record that begins in the first SYN with data, and bytes of data in that SYN."""
    payload = next(packet.payload for packet in pcapng.read(capture) if packet.syn and packet.payload)
    return RECORD_HEADER_BYTES + int.from_bytes(payload[3:5]), len(payload)


def round_trips(record: Record) -> float:
    """Round trips from the start of the load to the first byte of the document."""
    return known(record["load"]["first_byte_ms"]) / RTT_MS


def test_the_browsers_client_hello_is_longer_than_a_syn(fetch: Fetch, folder: Path) -> None:
    fetch("tfo", post_quantum=True)
    length, carried = hello_bytes(capture(folder, "tfo", True))
    assert carried == SYN_DATA_BYTES < length


def test_without_the_post_quantum_share_it_fits(fetch: Fetch, folder: Path) -> None:
    fetch("tfo", post_quantum=False)
    length, carried = hello_bytes(capture(folder, "tfo", False))
    assert length == carried < SYN_DATA_BYTES / 2


@pytest.mark.parametrize("post_quantum", [True, False])
def test_without_fast_open_the_browser_takes_three_round_trips(post_quantum: bool, fetch: Fetch) -> None:
    """Without the post-quantum key share Chromium uses TLS 1.2 here.

    False Start saves the second round trip of the TLS 1.2 handshake.
    """
    assert 3 <= round_trips(fetch("tcp", post_quantum=post_quantum)) < 3.9


def test_fast_open_saves_the_browser_a_round_trip_if_its_client_hello_fits(fetch: Fetch) -> None:
    assert 2 <= round_trips(fetch("tfo", post_quantum=False)) < 2.9


def test_fast_open_saves_the_browser_none_if_it_does_not(fetch: Fetch) -> None:
    assert round_trips(fetch("tfo", post_quantum=True)) >= 3


@pytest.mark.parametrize("name", ["curl", "wget2"])
def test_other_clients_do_without_the_share_when_told(name: str, emulator: Emulator) -> None:
    program = Program(name, installed(name), preload_library())
    engine = Emulator(clients={name: program})
    secure = page("secure", document(url="https://o0.test/"))
    record = load(engine, secure, "tfo", client=name, scheme="recorded", post_quantum=False)
    assert_ok(record)
    assert [0 < row["syn_payload_bytes"] < SYN_DATA_BYTES for row in record["connections"]] == [True]
