"""Real Firefox in the laboratory: the proof of each mode's connections, their times, and failed loads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from program import Program
from small_pages import assert_ok, document, load, page
from synth_site import program as installed

from firstflight.analysis.records import known
from firstflight.engines.clients.firefox.client import Firefox
from firstflight.engines.clients.versions import find_browser
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import LabJob, Record
from firstflight.model.load import PlannedLoad
from firstflight.pages import LoadedPage

pytestmark = pytest.mark.timing

RTT_MS = 300.0
"""Three browsers start at once on two processors. Their computing time must be well below half an RTT."""
SECURE = page(
    "secure",
    document(url="https://o0.test/"),
    document(
        url="https://o1.test/1.png",
        kind="image",
        mime="image/png",
        initiator={"resource": 0, "via": "parser", "at_byte": 100},
    ),
)
MODES = {"tcp": "none", "tfo": "none", "early-data": "accepted", "quic": "none", "quic-0rtt": "accepted"}
"""The modes, and in each what the ledger must report about early data."""


class WithTls(Firefox):
    """Loads https pages as recorded, not in the clear."""

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        return super().equip({**job, "scheme": "recorded"}, planned, page)


@pytest.fixture(scope="module")
def loads(emulator: Emulator) -> dict[str, Record]:
    """A small page in each mode; without a laboratory, `emulator` ends the tests."""
    engine = Emulator(clients={"firefox": WithTls(find_browser("firefox", installed("firefox-esr")))})
    fields = {"client": "firefox", "post_quantum": False}
    with ThreadPoolExecutor(3) as pool:
        records = pool.map(lambda mode: load(engine, SECURE, mode, RTT_MS, **fields), MODES)
        return dict(zip(MODES, records, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_every_connection_is_opened_as_the_mode_says(mode: str, loads: dict[str, Record]) -> None:
    record = loads[mode]
    assert_ok(record)
    assert record["load"]["unmatched_requests"] == 0
    seen = {(row["origin"], row["protocol"], row["early_data"]) for row in record["connections"]}
    protocol = "udp" if "quic" in mode else "tcp"
    assert seen == {(f"https://o{number}.test", protocol, MODES[mode]) for number in range(2)}
    assert {row["syn_payload_bytes"] > 0 for row in record["connections"]} == {mode == "tfo"}


@pytest.mark.parametrize("mode", MODES)
def test_the_browsers_times_are_those_of_the_relay(mode: str, loads: dict[str, Record]) -> None:
    record = loads[mode]
    opened_ms = {row["connection"]: known(row["opened_ms"]) for row in record["connections"]}
    assert {row["url"] for row in record["requests"]} == {"https://o0.test/", "https://o1.test/1.png"}
    for row in record["requests"]:
        connect_ms, first_byte_ms, end_ms = (
            known(row[moment]) for moment in ("connect_start_ms", "first_byte_ms", "end_ms")
        )
        assert 0 <= connect_ms <= first_byte_ms <= end_ms, row
        assert abs(opened_ms[int(known(row["connection"]))] - connect_ms) <= RTT_MS / 2


def test_a_hello_in_the_syn_saves_a_round_trip_and_so_does_early_data(loads: dict[str, Record]) -> None:
    """Round trips from the first packet to the first byte of the document: 3, 2, 2, 2 and 1."""
    trips = {mode: round_trips(record) for mode, record in loads.items()}
    assert trips == {"tcp": 3, "tfo": 2, "early-data": 2, "quic": 2, "quic-0rtt": 1}


def round_trips(record: Record) -> int:
    opened_ms = min(known(row["opened_ms"]) for row in record["connections"])
    return round((known(record["load"]["first_byte_ms"]) - opened_ms) / RTT_MS)


def test_a_program_that_is_no_browser_fails_the_load_and_is_reported(program: Program) -> None:
    (program.folder / "page.json").write_text(SECURE.page.to_json())
    plan = ("--client", "firefox", "--mode", "tcp", "--repeats", "1", "--out", "out")
    path = ("--rtt", "20", "--down", "90kbit", "--up", "90kbit")
    ended = program("run", "page.json", *path, *plan, "--browser", "/bin/false")
    assert ended.code == 1
    assert "the browser ended with code 1 before it listened" in ended.err
