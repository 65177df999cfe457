import math
from dataclasses import dataclass
from typing import Any

import pytest
from baselines import MSS_BYTES, Download, lantern_plt_ms, naive_plt_ms, window_limit
from handmade_load import by, connection, load, page, request
from hypothesis import given
from hypothesis import strategies as st

from firstflight.analysis.critical_path.walk import critical_path
from firstflight.model.page import Page

RTT_MS = 100.0


@dataclass(frozen=True)
class Path:
    rtt_ms: float = RTT_MS
    down_bps: int | None = None
    topology: str = "access"


def sized(segments: float, **more: object) -> dict[str, Any]:
    """A resource of `segments` full segments, header included."""
    return {"header_bytes": 200, "body_bytes": round(segments * MSS_BYTES) - 200, **more}


@pytest.mark.parametrize(
    ("segments", "rounds"),
    [(1, 0), (10, 0), (11, 1), (30, 1), (31, 2), (70, 2), (71, 3), (1270, 6), (1271, 7)],
)
def test_an_object_takes_the_rounds_of_slow_start_from_ten_segments(segments: int, rounds: int) -> None:
    """Handshake and request take a round trip each. Then come rounds of 10, 20, 40, ... segments.

    The first round of segments comes with the answer to the request.
    """
    assert lantern_plt_ms(page(sized(segments)), Path(), "tcp") == pytest.approx((2 + rounds) * RTT_MS)


def test_the_window_stops_growing_at_what_the_rate_allows_in_a_round_trip() -> None:
    assert window_limit(4_000_000, RTT_MS) == 34
    windows = 10 + 20 + 34 + 34
    assert lantern_plt_ms(page(sized(windows)), Path(down_bps=4_000_000), "tcp") == pytest.approx(5 * RTT_MS)
    assert lantern_plt_ms(page(sized(windows + 1)), Path(down_bps=4_000_000), "tcp") == pytest.approx(
        6 * RTT_MS
    )


def test_a_window_is_one_segment_at_least() -> None:
    assert window_limit(1000, 1) == 1
    assert lantern_plt_ms(page(sized(3)), Path(rtt_ms=10, down_bps=1000), "tcp") == pytest.approx(40)


def test_server_and_processing_time_add_up_and_the_multiplier_applies_to_the_cpu_alone() -> None:
    of = page(sized(1, server_ms=30, cpu_ms=20))
    assert lantern_plt_ms(of, Path(), "tcp") == pytest.approx(250)
    assert lantern_plt_ms(of, Path(), "tcp", cpu_multiplier=4) == pytest.approx(310)
    endless = page(sized(1, cpu_ms=60_000))
    assert lantern_plt_ms(endless, Path(), "tcp") == pytest.approx(10_200), (
        "a task counts ten seconds at most"
    )


def test_tls_costs_a_round_trip_more_and_tfo_saves_one() -> None:
    plain, secure = page(sized(1)), page(sized(1, url="https://a.example/0"))
    assert [lantern_plt_ms(plain, Path(), mode) for mode in ("tcp", "tfo")] == pytest.approx([200, 100])
    assert [lantern_plt_ms(secure, Path(), mode) for mode in ("tcp", "tfo")] == pytest.approx([300, 200])


def test_a_request_that_does_not_fit_a_syn_gains_nothing() -> None:
    assert lantern_plt_ms(page(sized(1, request_bytes=1421)), Path(), "tfo") == pytest.approx(200)


def test_cold_cookies_save_only_from_the_second_connection_to_an_origin() -> None:
    of = page(sized(1), sized(1, initiator=by(0)), sized(1, initiator=by(0)))
    assert lantern_plt_ms(of, Path(), "tfo", cookies="cold") == pytest.approx(300)
    assert lantern_plt_ms(of, Path(), "tcp") == pytest.approx(400)


def test_a_chain_takes_a_round_trip_for_each_and_without_keep_alive_two() -> None:
    chain = page(sized(1), *(sized(1, initiator=by(n)) for n in range(9)))
    assert lantern_plt_ms(chain, Path(), "tcp") == pytest.approx(11 * RTT_MS)
    assert lantern_plt_ms(chain, Path(), "tcp", keep_alive=False) == pytest.approx(20 * RTT_MS)
    assert lantern_plt_ms(chain, Path(), "tfo", keep_alive=False) == pytest.approx(10 * RTT_MS)


def test_six_connections_to_an_origin_and_ten_requests_at_a_time() -> None:
    """The document's connection stays open and five more are opened. It carries three of the eight images."""
    one = page(sized(1), *(sized(1, initiator=by(0)) for _ in range(8)))
    assert lantern_plt_ms(one, Path(), "tcp") == pytest.approx(500)
    hosts = [sized(1, initiator=by(0), url=f"http://h{n}.example/") for n in range(11)]
    assert lantern_plt_ms(page(sized(1), *hosts[:10]), Path(), "tcp") == pytest.approx(400)
    assert lantern_plt_ms(page(sized(1), *hosts), Path(), "tcp") == pytest.approx(600)


def test_the_rate_is_shared_by_what_is_active_except_in_a_star() -> None:
    hosts = [sized(400, initiator=by(0), url=f"http://h{n}.example/") for n in range(4)]
    of, alone = page(sized(1), *hosts), page(sized(1), hosts[0])
    shared = lantern_plt_ms(of, Path(down_bps=4_000_000), "tcp")
    star = lantern_plt_ms(of, Path(down_bps=4_000_000, topology="star"), "tcp")
    assert star == lantern_plt_ms(alone, Path(down_bps=4_000_000), "tcp")
    assert shared - 400 == pytest.approx(4 * (star - 400), rel=0.2)


def test_what_does_not_block_the_load_event_does_not_delay_it() -> None:
    of = page(sized(1), sized(1, initiator=by(0), blocks_load=False))
    assert lantern_plt_ms(of, Path(), "tcp") == pytest.approx(200)


def test_a_download_may_be_cut_at_any_moment_without_changing_its_end() -> None:
    whole = Download(500 * MSS_BYTES, 200.0, 10, RTT_MS)
    end_ms = whole.end_ms(34)
    for at in range(0, math.floor(end_ms), 37):
        whole.advance(at, 34)
    assert whole.end_ms(34) == pytest.approx(end_ms)


PAGES = st.lists(
    st.tuples(st.integers(0, 300_000), st.integers(0, 3), st.floats(0, 80), st.integers(0, 20)),
    min_size=1,
    max_size=12,
).map(
    lambda rows: page(
        *(
            {
                "url": f"http://h{host}.example/{index}",
                "body_bytes": size,
                "cpu_ms": cpu_ms,
                **({"initiator": by(parent % index)} if index else {}),
            }
            for index, (size, host, cpu_ms, parent) in enumerate(rows)
        )
    )
)
CHAINS = st.lists(st.integers(0, 300_000), min_size=1, max_size=8).map(
    lambda sizes: page(
        *({"body_bytes": size, **({"initiator": by(n - 1)} if n else {})} for n, size in enumerate(sizes))
    )
)


@given(PAGES, st.floats(1, 300), st.sampled_from([None, 1_500_000, 10_000_000]))
def test_a_load_takes_a_round_trip_for_each_link_of_its_longest_chain_at_least(
    of: Page, rtt_ms: float, down_bps: int | None
) -> None:
    depth = [0] * len(of.resources)
    for index, resource in enumerate(of.resources):
        depth[index] = 1 + (depth[resource.initiator.resource] if resource.initiator else 0)
    plt_ms = lantern_plt_ms(of, Path(rtt_ms, down_bps), "tcp")
    assert plt_ms >= (max(depth) + 1) * rtt_ms - 1e-6
    assert plt_ms >= sum(resource.cpu_ms for resource in of.resources)


@given(CHAINS, st.floats(1, 300))
def test_a_chain_never_loads_slower_with_tfo_a_shorter_path_or_a_faster_link(of: Page, rtt_ms: float) -> None:
    """This does not hold for pages with parallel requests: earlier requests may lead to a worse order."""
    base = lantern_plt_ms(of, Path(rtt_ms), "tcp")
    assert lantern_plt_ms(of, Path(rtt_ms), "tfo") == pytest.approx(base - rtt_ms)
    assert lantern_plt_ms(of, Path(rtt_ms / 2), "tcp") <= base
    assert lantern_plt_ms(of, Path(rtt_ms, 2_000_000), "tcp") >= base - 1e-6


def test_the_naive_model_takes_an_rtt_for_each_cold_connection_on_the_measured_path() -> None:
    rows = [request(0, 0, 0, 103, 103, 210, 210), request(1, 210, 210, 310, 310, 410, 410, connection=1)]
    record = load(410, rows, [connection(0, 0.0), connection(1, 210.0)])
    path = critical_path(record, page({}, {"initiator": by(0)}))
    assert naive_plt_ms(path, "tcp") == 410
    assert naive_plt_ms(path, "tfo") == pytest.approx(210)
