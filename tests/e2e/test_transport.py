"""Plan keys for TCP and for the client's processing time have their effect, the same on both clocks."""

import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
from pcapng import read
from program import Program
from small_pages import assert_ok, document, load, page

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Answer as LabAnswer
from firstflight.engines.engine import Engine, LabJob
from firstflight.engines.simulate import Simulator
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage
from firstflight.results.records import plt_ms

RTT_MS = 100.0
SEGMENT_BYTES = 1_448
SYN_DATA_BYTES = 1_420
LONG = page("long", document(body_bytes=28_000))
"""A page whose response has 20 segments, header included: flights of 10 + 10, or of 3 + 6 + 11."""


@dataclass(frozen=True)
class Kept:
    """The loader, with a capture in `file`; implements `engines.clients.command.ForeignClient`."""

    file: Path

    def equip(self, job: LabJob, planned: PlannedLoad, page: LoadedPage) -> LabJob:
        return {**job, "capture": str(self.file)}

    def complete(self, answer: LabAnswer, page: LoadedPage) -> LabAnswer:
        return answer


@pytest.fixture(params=["emulate", "simulate"])
def engine(request: pytest.FixtureRequest, emulator: Emulator) -> Engine:
    return emulator if request.param == "emulate" else Simulator()


@pytest.mark.timing
@pytest.mark.parametrize(("initial_window", "flights"), [(3, 3), (10, 2), (20, 1)])
def test_a_response_takes_as_many_flights_as_the_initial_window_says(
    initial_window: int, flights: int, engine: Engine
) -> None:
    for mode, handshakes in (("tcp", 1), ("tfo", 0)):
        record = load(engine, LONG, mode, RTT_MS, initial_window=initial_window)
        assert_ok(record)
        round_trips = handshakes + flights
        assert round_trips * RTT_MS <= plt_ms(record) < (round_trips + 0.5) * RTT_MS


@pytest.mark.parametrize("initial_window", [3, 10])
@pytest.mark.usefixtures("emulator")
def test_the_first_flight_on_the_wire_is_the_initial_window(initial_window: int, tmp_path: Path) -> None:
    file = tmp_path / "load.pcapng"
    keeping = Emulator(clients={"loader": Kept(file)})
    assert_ok(load(keeping, LONG, "tcp", RTT_MS, initial_window=initial_window))
    data = [packet for packet in read(file) if packet.source_port == 80 and packet.payload]
    flight = list(takewhile(lambda packet: packet.time_s < data[0].time_s + RTT_MS / 2_000, data))
    assert [len(packet.payload) for packet in flight] == [SEGMENT_BYTES] * initial_window


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
@pytest.mark.parametrize("ecn", [True, False])
def test_a_load_with_ecn_is_proved_by_its_packets(
    ecn: bool, mode: str, emulator: Emulator, tmp_path: Path
) -> None:
    file = tmp_path / "load.pcapng"
    codel = Queue(name="codel")
    for clock in (Emulator(clients={"loader": Kept(file)}), Simulator()):
        assert_ok(load(clock, LONG, mode, ecn=ecn, down_bps=20_000_000, up_bps=20_000_000, queue=codel))
    packets = read(file)
    syn, syn_ack = (
        next(one for one in packets if (one.syn, one.ack) == (True, ack)) for ack in (False, True)
    )
    assert (syn.ece, syn.cwr, syn_ack.ece, syn_ack.cwr) == (ecn, ecn, ecn, False)
    assert {one.is_ect for one in packets if one.source_port == 80 and one.payload} == {ecn}


def test_cubic_leaves_slow_start_before_the_queue_is_full_and_reno_does_not(engine: Engine) -> None:
    download = page("download", document(body_bytes=1_000_000))
    path = {"down_bps": 4_000_000, "up_bps": 4_000_000, "queue": Queue(packets=60)}
    sent_again = {}
    for name in ("cubic", "reno"):
        record = load(engine, download, "tcp", RTT_MS, congestion_control=name, **path)
        assert_ok(record)
        sent_again[name] = known(record["load"]["retransmits"])
    assert sent_again["reno"] > 5 * sent_again["cubic"]


@pytest.mark.parametrize("name", ["cubic", "reno"])
def test_somebody_elses_program_gets_the_congestion_control_too(name: str, program: Program) -> None:
    asks = (
        "import os, socket; host, port = os.environ['FIRSTFLIGHT_SINK'].split(':');"
        "print(socket.create_connection((host, port)).getsockopt(6, socket.TCP_CONGESTION, 16))"
    )
    flags = ("--mode", "tcp", "--congestion-control", name)
    assert name in program("exec", *flags, "--", sys.executable, "-c", asks).out


@pytest.mark.parametrize("name", ["cubic", "reno"])
def test_a_load_of_each_congestion_control_is_proved(name: str, engine: Engine) -> None:
    assert_ok(load(engine, LONG, "tfo", congestion_control=name))


@pytest.mark.parametrize("post_quantum", [True, False])
def test_a_load_with_each_key_share_is_proved(post_quantum: bool, engine: Engine) -> None:
    """A ClientHello with X25519MLKEM768 does not fit a SYN; one without it does."""
    secure = page("secure", document(url="https://o0.test/"))
    record = load(engine, secure, "tfo", post_quantum=post_quantum)
    assert_ok(record)
    [row] = record["connections"]
    assert (row["syn_payload_bytes"] == SYN_DATA_BYTES) is post_quantum


@pytest.mark.parametrize(("ip", "room_bytes"), [("4", SYN_DATA_BYTES), ("6", SYN_DATA_BYTES - 20)])
def test_a_syn_has_room_for_as_much_as_its_version_of_ip_leaves(
    ip: str, room_bytes: int, engine: Engine
) -> None:
    secure = page("secure", document(url="https://o0.test/"))
    record = load(engine, secure, "tfo", ip=ip)
    assert_ok(record)
    assert [row["syn_payload_bytes"] for row in record["connections"]] == [room_bytes]


@pytest.mark.timing
@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_processing_is_scaled_and_the_server_is_not(factor: float, engine: Engine) -> None:
    busy = page("busy", document(cpu_ms=200, server_ms=100))
    record = load(engine, busy, "tcp", RTT_MS, processing=factor)
    assert_ok(record)
    assert record["load"]["plt_ms"] == pytest.approx(2 * RTT_MS + 100 + factor * 200, rel=0.1)
