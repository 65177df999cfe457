"""HTTPS loads have the same proof as loads without TLS, and take the expected number of round trips."""

from pathlib import Path

import pytest
from archive import Archive, Curl, curl_speaks
from small_pages import assert_ok, document, load, page

from firstflight.analysis.records import known
from firstflight.engines.emulate import Emulator
from firstflight.engines.engine import Record
from firstflight.pages import LoadedPage

RTT_MS = 100.0
SYN_DATA_BYTES = 1420

pytestmark = pytest.mark.usefixtures("emulator")


def secure(hosts: int = 1, **fields: object) -> LoadedPage:
    """A document and an image on each other host, all https."""
    images = [
        document(
            url=f"https://o{number}.test/",
            kind="image",
            mime="image/png",
            initiator={"resource": 0, "via": "parser", "at_byte": 500},
        )
        for number in range(1, hosts)
    ]
    return page("secure", document(url="https://o0.test/", **fields), *images)


def fetch(emulator: Emulator, mode: str, **fields: object) -> Record:
    return load(emulator, secure(), mode, RTT_MS, scheme="recorded", **fields)


def round_trips(record: Record) -> float:
    """Round trips from the start of the load to the first byte of the document."""
    return known(record["load"]["first_byte_ms"]) / RTT_MS


@pytest.mark.ordinary_user
@pytest.mark.parametrize("mode", ["tcp", "tfo"])
def test_a_secure_page_loads_with_proof(mode: str, emulator: Emulator) -> None:
    record = load(emulator, secure(10, server_ms=5.0), mode, scheme="recorded")
    assert_ok(record)
    assert all(row["origin"].startswith("https://") for row in record["connections"])
    sent = {row["syn_payload_bytes"] > 0 for row in record["connections"]}
    assert sent == {mode == "tfo"}


def test_a_syn_carries_as_much_of_the_client_hello_as_fits(emulator: Emulator) -> None:
    quantum, classic = (fetch(emulator, "tfo", post_quantum=flag) for flag in (True, False))
    for record in (quantum, classic):
        assert_ok(record)
    assert [row["syn_payload_bytes"] for row in quantum["connections"]] == [SYN_DATA_BYTES]
    assert all(200 < row["syn_payload_bytes"] < 600 for row in classic["connections"])


@pytest.mark.timing
@pytest.mark.parametrize("post_quantum", [True, False])
def test_without_fast_open_a_secure_document_takes_three_round_trips(
    post_quantum: bool, emulator: Emulator
) -> None:
    """One round trip for TCP, one for TLS 1.3, one for the request."""
    record = fetch(emulator, "tcp", post_quantum=post_quantum)
    assert_ok(record)
    assert 3 <= round_trips(record) < 3.5


@pytest.mark.timing
def test_fast_open_saves_one_if_the_client_hello_fits(emulator: Emulator) -> None:
    record = fetch(emulator, "tfo", post_quantum=False)
    assert_ok(record)
    assert 2 <= round_trips(record) < 2.5


@pytest.mark.timing
def test_fast_open_saves_none_if_it_does_not(emulator: Emulator) -> None:
    """The server cannot answer a partial ClientHello. The client sends the rest after the TCP handshake."""
    record = fetch(emulator, "tfo", post_quantum=True)
    assert_ok(record)
    assert 3 <= round_trips(record) < 3.5


@pytest.mark.timing
@pytest.mark.parametrize(("mode", "trips"), [("tcp", 2), ("tfo", 1)])
def test_in_the_clear_a_secure_page_is_an_ordinary_one(mode: str, trips: int, emulator: Emulator) -> None:
    record = load(emulator, secure(), mode, RTT_MS, scheme="http")
    assert_ok(record)
    assert [row["origin"] for row in record["connections"]] == ["http://o0.test"]
    assert trips <= round_trips(record) < trips + 0.5


@pytest.mark.timing
def test_the_server_time_is_kept_under_tls(emulator: Emulator) -> None:
    quick_ms, slow_ms = (
        known(load(emulator, secure(server_ms=ms), "tcp", RTT_MS, scheme="recorded")["load"]["first_byte_ms"])
        for ms in (0.0, 500.0)
    )
    assert slow_ms - quick_ms == pytest.approx(500, rel=0.1)


def test_connections_close_when_they_are_to(emulator: Emulator) -> None:
    record = load(emulator, secure(3), "tfo", scheme="recorded", keep_alive=False)
    assert_ok(record)


@pytest.fixture
def site(tmp_path: Path) -> Archive:
    archive = Archive(tmp_path)
    archive.add("https://a.test/", b"<!doctype html>", [("Content-Type", "text/html")])
    archive.add("https://b.test:8443/b", b"b" * 300_000)
    return archive


@pytest.mark.skipif(not curl_speaks("HTTP2"), reason="this curl speaks no HTTP/2")
def test_curl_speaks_http2_and_http1_with_servers_it_trusts(site: Archive) -> None:
    answers, record = Curl(site.page(), site.folder)(
        ("--http2", "https://a.test/"),
        ("--http1.1", "https://a.test/"),
        ("--http2", "https://b.test:8443/b"),
        ("--tlsv1.2", "--tls-max", "1.2", "https://a.test/"),
    )
    assert [answer.version for answer in answers] == ["2", "1.1", "2", "2"]
    assert [answer.body for answer in answers][1:3] == [b"<!doctype html>", b"b" * 300_000]
    assert record["unmatched_requests"] == 0


def test_nobody_trusts_a_laboratory_unasked(site: Archive) -> None:
    unwilling = ("--cacert", "/etc/ssl/certs/ca-certificates.crt", "https://a.test/")
    [answer], _ = Curl(site.page(), site.folder)(unwilling)
    assert answer.status == 0


def test_curl_sends_its_client_hello_in_the_syn(site: Archive) -> None:
    [answer], record = Curl(site.page(), site.folder, mode="tfo")(("https://a.test/",))
    assert answer.status == 200
    assert record["proof"]["ok"], record["proof"]
    assert (record["tfo_offered"], record["tfo_accepted"]) == (1, 1)


def test_in_the_clear_the_same_servers_answer_http(site: Archive) -> None:
    clear = Curl(site.page(), site.folder, scheme="http")
    [answer, other], _ = clear(("http://a.test/",), ("http://b.test:8443/b",))
    assert (answer.body, len(other.body)) == (b"<!doctype html>", 300_000)
