"""The engine `simulate` returns records like the laboratory's, from a virtual clock."""

import json
from dataclasses import replace

import pytest

from firstflight.analysis.records import known
from firstflight.engines.engine import EngineStoppedError
from firstflight.engines.simulate import Simulator
from firstflight.errors import UsageError
from firstflight.experiment.plan_file import resolve
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Burst, Path, Queue
from firstflight.pages import LoadedPage, open_pages, under
from firstflight.results.check import check_record
from firstflight.results.records import plt_ms

PATH = Path("access", 100.0, 4_000_000, 256_000, Queue(packets=1000), 0.0)
PLANNED = PlannedLoad("x-0", 0, 0, 0, "wikipedia", PATH, "tfo", seed=1, engine="simulate")


@pytest.fixture(scope="module")
def page() -> LoadedPage:
    return next(iter(open_pages(["wikipedia"])))


def test_a_record_is_one_the_results_take(page: LoadedPage) -> None:
    record = Simulator().load(PLANNED, page)
    assert check_record(record) == ""
    assert record["load"]["status"] == "ok"
    assert record["load"]["engine"] == "simulate"
    assert len(record["requests"]) == len(page.page.resources)


def test_the_proof_is_the_ledger_alone_and_says_so(page: LoadedPage) -> None:
    tfo, tcp = (Simulator().load(replace(PLANNED, mode=mode), page) for mode in ("tfo", "tcp"))
    assert tfo["proof"]["ok"] and tcp["proof"]["ok"]
    assert tfo["proof"]["witnesses"] == ["ledger"]
    assert tfo["load"]["tfo_accepted"] == known(tfo["load"]["connections"]) > 0
    assert tcp["load"]["tfo_offered"] == 0


def test_fast_open_is_faster_and_the_same_seed_gives_the_same_load(page: LoadedPage) -> None:
    simulator = Simulator()
    tfo, again, tcp = (
        plt_ms(simulator.load(replace(PLANNED, mode=mode), page)) for mode in ("tfo", "tfo", "tcp")
    )
    assert tfo == again < tcp


@pytest.mark.parametrize(
    "path", [replace(PATH, rtt_ms=0.0), replace(PATH, rtt_ms=0.0, down_bps=None, up_bps=None)]
)
def test_a_page_crosses_a_path_without_propagation_delay(path: Path, page: LoadedPage) -> None:
    for mode in ("tcp", "tfo"):
        record = Simulator().load(replace(PLANNED, path=path, mode=mode), page)
        assert record["load"]["status"] == "ok"
        assert record["proof"]["ok"]
        assert 0 <= plt_ms(record) < plt_ms(Simulator().load(PLANNED, page))


@pytest.mark.parametrize("queue", [Queue(packets=3), Queue(name="codel"), Queue(name="pie")])
def test_0_rtt_packets_that_a_queue_drops_leave_a_proved_load(queue: Queue, page: LoadedPage) -> None:
    narrow = replace(PATH, queue=queue, up_bps=64_000)
    planned = replace(PLANNED, path=narrow, mode="quic-0rtt", scheme="https")
    record = Simulator().load(planned, under("https", page))
    assert record["relay"]["dropped"] > 0
    assert record["proof"]["disagreements"] == []


def test_losses_follow_the_seed(page: LoadedPage) -> None:
    lossy = replace(PLANNED, path=replace(PATH, loss=0.02))
    simulator = Simulator()
    loads = [simulator.load(replace(lossy, seed=seed), page)["load"] for seed in (1, 1, 2)]
    assert loads[0]["plt_ms"] == loads[1]["plt_ms"] != loads[2]["plt_ms"]
    assert all(known(load["retransmits"]) > 0 for load in loads)


@pytest.mark.parametrize("reorder", [False, True])
def test_a_page_crosses_a_path_with_bursts_jitter_and_copies(reorder: bool, page: LoadedPage) -> None:
    unsteady = replace(PATH, loss=0.05, burst=Burst(4.0, 0.8), jitter_ms=20.0, reorder=reorder, duplicate=0.1)
    steady, first, again = (
        Simulator().load(replace(PLANNED, path=path), page) for path in (PATH, unsteady, unsteady)
    )
    assert first["load"]["status"] == "ok"
    assert first["relay"]["lost"] > 0
    assert first["relay"]["duplicated"] > 0
    assert plt_ms(first) == plt_ms(again) > plt_ms(steady)


@pytest.mark.parametrize("queue", [Queue(ms=50), Queue(name="codel"), Queue(name="pie")])
def test_a_queue_that_does_not_let_packets_wait_drops_some_and_the_page_loads(queue: Queue) -> None:
    [wsj] = open_pages(["wsj"])
    short, long = (
        Simulator().load(replace(PLANNED, page="wsj", path=replace(PATH, queue=its)), wsj)
        for its in (queue, Queue(name="unlimited"))
    )
    assert short["load"]["status"] == long["load"]["status"] == "ok"
    assert short["relay"]["dropped"] > long["relay"]["dropped"] == 0


def test_an_engine_that_keeps_loads_only_counts_the_rest_alike(page: LoadedPage) -> None:
    kept, counted = (Simulator(keep).load(PLANNED, page) for keep in ("all", "loads"))
    assert counted["load"] == kept["load"]
    assert not counted["requests"]
    assert not counted["connections"]
    assert kept["load"]["requests"] == len(kept["requests"]) > 1
    assert kept["load"]["connections"] == len(kept["connections"]) > 1


def test_a_stopped_simulator_makes_no_load(page: LoadedPage) -> None:
    simulator = Simulator()
    simulator.stop()
    with pytest.raises(EngineStoppedError):
        simulator.load(PLANNED, page)


def test_calibration_is_what_was_asked_for() -> None:
    calibration = Simulator().calibrate(PATH).to_json()
    assert calibration["simulated"] is True
    assert calibration["down_mbps"] == {"expected": 4.0, "measured": 4.0}
    assert json.dumps(calibration)


def test_under_tls_fast_open_saves_a_round_trip_if_the_client_hello_fits_into_the_syn() -> None:
    (page,) = (under("https", page) for page in open_pages(["wikipedia"]))
    roomy = replace(PATH, up_bps=4_000_000)

    def first_byte_ms(mode: str, *, post_quantum: bool) -> float:
        planned = replace(PLANNED, path=roomy, mode=mode, scheme="https", post_quantum=post_quantum)
        return known(Simulator().load(planned, page)["load"]["first_byte_ms"])

    def saved_ms(*, post_quantum: bool) -> float:
        tcp, tfo = (first_byte_ms(mode, post_quantum=post_quantum) for mode in ("tcp", "tfo"))
        return tcp - tfo

    assert saved_ms(post_quantum=False) == pytest.approx(PATH.rtt_ms, rel=0.05)
    assert saved_ms(post_quantum=True) == pytest.approx(0, abs=0.05 * PATH.rtt_ms)


def test_what_cannot_be_simulated_is_refused_by_name() -> None:
    with pytest.raises(UsageError) as refused:
        resolve({"engine": "simulate", "client": "chromium"})
    assert "chromium" in refused.value.message
    assert "emulate" in refused.value.hint
