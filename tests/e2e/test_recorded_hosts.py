"""The recorded distances and name lookups of hosts are replayed if the plan asks for that."""

import pytest
from small_pages import assert_ok, document, load, load_all, planned, quickest_ms

from firstflight.engines.emulate import Emulator
from firstflight.pages import LoadedPage, Page
from firstflight.results.records import plt_ms

RTT_MS = 40.0
LOADS = 3
HOSTS = [
    {"host": "o0.test", "rtt_ms": 30.0, "lookup_ms": 50.0},
    {"host": "o1.test", "rtt_ms": 30.0 + 2 * RTT_MS},
]


pytestmark = pytest.mark.timing


def recorded(**fields: float) -> LoadedPage:
    """A document, and an image on a host with three times its RTT, on a path of `RTT_MS`."""
    image = document(url="http://o1.test/i.png", kind="image", mime="image/png", **fields)
    image["initiator"] = {"resource": 0, "via": "parser", "at_byte": 500}
    page = {"name": "hosts", "resources": [document(**fields), image], "hosts": HOSTS}
    return LoadedPage(Page.from_fields(page))


def waits(emulator: Emulator, **fields: object) -> list[float]:
    """For each request, the shortest time over `LOADS` loads from its start to its first byte, ms."""
    page = recorded()
    records = load_all(emulator, [(page, planned(page, "tcp", RTT_MS, **fields))] * LOADS, at_a_time=LOADS)
    for record in records:
        assert_ok(record)
    return quickest_ms(records)


def test_all_origins_are_as_far_unless_the_plan_says_otherwise(emulator: Emulator) -> None:
    near, far = waits(emulator)
    assert 2 * RTT_MS <= near < 2.5 * RTT_MS
    assert 2 * RTT_MS <= far < 2.5 * RTT_MS


def test_a_farther_origin_is_farther_by_as_much_as_recorded(emulator: Emulator) -> None:
    near, far = waits(emulator, origin_rtt="recorded")
    assert 2 * RTT_MS <= near < 2.5 * RTT_MS
    assert 6 * RTT_MS <= far < 6.5 * RTT_MS


def test_the_first_connection_waits_for_the_lookup_of_its_name(emulator: Emulator) -> None:
    near, far = waits(emulator, lookups=True)
    assert 2 * RTT_MS + 50 <= near < 2.5 * RTT_MS + 50
    assert 2 * RTT_MS <= far < 2.5 * RTT_MS


def test_servers_answer_at_once_without_server_time(emulator: Emulator) -> None:
    slow = recorded(server_ms=500.0)
    waited, free = (load(emulator, slow, "tcp", RTT_MS, server_time=kept) for kept in (True, False))
    assert_ok(free)
    assert plt_ms(waited) - plt_ms(free) == pytest.approx(2 * 500, rel=0.1)
