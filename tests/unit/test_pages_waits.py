"""What HARs record of waiting: for other files, for name lookups, and for distant hosts."""

from pathlib import Path
from typing import Any

import pytest
from test_pages_har import DOCUMENT, entry, opened

from firstflight.model.page import Host, Initiator, Page
from firstflight.pages import LoadedPage, paced

PARSED = {"_initiator": DOCUMENT, "_initiator_type": "parser"}


def initiator(loaded: LoadedPage, index: int) -> Initiator:
    return discovered(loaded.page, index)


def discovered(page: Page, index: int) -> Initiator:
    found = page.resources[index].initiator
    assert found is not None
    return found


def test_a_late_request_of_the_markup_waits_for_the_script_that_ended_right_before(tmp_path: Path) -> None:
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/x.js", 300, "text/javascript", **PARSED),
        entry("http://a.example/i.png", 410, "image/png", **PARSED),
        entry("http://a.example/j.png", 430, "image/png", **PARSED),
    )
    assert [initiator(loaded, index).after for index in (1, 2, 3)] == [None, 1, 1]
    assert [initiator(loaded, index).delay_ms for index in (1, 2, 3)] == [200, 0, 20]
    assert loaded.page.resources[1].cpu_ms == 10


def test_images_and_what_was_still_on_its_way_are_not_waited_for(tmp_path: Path) -> None:
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/i.png", 110, "image/png", **PARSED),
        entry("http://a.example/x.js", 150, "text/javascript", **PARSED),
        entry("http://a.example/j.png", 240, "image/png", **PARSED),
    )
    assert (initiator(loaded, 3).after, initiator(loaded, 3).delay_ms) == (None, 140)


def test_of_several_that_ended_together_the_largest_script_is_waited_for(tmp_path: Path) -> None:
    large = {"bodySize": 90_000, "content": {"size": 90_000, "mimeType": "text/javascript"}}
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/x.js", 300, "text/javascript", response=large, **PARSED),
        entry("http://a.example/y.js", 305, "text/javascript", **PARSED),
        entry("http://a.example/s.css", 310, "text/css", **PARSED),
        entry("http://a.example/i.png", 420, "image/png", **PARSED),
    )
    assert (initiator(loaded, 4).after, initiator(loaded, 4).delay_ms) == (1, 0)


def test_a_request_held_back_on_a_shared_connection_waits_for_its_turn(tmp_path: Path) -> None:
    shared = {"request": {"httpVersion": "h2"}, **PARSED}
    held = {"timings": {"blocked": 120, "wait": 40}}
    images = [f"http://a.example/{name}.png" for name in "ijk"]
    loaded = opened(
        tmp_path,
        entry(DOCUMENT, timings={"connect": 20}, request={"httpVersion": "h2"}),
        entry(images[0], 110, "image/png", **shared),
        entry(images[1], 110, "image/png", **shared, **held),
        entry(images[2], 110, "image/png", **PARSED, **held),
    )
    assert [initiator(loaded, index).after for index in (1, 2, 3)] == [None, 1, None]
    assert initiator(loaded, 2).delay_ms == 20


def test_what_a_script_asks_for_after_another_has_ended_waits_for_that(tmp_path: Path) -> None:
    script = {"_initiator": "http://a.example/x.js"}
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/x.js", 100, "text/javascript", **PARSED),
        entry("http://b.example/d.json", 205, "application/json", **script),
        entry("http://b.example/e.json", 325, "application/json", **script),
    )
    assert [initiator(loaded, index).after for index in (2, 3)] == [None, 2]
    assert loaded.page.resources[1].cpu_ms == 5
    assert loaded.page.resources[2].cpu_ms == 20


@pytest.mark.parametrize(
    ("timings", "rtt_ms"),
    [
        ({"connect": 70, "ssl": 40, "wait": 90}, 30),
        ({"connect": 35, "wait": 2}, 35),
        ({"wait": 55}, 55),
    ],
)
def test_a_host_is_as_far_as_its_quickest_handshake_or_answer(
    tmp_path: Path, timings: dict[str, float], rtt_ms: float
) -> None:
    loaded = opened(tmp_path, entry(DOCUMENT, timings=timings), entry(f"{DOCUMENT}i.png", 300, "image/png",
                                                                      timings={"wait": 200}))  # fmt: skip
    assert loaded.page.hosts == (Host("a.example", rtt_ms),)


def test_a_handshake_that_queued_is_no_longer_than_the_quickest_answer(tmp_path: Path) -> None:
    image = entry("http://b.example/i.png", 300, "image/png", timings={"connect": 300, "wait": 45})
    loaded = opened(tmp_path, entry(DOCUMENT, timings={"connect": 30}), image)
    assert loaded.page.hosts == (Host("a.example", 30), Host("b.example", 45))


def test_a_lookup_is_that_of_the_requests_before_the_first_answer(tmp_path: Path) -> None:
    image = "http://b.example/i.png"
    loaded = opened(
        tmp_path,
        entry(DOCUMENT, timings={"dns": 25}),
        entry(image, 200, "image/png", timings={"dns": 60}),
        entry(f"{image}?2", 205, "image/png", timings={"dns": 55}),
        entry(f"{image}?3", 900, "image/png", timings={"dns": 400}),
    )
    assert [(host.host, host.lookup_ms) for host in loaded.page.hosts] == [
        ("a.example", 25),
        ("b.example", 60),
    ]


def test_without_server_time_servers_and_main_thread_are_free_and_pauses_stay(tmp_path: Path) -> None:
    connect = {"connect": 20, "wait": 90}
    loaded = opened(
        tmp_path,
        entry(DOCUMENT, timings=connect),
        entry("http://a.example/x.js", 300, "text/javascript", _cpuTime=15, timings={"wait": 20}, **PARSED),
    )
    free = paced(loaded.page, server_time=False)
    assert (loaded.page.resources[0].server_ms, loaded.page.resources[1].cpu_ms) == (70, 15)
    assert {(resource.server_ms, resource.cpu_ms) for resource in free.resources} == {(0, 0)}
    assert discovered(free, 1) == initiator(loaded, 1)
    assert discovered(free, 1).delay_ms == 200


def test_processing_scales_the_main_thread_and_pauses_and_leaves_the_servers(tmp_path: Path) -> None:
    script = entry("http://a.example/x.js", 300, "text/javascript", _cpuTime=15, **PARSED)
    loaded = opened(tmp_path, entry(DOCUMENT, timings={"connect": 20, "wait": 90}), script)
    slow = paced(loaded.page, processing=2)
    assert (slow.resources[0].server_ms, slow.resources[1].cpu_ms) == (70, 30)
    assert discovered(slow, 1).delay_ms == 2 * initiator(loaded, 1).delay_ms > 0
    assert paced(loaded.page) is loaded.page


def https(name: str, start_ms: float, connection: str, **timings: float) -> dict[str, Any]:
    """An image over HTTP/2 that the document refers to; its answer takes 40 ms."""
    spoken = {"request": {"httpVersion": "h2"}, "connection": connection}
    return entry(f"https://{name}/{start_ms}", start_ms, "image/png", timings=timings, **spoken, **PARSED)


def host(loaded: LoadedPage, name: str) -> Host:
    return next(host for host in loaded.page.hosts if host.host == name)


def test_a_host_spoke_what_carried_most_of_its_requests(tmp_path: Path) -> None:
    images = [https("b.example", 110 + n, "7") for n in range(2)]
    other = entry("https://b.example/j.png", 120, "image/png", request={"httpVersion": "http/1.1"}, **PARSED)
    plain = entry("http://c.example/k.png", 130, "image/png", request={"httpVersion": "http/1.1"}, **PARSED)
    loaded = opened(tmp_path, entry(DOCUMENT), *images, other, plain)
    assert (host(loaded, "b.example").http, host(loaded, "c.example").http) == ("2", None)


def test_a_host_without_a_connection_of_its_own_has_a_carrier_and_is_as_far(tmp_path: Path) -> None:
    opener = https("b.example", 110, "7", connect=50, ssl=30)
    carried = [https("c.example", 120, "7"), https("c.example", 130, "7")]
    loaded = opened(tmp_path, entry(DOCUMENT), opener, *carried)
    assert host(loaded, "c.example").carrier == "b.example"
    assert host(loaded, "c.example").rtt_ms == host(loaded, "b.example").rtt_ms == 20
    assert host(loaded, "b.example").carrier is None


@pytest.mark.parametrize(("tls_ms", "trips", "verify_ms"), [(20, 1, 0), (35, 1, 15), (40, 2, 0), (75, 2, 35)])
def test_a_handshake_has_round_trips_and_a_rest(
    tmp_path: Path, tls_ms: float, trips: int, verify_ms: float
) -> None:
    opener = https("b.example", 110, "7", connect=20 + tls_ms, ssl=tls_ms)
    found = host(opened(tmp_path, entry(DOCUMENT), opener), "b.example")
    assert (found.rtt_ms, found.tls_trips, found.verify_ms) == (20, trips, verify_ms)


def test_a_certificate_is_verified_before_the_first_answer(tmp_path: Path) -> None:
    first = https("b.example", 110, "7", connect=95, ssl=75)
    later = https("b.example", 400, "8", connect=40, ssl=20)
    found = host(opened(tmp_path, entry(DOCUMENT), first, later), "b.example")
    assert (found.tls_trips, found.verify_ms) == (1, 55)


def test_the_first_request_to_a_host_that_was_held_back_waits_for_its_turn(tmp_path: Path) -> None:
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/i.png", 110, "image/png", **PARSED),
        entry("http://b.example/j.png", 110, "image/png", timings={"blocked": 120, "dns": 30}, **PARSED),
    )
    assert (initiator(loaded, 2).after, initiator(loaded, 2).delay_ms) == (1, 20)


@pytest.mark.parametrize(
    ("length_ms", "on_load_ms", "count"), [(9_000, 9_500, 2), (900, 9_500, 1), (9_000, 5_000, 1)]
)
def test_a_host_that_never_answered_holds_the_load_event(
    tmp_path: Path, length_ms: float, on_load_ms: float, count: int
) -> None:
    hung = entry("http://b.example/i.png", 110, **PARSED)
    hung |= {"time": length_ms, "timings": {"blocked": length_ms}, "response": {"status": 0}}
    loaded = opened(tmp_path, entry(DOCUMENT), hung, on_load_ms=on_load_ms)
    assert len(loaded.page.resources) == count
    if count == 2:
        last = loaded.page.resources[1]
        assert (last.status, last.server_ms, last.blocks_load) == (504, length_ms, True)
        assert host(loaded, "a.example").rtt_ms > 0
        assert "b.example" not in {known.host for known in loaded.page.hosts}
