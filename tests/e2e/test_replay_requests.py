"""Replay to a real HTTP client: recorded requests get the recorded answer, others are listed as unmatched."""

import gzip
from pathlib import Path

import pytest
from archive import Answer, Archive, Curl
from small_pages import assert_ok, document, load, page

from firstflight.engines.emulate import Emulator
from firstflight.engines.exec import ExecRecord

HOST = "http://a.test"
TEXT = b"0123456789" * 100

pytestmark = pytest.mark.usefixtures("emulator")


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = Archive(tmp_path)
    archive.add(f"{HOST}/", b"<!doctype html>")
    return archive


def ask(archive: Archive, *requests: tuple[str, ...]) -> tuple[list[Answer], ExecRecord]:
    return Curl(archive.page(), archive.folder)(*requests)


def test_an_archive_is_answered_with_its_own_header_and_coded_body(archive: Archive) -> None:
    coded = gzip.compress(TEXT)
    fields = [("Content-Type", "text/css"), ("Content-Encoding", "gzip"), ("X-Of-Old", "yes")]
    archive.add(f"{HOST}/a.css", coded, [*fields, ("Connection", "x"), ("Alt-Svc", 'h3=":443"')])
    [plain, decoded], record = ask(archive, (f"{HOST}/a.css",), ("--compressed", f"{HOST}/a.css"))
    assert (plain.body, decoded.body) == (coded, TEXT)
    assert plain.headers == {
        "content-type": "text/css",
        "content-encoding": "gzip",
        "x-of-old": "yes",
        "content-length": str(len(coded)),
    }
    assert record["unmatched_requests"] == 0


def test_statuses_without_a_body_have_none(archive: Archive) -> None:
    for status in (204, 304, 404):
        archive.add(f"{HOST}/{status}", b"" if status != 404 else b"gone", status=status)
    answers, _ = ask(archive, *((f"{HOST}/{status}",) for status in (204, 304, 404)))
    assert [answer.status for answer in answers] == [204, 304, 404]
    assert [answer.body for answer in answers] == [b"", b"", b"gone"]
    assert "content-length" not in answers[0].headers


def test_a_head_has_the_length_and_no_body(archive: Archive) -> None:
    archive.add(f"{HOST}/a", TEXT, [("Content-Type", "text/plain")])
    [answer], record = ask(archive, ("--head", f"{HOST}/a"))
    assert (answer.status, answer.headers["content-length"]) == (200, str(len(TEXT)))
    assert record["unmatched_requests"] == 0


def test_a_part_is_cut_out_of_a_recorded_whole(archive: Archive) -> None:
    archive.add(f"{HOST}/a", TEXT, [("Content-Type", "text/plain")])
    [part, end, beyond], _ = ask(
        archive, ("-r", "5-14", f"{HOST}/a"), ("-r", "-3", f"{HOST}/a"), ("-r", "5000-", f"{HOST}/a")
    )
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"5678901234", "bytes 5-14/1000")
    assert (end.status, end.body) == (206, b"789")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */1000")


def test_a_chunked_response_stays_chunked(archive: Archive) -> None:
    body = TEXT * 100
    archive.add(f"{HOST}/a", body, [("Transfer-Encoding", "chunked"), ("Content-Type", "text/plain")])
    [answer], _ = ask(archive, (f"{HOST}/a",))
    assert (answer.headers.get("transfer-encoding"), answer.body) == ("chunked", body)
    assert "content-length" not in answer.headers


def test_the_loader_reads_chunks(emulator: Emulator, archive: Archive) -> None:
    archive.add(f"{HOST}/a", TEXT * 100, [("Transfer-Encoding", "chunked")])
    assert_ok(load(emulator, archive.page(), "tfo"))


def test_a_post_is_matched_by_its_url_whatever_it_carries(archive: Archive) -> None:
    archive.add(f"{HOST}/log", b"noted", method="POST")
    [answer], record = ask(archive, ("-d", "x" * 50_000, f"{HOST}/log"))
    assert (answer.status, answer.body) == (200, b"noted")
    assert record["unmatched_requests"] == 0


def test_duplicates_come_in_recorded_order(archive: Archive) -> None:
    for body in (b"one", b"two"):
        archive.add(f"{HOST}/a", body)
    answers, _ = ask(archive, *[(f"{HOST}/a",)] * 3)
    assert [answer.body for answer in answers] == [b"one", b"two", b"two"]


def test_a_value_that_changes_with_every_visit_is_no_difference(archive: Archive) -> None:
    archive.add(f"{HOST}/pixel?id=7&t=1353542341123", b"gif")
    archive.add(f"{HOST}/pixel?id=8&t=1353542341124", b"png")
    [same, near, other], record = ask(
        archive,
        (f"{HOST}/pixel?id=8&t=1353542341124",),
        (f"{HOST}/pixel?id=8&t=1753542341124",),
        (f"{HOST}/pixel?id=9&t=1353542341124",),
    )
    assert (same.body, near.body, other.status) == (b"png", b"png", 404)
    assert (record["approximate_requests"], record["unmatched_requests"]) == (1, 1)


def test_what_was_not_recorded_is_a_failure_that_is_named(archive: Archive) -> None:
    answers, record = ask(archive, (f"{HOST}/no?a=b",), ("-d", "x", f"{HOST}/"))
    assert [answer.status for answer in answers] == [404, 404]
    assert record["unmatched"] == [f"{HOST}/no?a=b", f"POST {HOST}/"]
    assert record["unmatched_requests"] == 2


def test_what_wget2_writes_otherwise_is_the_same(archive: Archive) -> None:
    archive.add(f"{HOST}/ad;ord=1?x=~y", b"ad")
    [answer], record = ask(archive, (f"{HOST}/ad%3Bord=1?x=%7Ey",))
    assert (answer.body, record["approximate_requests"]) == (b"ad", 0)


def test_a_large_body_comes_whole(archive: Archive) -> None:
    body = bytes(range(256)) * 20_000
    archive.add(f"{HOST}/film", body)
    [answer, part], _ = ask(archive, (f"{HOST}/film",), ("-r", "4000000-4000009", f"{HOST}/film"))
    assert answer.body == body
    assert part.body == body[4_000_000:4_000_010]


def test_fonts_and_data_may_be_read_by_other_origins(tmp_path: Path) -> None:
    kinds = {"font": "font/woff2", "xhr": "application/json", "image": "image/png"}
    found = [
        document(
            url=f"http://b.test/{kind}",
            kind=kind,
            mime=mime,
            initiator={"resource": 0, "via": "parser", "at_byte": 1},
        )
        for kind, mime in kinds.items()
    ]
    site = page("cors", document(), *found)
    answers, _ = Curl(site, tmp_path)(*((f"http://b.test/{kind}",) for kind in kinds))
    allowed = [answer.headers.get("access-control-allow-origin") for answer in answers]
    assert allowed == ["*", "*", None]


def test_a_preflight_is_answered_where_the_request_itself_would_be(archive: Archive) -> None:
    archive.add(f"{HOST}/api", b"{}", method="PUT")
    preflight = ("-X", "OPTIONS", "-H", "Origin: http://b.test", "-H", "Access-Control-Request-Method: PUT")
    [known, unknown], record = ask(archive, (*preflight, f"{HOST}/api"), (*preflight, f"{HOST}/no"))
    assert (known.status, known.headers["access-control-allow-methods"]) == (204, "PUT")
    assert (unknown.status, record["unmatched_requests"]) == (404, 1)


def test_the_server_waits_as_long_as_recorded(archive: Archive) -> None:
    archive.add(f"{HOST}/slow", b"x", server_ms=300.0)
    [quick, slow], _ = ask(archive, (f"{HOST}/",), (f"{HOST}/slow",))
    assert slow.seconds >= 0.3
    assert quick.seconds < slow.seconds
