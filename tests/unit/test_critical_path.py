from itertools import pairwise
from typing import Any

import pytest
from handmade_load import RTT_MS, by, connection, load, page, request
from hypothesis import given
from hypothesis import strategies as st
from synthetic_results import load_record

from firstflight.analysis.critical_path.walk import COMPONENTS, critical_path
from firstflight.analysis.records import known
from firstflight.model.page import Page
from firstflight.results import LoadRecord

DOCUMENT = request(0, 0, 0, 100, 100, 220, 220)
"""100 ms of handshake, a round trip of 100 ms, and 20 ms of other waiting."""


def spent(record: LoadRecord, of: Page) -> dict[str, Any]:
    return {component: pytest.approx(ms) for component, ms in critical_path(record, of).spent_ms().items()}


def test_a_single_request_is_a_handshake_a_round_trip_and_what_the_server_took() -> None:
    found = critical_path(load(220, [DOCUMENT]), page({"server_ms": 15}))
    assert found.spent_ms() == {"tcp": 100, "propagation": 100, "server": 15, "queueing": 5}
    assert found.requests == [0]
    assert [(h.waited_ms, h.inside_wait) for h in found.handshakes] == [(100, False)]
    assert found.could_save_ms == RTT_MS


def test_a_syn_that_carried_the_request_leaves_nothing_to_save() -> None:
    row = request(0, 0, 0, 0.1, 0.1, 100.1, 100.1)
    tfo = connection(0, 0.0, syn_payload_bytes=300, cookie="sent", syn_data_acked=True)
    found = critical_path(load(100.1, [row], [tfo], mode="tfo"), page({}))
    assert found.spent_ms() == {"tcp": pytest.approx(0.1), "propagation": pytest.approx(100)}
    assert found.could_save_ms == 0


def test_refused_syn_data_hide_a_handshake_in_the_wait_for_the_answer() -> None:
    row = request(0, 0, 0, 0, 0, 200, 200)
    refused = connection(0, 0.0, syn_payload_bytes=300, cookie="sent")
    found = critical_path(load(200, [row], [refused], mode="tfo"), page({}))
    assert found.spent_ms() == {"tcp": 100, "propagation": 100}
    assert found.could_save_ms == RTT_MS


def test_a_lost_syn_is_handshake_time_that_tfo_would_not_have_saved() -> None:
    row = request(0, 0, 0, 1100, 1100, 1200, 1200)
    found = critical_path(load(1200, [row], [connection(0, 0.0, syn_retransmits=1)]), page({}))
    assert found.spent_ms() == {"tcp": 1100, "propagation": 100}
    assert found.could_save_ms == RTT_MS


def test_under_tls_the_tcp_handshake_is_one_round_trip_and_the_rest_is_tls() -> None:
    row = request(0, 0, 0, 210, 210, 310, 310, url="https://a.example/0")
    found = critical_path(load(310, [row]), page({"url": "https://a.example/0"}))
    assert found.spent_ms() == {"tcp": 100, "tls": 110, "propagation": 100}


def test_with_tfo_under_tls_the_whole_wait_is_tls() -> None:
    row = request(0, 0, 0, 105, 105, 205, 205, url="https://a.example/0")
    tfo = connection(0, 0.0, syn_payload_bytes=517, cookie="sent", syn_data_acked=True)
    found = critical_path(load(205, [row], [tfo]), page({"url": "https://a.example/0"}))
    assert found.spent_ms() == {"tls": 105, "propagation": 100}


def test_the_handshake_of_quic_is_one_and_with_0_rtt_none() -> None:
    url = "https://a.example/0"
    for handshake_ms in (105, 0):
        wait_ms = handshake_ms + 100
        row = request(0, 0, 0, handshake_ms, handshake_ms, wait_ms, wait_ms, url=url)
        found = critical_path(load(wait_ms, [row], [connection(0, 0.0, protocol="udp")]), page({"url": url}))
        assert found.spent_ms() == {**({"quic": 105} if handshake_ms else {}), "propagation": 100}
        assert found.could_save_ms == 0


def test_what_the_parser_meets_early_does_not_wait_for_the_rest_of_the_document() -> None:
    rows = [request(0, 0, 0, 100, 100, 200, 500), request(1, 250, None, None, 250, 350, 600)]
    found = critical_path(load(600, rows), page({}, {"initiator": by(0, at_byte=100)}))
    assert found.spent_ms() == {"tcp": 100, "propagation": 200, "window": 300}
    assert [(s.request, s.start_ms, s.end_ms) for s in found.segments if s.component == "window"] == [
        (0, 200, 250),
        (1, 350, 600),
    ]


def test_a_script_is_processed_before_what_it_asks_for_and_a_timer_counts_as_processing() -> None:
    of = page(
        {}, {"kind": "script", "cpu_ms": 30, "initiator": by(0)}, {"initiator": by(1, "script", delay_ms=20)}
    )
    rows = [
        request(0, 0, 0, 100, 100, 200, 200),
        request(1, 200, None, None, 200, 300, 300),
        request(2, 350, None, None, 350, 450, 450, initiator=1),
    ]
    found = critical_path(load(450, rows), of)
    assert found.spent_ms() == {"processing": 50, "tcp": 100, "propagation": 300}
    assert [(s.request, s.ms) for s in found.segments if s.component == "processing"] == [(1, 30), (2, 20)]


def test_where_the_main_thread_was_busy_the_path_goes_on_with_what_set_it_to_work() -> None:
    script = {"kind": "script", "initiator": by(0)}
    of = page({}, {**script, "cpu_ms": 200}, {**script, "cpu_ms": 10})
    rows = [
        request(0, 0, 0, 100, 100, 200, 200),
        request(1, 200, None, None, 200, 300, 300),
        request(2, 200, 200, 300, 300, 420, 420, connection=1),
    ]
    found = critical_path(load(510, rows, [connection(0, 0.0), connection(1, 200.0)]), of)
    assert [(s.request, s.component) for s in found.segments[-3:]] == [
        (1, "propagation"),
        (1, "processing"),
        (2, "processing"),
    ]
    assert found.spent_ms()["processing"] == 210
    assert len(found.handshakes) == 1


def test_a_redirect_is_followed_without_its_body() -> None:
    of = page({"status": 302}, {"kind": "document", "initiator": by(0, "redirect")})
    rows = [request(0, 0, 0, 100, 100, 200, 400), request(1, 200, None, None, 200, 300, 300)]
    found = critical_path(load(400, rows), of)
    assert found.requests == [0], "the load event waited for the redirect's own body"
    found = critical_path(load(450, [rows[0], {**rows[1], "end_ms": 450}]), of)
    assert found.requests == [0, 1]
    assert found.spent_ms() == {"tcp": 100, "propagation": 200, "window": 150}


def test_what_a_script_holds_back_is_discovered_by_the_script() -> None:
    """The parser had found the image at 200 ms, but could go on only after the script had run."""
    script = {"kind": "script", "cpu_ms": 40, "initiator": by(0)}
    of = page({}, script, {"initiator": by(0, after=1)})
    rows = [
        request(0, 0, 0, 100, 100, 200, 200),
        request(1, 200, None, None, 200, 300, 300),
        request(2, 340, None, None, 340, 440, 440),
    ]
    found = critical_path(load(440, rows), of)
    assert found.requests == [0, 1, 2]
    assert found.spent_ms() == {"tcp": 100, "propagation": 300, "processing": 40}


def test_only_what_blocks_the_load_event_can_have_ended_it() -> None:
    of = page({}, {"initiator": by(0)}, {"initiator": by(0), "blocks_load": False})
    rows = [DOCUMENT, request(1, 220, None, None, 220, 320, 320), request(2, 220, None, None, 220, 320, 320)]
    assert critical_path(load(320, rows), of).requests == [0, 1]


def test_waiting_for_a_connection_names_who_held_it_and_counts_their_handshakes() -> None:
    """Without keep-alive, a connection slot is free once the response on it has ended.

    The last request waits for two such responses, and so for their two handshakes.
    """
    of = page({}, *({"initiator": by(0)} for _ in range(3)))
    rows = [
        request(0, 0, 0, 100, 100, 200, 200),
        request(1, 200, 200, 300, 300, 400, 400, connection=1),
        request(2, 200, 400, 500, 500, 600, 600, connection=2),
        request(3, 200, 600, 700, 700, 800, 800, connection=3),
    ]
    opened = [connection(n, at) for n, at in enumerate((0.0, 200.0, 400.0, 600.0))]
    found = critical_path(load(800, rows, opened), of)
    assert found.spent_ms() == {"connection": 400, "tcp": 200, "propagation": 200}
    (wait,) = found.waits
    assert (wait.request, wait.behind, wait.opening) == (3, (2, 1), False)
    assert [h.inside_wait for h in found.handshakes] == [False, False, True, True]
    assert found.could_save_ms == 4 * RTT_MS


def test_a_request_that_took_a_free_connection_while_its_own_was_opened_waited_for_a_handshake() -> None:
    of = page({}, {"initiator": by(0)}, {"initiator": by(0)})
    rows = [
        request(0, 0, 0, 100, 100, 200, 200),
        request(1, 200, None, None, 200, 260, 260),
        request(2, 200, None, None, 260, 360, 360),
    ]
    found = critical_path(load(360, rows, [connection(0, 0.0), connection(1, 200.3)]), of)
    assert found.spent_ms()["connection"] == 60
    assert [(h.waited_ms, h.inside_wait) for h in found.handshakes] == [(100, False), (60, True)]


def test_bytes_take_their_time_on_the_link_and_those_of_others_are_queueing() -> None:
    of = page({"body_bytes": 101_248}, {"body_bytes": 50_000, "initiator": by(0)})
    big = request(0, 0, 0, 100, 100, 200, 700, body_bytes=101_248, wire_bytes=101_448)
    other = request(1, 200, None, None, 200, 300, 700, body_bytes=50_000, wire_bytes=50_200)
    found = critical_path(load(700, [big, other], down_mbps=4.0), of).spent_ms()
    segments = 1 + 70
    own_ms = (101_448 + 52 * segments) * 8 / 4000
    assert found["transfer"] == pytest.approx(own_ms, abs=4)
    assert found["queueing"] == pytest.approx((50_200 + 52 * 36) * 8 / 4000, abs=4)
    assert found["transfer"] + found["queueing"] + found.get("window", 0) == pytest.approx(500, abs=4)


def test_a_request_that_never_ended_is_what_a_load_that_was_cut_off_waited_for() -> None:
    rows = [
        DOCUMENT,
        request(1, 220, None, None, 220, None, None, status=None, body_bytes=None, wire_bytes=None),
    ]
    found = critical_path(load(5000, rows), page({}, {"initiator": by(0)}))
    assert found.requests == [0, 1]
    assert found.segments[-1].end_ms == 5000


def test_what_a_browser_did_between_requests_is_processing() -> None:
    of = page({}, {"kind": "script", "cpu_ms": 999, "initiator": by(0)})
    rows = [request(0, 5, 5, 105, 105, 205, 205), request(1, 300, None, None, 300, 400, 400)]
    found = critical_path(load(470, rows, client="chromium"), of)
    assert [(s.request, s.ms) for s in found.segments if s.component == "processing"] == [
        (0, 5),
        (0, 95),
        (1, 70),
    ]


def test_a_load_without_a_load_event_cannot_be_explained() -> None:
    with pytest.raises(ValueError, match="hand-tcp-001"):
        critical_path(load(220, [DOCUMENT]) | {"requests": []}, page({}))


MOMENTS = st.one_of(st.none(), st.floats(0, 5000, allow_nan=False))


@st.composite
def any_load(draw: st.DrawFn) -> tuple[LoadRecord, Page]:
    """Random rows, even impossible ones, so that the properties tested hold for every load."""
    count = draw(st.integers(1, 6))
    vias = st.sampled_from(["parser", "style", "script"])
    resources: list[dict[str, Any]] = [{}]
    for index in range(1, count):
        initiator = by(
            draw(st.integers(0, index - 1)), draw(vias), delay_ms=draw(st.sampled_from([0.0, 40.0]))
        )
        resources.append({"initiator": initiator, "cpu_ms": draw(st.sampled_from([0.0, 30.0]))})
    rows = [
        request(
            index,
            *(draw(MOMENTS) for _ in range(6)),
            connection=draw(st.integers(0, 3)),
            initiator=draw(st.one_of(st.none(), st.integers(0, count + 1))),
        )
        for index in range(count)
    ]
    rows[0]["queued_ms"] = 0.0
    client = draw(st.sampled_from(["loader", "chromium"]))
    rate = draw(st.sampled_from([None, 1.5]))
    record = load(draw(st.floats(0, 6000)), rows, client=client, down_mbps=rate, up_mbps=rate)
    return record, page(*resources)


@given(any_load())
def test_the_segments_of_any_load_follow_one_another_and_add_up_to_its_plt(
    made: tuple[LoadRecord, Page],
) -> None:
    record, of = made
    found = critical_path(record, of)
    plt_ms = record["load"]["plt_ms"]
    assert all(segment.ms > 0 and segment.component in COMPONENTS for segment in found.segments)
    assert all(before.end_ms == after.start_ms for before, after in pairwise(found.segments))
    assert sum(found.spent_ms().values()) == pytest.approx(plt_ms)
    if found.segments:
        assert (found.segments[0].start_ms, found.segments[-1].end_ms) == (0, plt_ms)


@pytest.mark.parametrize("mode", ["tcp", "tfo"])
@pytest.mark.parametrize("name", ["amazon", "wsj"])
def test_the_path_of_a_large_page_is_a_chain_of_initiators(name: str, mode: str) -> None:
    record = load_record(name, 100.0, mode)
    kinds = {0: "document"}
    of = page(
        *(
            {
                "kind": kinds.get(row["index"], "image"),
                "url": row["url"],
                **({"initiator": by(int(known(row["initiator"])))} if row["index"] else {}),
            }
            for row in record["requests"]
        )
    )
    found = critical_path(record, of)
    initiators = {row["index"]: row["initiator"] for row in record["requests"]}
    assert found.requests[0] == 0
    assert all(initiators[after] == before for before, after in pairwise(found.requests))
    assert sum(segment.ms for segment in found.segments) == pytest.approx(record["load"]["plt_ms"])
