"""RTTs, server times and pauses of a recording, computed without the queue before the recorded link."""

from pathlib import Path

import pytest
from test_pages_har import DOCUMENT, entry, opened

from firstflight.model.page import Link
from firstflight.pages.exchange import Exchange, Timing
from firstflight.pages.link import Crossing, cross

# A packet of 1,500 bytes on the link carries 1,448 bytes of a response. So 125 bytes/ms carry 120.67 of
# these.
LINK = Link(rtt_ms=20, down_bps=1_000_000, up_bps=1_000_000)
RATE = 125 * 1448 / 1500
WPT = {"_latency_rtt_ms": 20, "_bwDown_kbps": 1_000, "_bwUp_kbps": 1_000}


def exchange(name: str, first_ms: float, end_ms: float, size: int, **timing: object) -> Exchange:
    clock = Timing(**{"start_ms": 0.0, "first_byte_ms": first_ms, "end_ms": end_ms, **timing})  # type: ignore[arg-type]
    return Exchange(f"http://{name}.example/{first_ms}", body_bytes=size, mime="image/png", timing=clock)


def test_one_response_takes_what_its_bytes_take() -> None:
    crossing = Crossing([exchange("a", 100, 900, 12_000)], LINK, {"a.example": 20}, [100])
    assert crossing.end_ms == [pytest.approx(100 + 12_000 / RATE, abs=1)]


def test_two_at_once_share_the_link() -> None:
    both = [exchange("a", 100, 900, 6_000), exchange("b", 100, 900, 6_000)]
    crossing = Crossing(both, LINK, {}, [100, 100])
    assert crossing.end_ms == [pytest.approx(100 + 12_000 / RATE, abs=1)] * 2


def test_no_response_ends_later_than_it_did() -> None:
    assert Crossing([exchange("a", 100, 110, 12_000)], LINK, {}, [100]).end_ms == [110]


def test_a_distant_server_needs_round_trips() -> None:
    crossing = Crossing([exchange("a", 0, 9_000, 60_000)], LINK, {"a.example": 1_000}, [0])
    assert 2_000 < crossing.end_ms[0] < 3_000


def test_a_response_reaches_a_byte_when_it_has_arrived() -> None:
    crossing = Crossing([exchange("a", 100, 900, 12_000)], LINK, {}, [100])
    assert crossing.arrived(0, 150) == pytest.approx(50 * RATE, rel=0.03)
    assert crossing.reached_ms(0, 6_000) == pytest.approx(100 + 6_000 / RATE, abs=2)


def test_a_queue_is_no_distance_and_no_server_time() -> None:
    """Handshakes of 120 and 150 ms while the link is busy include a queueing delay of 100 ms."""
    large = exchange("a", 40, 1_040, 110_000, wait_ms=20.0, handshake_ms=20.0)
    near = exchange("b", 620, 640, 500, wait_ms=120.0, handshake_ms=120.0)
    far = exchange("c", 660, 680, 500, wait_ms=150.0, handshake_ms=150.0)
    crossed = cross([large, near, far], ["image"] * 3, LINK, {"a.example": 20})
    assert crossed.trips["b.example"] == pytest.approx(20)
    assert crossed.trips["c.example"] == pytest.approx(50)
    assert crossed.server_ms == [0, 0, 0]


def test_a_file_that_was_waited_for_over_an_idle_link_took_its_server_as_long() -> None:
    quick = exchange("a", 40, 50, 500, wait_ms=20.0, handshake_ms=20.0)
    slow = exchange("a", 400, 410, 500, wait_ms=320.0)
    assert cross([quick, slow], ["image"] * 2, LINK, {"a.example": 20}).server_ms == [0, 300]


def test_a_har_of_webpagetest_says_its_link(tmp_path: Path) -> None:
    loaded = opened(tmp_path, entry(DOCUMENT), **WPT)
    assert loaded.page.link == Link(20, 1_000_000, 1_000_000)
    assert opened(tmp_path, entry(DOCUMENT)).page.link is None
