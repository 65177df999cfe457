"""Measured load times in the laboratory against arithmetic: round trips per connection, rate, and delay."""

from itertools import product

import pytest
from small_pages import assert_ok, chain, document, fan, load, load_all, page, planned, quickest_ms

from firstflight.engines.emulate import Emulator
from firstflight.results.records import plt_ms

LOADS = 3
ROOM_MS = 10.0
"""How much sockets, relay and server may add to the fastest of `LOADS` answers, ms."""

pytestmark = pytest.mark.timing


@pytest.mark.parametrize(("length", "rtt_ms"), list(product([1, 5, 20], [20.0, 100.0])))
def test_fast_open_saves_a_round_trip_per_connection_of_a_chain(
    length: int, rtt_ms: float, emulator: Emulator
) -> None:
    """A connection takes two round trips with TCP and one with Fast Open. None takes less."""
    links = chain(length)
    for mode, trips in (("tcp", 2), ("tfo", 1)):
        loads = [(links, planned(links, mode, rtt_ms, keep_alive=False))] * LOADS
        records = load_all(emulator, loads, at_a_time=LOADS)
        for record in records:
            assert_ok(record)
            assert record["load"]["connections"] == length
            assert plt_ms(record) >= trips * length * rtt_ms
        assert all(trips * rtt_ms <= wait < trips * rtt_ms + ROOM_MS for wait in quickest_ms(records))
        assert min(plt_ms(record) for record in records) < length * (trips * rtt_ms + ROOM_MS)


@pytest.mark.parametrize("rate_bps", [None, 1_000_000])
def test_a_path_without_propagation_delay_takes_no_round_trips(
    rate_bps: int | None, emulator: Emulator
) -> None:
    links = chain(5)
    for mode in ("tcp", "tfo"):
        near, far = (
            load(emulator, links, mode, rtt_ms, down_bps=rate_bps, up_bps=rate_bps, keep_alive=False)
            for rtt_ms in (0.0, 100.0)
        )
        assert_ok(near)
        assert near["load"]["connections"] == 5
        trips = (2 if mode == "tcp" else 1) * 5
        assert plt_ms(far) - plt_ms(near) == pytest.approx(trips * 100, rel=0.1)
        transmission_ms = links.page.describe().wire_bytes * 8_000 / rate_bps if rate_bps else 0
        assert plt_ms(near) > transmission_ms


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_reused_connection_costs_no_handshake_in_either_mode(mode: str, emulator: Emulator) -> None:
    record = load(emulator, chain(5, hosts=1), mode, 100.0)
    assert_ok(record)
    assert record["load"]["connections"] == 1
    round_trips = 5 + (mode == "tcp")
    assert round_trips * 100 <= plt_ms(record) < (round_trips + 0.5) * 100


@pytest.mark.parametrize("topology", ["access", "star"])
def test_origins_share_the_access_link_and_have_links_of_their_own_in_a_star(
    topology: str, emulator: Emulator
) -> None:
    rate_bps, body_bytes, images = 1_000_000, 25_000, 4
    pictures = fan(images, body_bytes=body_bytes)
    record = load(emulator, pictures, "tcp", down_bps=rate_bps, up_bps=rate_bps, topology=topology)
    assert_ok(record)
    one_ms = body_bytes * 8 / rate_bps * 1000
    transmissions = images if topology == "access" else 1
    assert transmissions * one_ms <= plt_ms(record) < (transmissions + 1) * one_ms


def test_server_time_adds_to_a_load_as_recorded(emulator: Emulator) -> None:
    fast, slow = (page("waiting", document(server_ms=server_ms)) for server_ms in (0, 500))
    plts_ms = [plt_ms(load(emulator, one, "tfo", 100.0)) for one in (fast, slow)]
    assert plts_ms[1] - plts_ms[0] == pytest.approx(500, rel=0.1)
