"""One visit recorded by several tools: the readers agree with each other and with the packets."""

import gzip
import json
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias

import pytest

from firstflight.model.page import LoadedPage
from firstflight.pages import load_page
from firstflight.pages.exchange import Exchange
from firstflight.pages.readers import har

Read: TypeAlias = tuple[LoadedPage, list[Exchange]]
"""A page, and the exchanges it was made of."""

NEAR_MS = 20.0
"""How far apart two clocks of the same browser may put one event, ms."""


def read(path: Path) -> Read:
    kept: list[list[Exchange]] = []
    whole = har.timed_page

    def keeping(exchanges: list[Exchange], *more: object) -> LoadedPage:
        kept.append(exchanges)
        return whole(exchanges, *more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(har, "timed_page", keeping)
        (page,) = load_page(str(path))
    return page, kept[0]


@pytest.fixture(scope="module")
def formats(shared_data: Path) -> Path:
    return shared_data / "formats"


@pytest.fixture(scope="module")
def visits(formats: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Read]:
    """The visit, by the kind of file: DevTools log, net log, and the first run of the WebPageTest result."""
    result = json.loads(gzip.decompress((formats / "webpagetest.amazon.json.gz").read_bytes()))
    del result["data"]["runs"]["2"]
    first = tmp_path_factory.mktemp("run") / "webpagetest.json"
    first.write_text(json.dumps(result))
    return {
        "log": read(formats / "devtools-log.amazon.json.gz"),
        "netlog": read(formats / "netlog.amazon.json.gz"),
        "result": read(first),
    }


def asked(exchanges: list[Exchange]) -> list[tuple[str, str, int, str, str]]:
    """URL, method, status, version of HTTP and priority of each request, sorted by URL."""
    return sorted((e.url, e.method, e.status, e.carried.http, e.priority) for e in exchanges)


def test_three_tools_saw_the_same_requests_versions_of_http_and_priorities(visits: dict[str, Read]) -> None:
    log, netlog, result = (asked(visits[name][1]) for name in ("log", "netlog", "result"))
    assert len(log) == 15
    assert log == netlog == result
    assert Counter(http for _, _, _, http, _ in log) == {"2": 9, "3": 6}


def test_connections_are_the_same_and_shared_by_the_same_requests(visits: dict[str, Read]) -> None:
    """Chromium numbers its sockets and sessions. All three tools record that number."""
    shared = {name: {(e.url, e.carried.connection) for e in visits[name][1]} for name in visits}
    assert shared["log"] == shared["netlog"] == shared["result"]
    assert len({connection for _, connection in shared["log"]}) == 7
    tls = {name: {e.carried.connection: e.carried.tls for e in visits[name][1]} for name in visits}
    assert tls["log"] == tls["netlog"] == tls["result"]
    assert Counter(tls["log"].values()) == {"1.3": 6, "1.2": 1}


def test_bodies_have_the_same_size_on_the_wire(visits: dict[str, Read]) -> None:
    """DevTools includes the frame headers of HTTP/2 and HTTP/3: at most 9 bytes for each 16 KiB."""
    sizes = {name: sorted((e.url, e.start_ms, e.body_bytes) for e in visits[name][1]) for name in visits}
    for (_, _, log), (_, _, netlog), (_, _, result) in zip(*sizes.values(), strict=True):
        assert netlog == result
        assert netlog <= log <= netlog * 1.002 + 27


def test_requests_were_asked_for_and_answered_at_the_same_moments(visits: dict[str, Read]) -> None:
    for name in ("netlog", "result"):
        pairs = zip(
            sorted(visits["log"][1], key=lambda e: (e.url, e.start_ms)),
            sorted(visits[name][1], key=lambda e: (e.url, e.start_ms)),
            strict=True,
        )
        began = {other: min(e.start_ms for e in visits[other][1]) for other in ("log", name)}
        for one, two in pairs:
            assert one.start_ms - began["log"] == pytest.approx(two.start_ms - began[name], abs=NEAR_MS)
            assert one.end_ms - began["log"] == pytest.approx(two.end_ms - began[name], abs=NEAR_MS)
            assert one.clock.wait_ms == pytest.approx(two.clock.wait_ms, abs=NEAR_MS)


def test_handshakes_took_as_long_in_each(visits: dict[str, Read]) -> None:
    """The TCP handshake only. A reader that included TLS would be wrong by two round trips."""
    trips = {
        name: {
            e.carried.connection: e.clock.handshake_ms
            for e in exchanges
            if e.clock.handshake_ms is not None and e.carried.http == "2"
        }
        for name, (_, exchanges) in visits.items()
    }
    assert len(trips["log"]) == 4
    for name in ("netlog", "result"):
        assert trips[name].keys() == trips["log"].keys()
        assert all(trips[name][c] == pytest.approx(trips["log"][c], abs=2) for c in trips["log"])


def test_the_page_is_one_visit_although_its_challenge_loads_it_again(visits: dict[str, Read]) -> None:
    for page, exchanges in visits.values():
        assert [e.status for e in exchanges if e.url == "https://www.amazon.com/"] == [202, 200]
        assert page.page.resources[0].kind == "document"
    assert visits["log"][0].page.describe().depth == visits["result"][0].page.describe().depth


def test_render_blocking_initiators_and_certificates_agree_where_they_are_recorded(
    visits: dict[str, Read],
) -> None:
    log, result = visits["log"][1], visits["result"][1]
    blocking = {e.url for e in log if e.render_blocking}
    assert blocking == {e.url for e in result if e.render_blocking}
    assert len(blocking) == 2
    assert {e.url: e.stated.type for e in log} == {e.url: e.stated.type for e in result}
    chains = {e.carried.connection: e.carried.certificate_bytes for e in visits["netlog"][1]}
    assert {c: size for c, size in chains.items() if size} == {
        e.carried.connection: e.carried.certificate_bytes for e in result if e.carried.certificate_bytes
    }


def test_the_net_log_has_every_body_as_it_was_on_the_wire(visits: dict[str, Read]) -> None:
    page, _ = visits["netlog"]
    resources = page.page.resources
    assert len(page.bodies) == 14
    assert all(resources[i].body_bytes == file.stat().st_size for i, file in page.bodies.items())


def packets(capture: bytes) -> Iterator[tuple[str, str, str, bytes]]:
    """Protocol, source, destination and the data after the IP header, of each packet of a capture."""
    order = "<" if capture[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    names, at = {6: "tcp", 17: "udp"}, 24
    while at + 16 <= len(capture):
        (size,) = struct.unpack_from(f"{order}I", capture, at + 8)
        frame, at = capture[at + 16 : at + 16 + size], at + 16 + size
        kind, ip = frame[12:14], frame[14:]
        if kind == b"\x08\x00" and ip[9] in names:
            whole = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4], "big")]
            yield names[ip[9]], str(ip_address(ip[12:16])), str(ip_address(ip[16:20])), whole
        elif kind == b"\x86\xdd" and ip[6] in names:
            whole = ip[40 : 40 + int.from_bytes(ip[4:6], "big")]
            yield names[ip[6]], str(ip_address(ip[8:24])), str(ip_address(ip[24:40])), whole


def test_connections_and_bytes_are_those_of_the_packets(visits: dict[str, Read], formats: Path) -> None:
    """Each connection that the readers name opens with a SYN, or with QUIC packets, to that server.

    Over TCP, the packets carry the bytes that the readers count, with compressed headers. Certificates,
    session tickets and framing add at most 2 % and 7 kB. The browser opened one more connection and did not
    use it.
    """
    capture = gzip.decompress((formats / "tcpdump.amazon.cap.gz").read_bytes())
    syns, datagrams, came = Counter[str](), Counter[str](), Counter[tuple[str, bytes]]()
    for protocol, source, destination, packet in packets(capture):
        if protocol == "udp":
            datagrams[destination] += packet[2:4] == b"\x01\xbb"
        else:
            syns[destination] += packet[2:4] == b"\x01\xbb" and (packet[13] & 0x12) == 0x02
            came[source, packet[2:4]] += len(packet) - (packet[12] >> 4) * 4
    exchanges = visits["log"][1]
    servers = {(e.carried.http == "3", e.carried.connection, e.carried.address) for e in exchanges}
    assert Counter(is_quic for is_quic, _, _ in servers) == {True: 3, False: 4}
    assert syns.total() == 5
    for is_quic, connection, address in servers:
        assert (datagrams if is_quic else syns)[address] >= 1, address
        over = [e for e in exchanges if e.carried.connection == connection]
        bodies, headers = sum(e.body_bytes for e in over), sum(e.header_bytes for e in over)
        most = max((bytes_ for (server, _), bytes_ in came.items() if server == address), default=0)
        assert is_quic or bodies <= most <= 1.02 * (bodies + headers) + 7_000, address


def test_an_agent_s_folder_and_its_trace_are_one_visit(formats: Path, tmp_path: Path) -> None:
    """A WebPageTest agent's folder and its Chromium trace have the same requests, times and connections."""
    with zipfile.ZipFile(formats / "wptagent.amazon.zip") as agent:
        agent.extractall(tmp_path)
    zipped, folder = read(formats / "wptagent.amazon.zip"), read(tmp_path)
    assert zipped[0].page.resources == folder[0].page.resources
    _, trace = read(tmp_path / "1_trace.json.gz")
    one = sorted(zipped[1], key=lambda e: (e.url, e.start_ms))
    two = sorted(trace, key=lambda e: (e.url, e.start_ms))
    assert asked(one) == asked(two)
    assert [e.carried.connection for e in one] == [e.carried.connection for e in two]
    began = [min(e.start_ms for e in side) for side in (one, two)]
    for here, there in zip(one, two, strict=True):
        assert here.start_ms - began[0] == pytest.approx(there.start_ms - began[1], abs=NEAR_MS)
        assert here.end_ms - began[0] == pytest.approx(there.end_ms - began[1], abs=NEAR_MS)


def test_of_two_runs_the_median_is_taken_and_named(formats: Path) -> None:
    moments = []
    for name in ("webpagetest.amazon.json.gz", "webpagetest.amazon.har.gz"):
        page, exchanges = read(formats / name)
        assert "run 2 of 2" in page.notes[0]
        assert "2,677 ms of 2,677 to 2,701 ms" in page.notes[0]
        began_ms = exchanges[0].start_ms
        moments.append([(e.url, e.start_ms - began_ms, e.end_ms - began_ms) for e in exchanges])
    for one, two in zip(*moments, strict=True):
        assert one[0] == two[0]
        assert one[1:] == pytest.approx(two[1:], abs=1), "the HAR's are as the result's"


@pytest.mark.parametrize(
    ("name", "url", "requests", "hosts"),
    [
        ("chrome-trace.google.json.gz", "https://www.google.com/", 38, 6),
        ("devtools-trace.roadtrip.json.gz", "https://roadtrip.meenan.us/", 44, 5),
        ("devtools-log.google.json.gz", "https://www.google.com/", 39, 5),
        ("firefox.google.har.gz", "https://www.google.com/", 39, 6),
    ],
)
def test_every_other_format_is_read(formats: Path, name: str, url: str, requests: int, hosts: int) -> None:
    page, exchanges = read(formats / name)
    assert page.page.url == url
    assert (len(exchanges), len({e.host for e in exchanges})) == (requests, hosts)
    assert {e.carried.http for e in exchanges} <= {"2", "3"}
    if name.startswith("chrome-trace"):
        busiest = max(exchanges, key=lambda e: e.clock.cpu_ms or 0.0)
        assert busiest.is_script
        assert 50 < (busiest.clock.cpu_ms or 0.0) < 300
    left_out = sum(int(note.rpartition(": ")[2]) for note in page.notes if note.startswith("left out"))
    assert left_out <= requests / 2
