"""The exchanges on the wire, with their bodies, are read from Chromium's net log."""

import gzip
from pathlib import Path

import pytest
from netlog_double import EPOCH_MS, Log

from firstflight.pages.record.wire import WireExchange, exchanges_of, open_netlog

CODED = gzip.compress(b"text " * 100)


def exchanges(log: Log, folder: Path, *, cut: int = 0) -> list[WireExchange]:
    opened = open_netlog(log.write(folder, cut=cut))
    assert opened is not None
    assert opened.epoch_ms == EPOCH_MS
    return exchanges_of(opened, folder)


def answered(log: Log, status: str, *fields: str, url: str = "http://a.test/", method: str = "GET") -> int:
    number = log.start(url, method)
    log.send(number)
    log.answer(number, status, fields)
    return number


def test_a_coded_body_is_kept_in_its_coding(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "200 OK", "Content-Encoding: gzip", f"Content-Length: {len(CODED)}")
    log.read(number, CODED[:10], decoded=b"")
    log.read(number, CODED[10:], decoded=b"text " * 100)
    [found] = exchanges(log, tmp_path)
    assert found.body.read_bytes() == CODED
    assert (found.status, found.body_bytes, found.whole) == (200, len(CODED), True)


def test_a_body_without_coding_is_kept_as_it_is_read(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "200 OK", "Content-Length: 6")
    log.read(number, b"abc")
    log.read(number, b"def")
    [found] = exchanges(log, tmp_path)
    assert found.body.read_bytes() == b"abcdef"
    assert found.whole


def test_a_chunked_body_stands_in_chunks(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "200 OK", "Transfer-Encoding: chunked")
    log.read(number, b"a" * 17)
    [found] = exchanges(log, tmp_path)
    assert found.body.read_bytes() == b"11\r\n" + b"a" * 17 + b"\r\n0\r\n\r\n"
    assert found.body_bytes == 17


def test_a_body_that_ends_too_early_is_not_whole(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "200 OK", "Content-Length: 6")
    log.read(number, b"abc")
    log.happens("FAILED", number, {"net_error": -101})
    [found] = exchanges(log, tmp_path)
    assert (found.whole, found.error, found.body_bytes) == (False, -101, 3)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_some_answers_have_no_body_whatever_the_cache_gives(tmp_path: Path, status: str) -> None:
    log = Log()
    log.read(answered(log, status), b"from the cache")
    [found] = exchanges(log, tmp_path)
    assert (found.body_bytes, found.whole) == (0, True)


def test_a_redirect_is_an_exchange_of_its_own(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "302 Found", "Location: /b", "Content-Length: 5")
    log.happens("URL_REQUEST_START_JOB", number, {"url": "http://a.test/b", "method": "GET"}, phase=1)
    log.send(number)
    log.answer(number, "200 OK", ["Content-Length: 1"])
    log.read(number, b"x")
    first, second = exchanges(log, tmp_path)
    assert (first.url, first.location, first.body_bytes, first.whole) == ("http://a.test/", "/b", 0, True)
    assert (second.url, second.body.read_bytes()) == ("http://a.test/b", b"x")


def test_a_request_of_http2_reads_as_one_of_http1(tmp_path: Path) -> None:
    log = Log()
    number = log.start("https://a.test/x")
    fields = [":method: GET", ":authority: a.test", ":scheme: https", ":path: /x", "accept: */*"]
    log.happens("HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS", number, {"headers": fields})
    [found] = exchanges(log, tmp_path)
    assert found.request.first_line == "GET /x HTTP/1.1"
    assert found.request.fields == [("Host", "a.test"), ("accept", "*/*")]


def test_fields_keep_their_bytes(tmp_path: Path) -> None:
    log = Log()
    answered(log, "200 OK", "Set-Cookie: a=b", "%ESCAPED:\u200b X-Latin: caf%E9 100%25", "Set-Cookie: c=d")
    [found] = exchanges(log, tmp_path)
    assert found.answer is not None
    assert found.answer.fields == [
        ("Set-Cookie", "a=b"),
        ("X-Latin", "caf\xe9 100%"),
        ("Set-Cookie", "c=d"),
    ]


def test_the_same_bytes_on_a_socket_do_not_count_twice(tmp_path: Path) -> None:
    log = Log()
    number = answered(log, "200 OK")
    log.happens("SOCKET_BYTES_RECEIVED", number, {"bytes": "YWJj"}, source=2)
    log.read(number, b"abc")
    [found] = exchanges(log, tmp_path)
    assert found.body.read_bytes() == b"abc"


def test_what_the_cache_answers_is_no_exchange(tmp_path: Path) -> None:
    log = Log()
    log.read(log.start("http://a.test/"), b"from the cache")
    assert exchanges(log, tmp_path) == []


def test_a_log_that_is_cut_off_ends_where_it_ends(tmp_path: Path) -> None:
    log = Log()
    log.read(answered(log, "200 OK"), b"abc")
    log.read(answered(log, "200 OK", url="http://a.test/2"), b"abc")
    assert [found.body_bytes for found in exchanges(log, tmp_path, cut=60)] == [3, 0]


@pytest.mark.parametrize("text", ["", "not JSON\n", '{"constants":'])
def test_a_log_without_its_beginning_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "net.json").write_text(text)
    assert open_netlog(tmp_path / "net.json") is None
    assert open_netlog(tmp_path / "none") is None
