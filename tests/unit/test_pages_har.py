"""HARs become pages. Sizes on the wire, initiators, times and bodies are taken as far as the HAR has them."""

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, load_page
from firstflight.pages.bodies import BodyStore
from firstflight.pages.exchange import Exchange
from firstflight.pages.readers.har_entry import read_entry

BEGAN = "2024-01-01T00:00:{:06.3f}Z"
DOCUMENT = "http://a.example/"
Node = Any


def entry(url: str, start_ms: float = 0.0, mime: str = "text/html", **more: Node) -> dict[str, Any]:
    """An entry of 100 ms: it waits 40 ms and receives for 60 ms."""
    response = {
        "status": 200,
        "headers": [{"name": "Content-Type", "value": mime}],
        "content": {"size": 1000, "mimeType": mime},
        "bodySize": 1000,
        "headersSize": 200,
        **more.pop("response", {}),
    }
    request = {"method": "GET", "url": url, "headers": [], "headersSize": 300, **more.pop("request", {})}
    timings = {"wait": 40, "receive": 60, **more.pop("timings", {})}
    moment = BEGAN.format(start_ms / 1000)
    return {"startedDateTime": moment, "time": 100, "timings": timings, "request": request, **more} | {
        "response": response
    }


def opened(
    folder: Path, *entries: dict[str, Any], on_load_ms: float | None = None, **noted: object
) -> LoadedPage:
    page = {"id": "p", "startedDateTime": BEGAN.format(0), "pageTimings": {"onLoad": on_load_ms}, **noted}
    har = {"log": {"pages": [page], "entries": [{"pageref": "p", **e} for e in entries]}}
    path = folder / "x.har"
    path.write_text(json.dumps(har))
    (loaded,) = load_page(str(path))
    return loaded


def by(loaded: LoadedPage, index: int) -> tuple[int, str, int, bool]:
    initiator = loaded.page.resources[index].initiator
    assert initiator is not None
    return initiator.resource, initiator.via, initiator.at_byte, initiator.inferred


def test_a_recorded_parser_finds_at_the_byte_that_had_arrived(tmp_path: Path) -> None:
    image = entry("http://a.example/i.png", 70, "image/png", _initiator=DOCUMENT, _initiator_type="parser")
    assert by(opened(tmp_path, entry(DOCUMENT), image), 1) == (0, "parser", 500, False)


@pytest.mark.parametrize(
    "stated",
    [
        {"_initiator": "http://a.example/x.js"},
        {"_initiator": {"type": "script", "stack": {"callFrames": [{"url": "http://a.example/x.js"}]}}},
        {"_initiator_detail": '{"type": "script", "stack": {"callFrames": [], "parent": '
         '{"callFrames": [{"url": "http://a.example/x.js"}]}}}'},
    ],
)  # fmt: skip
def test_a_recorded_script_is_the_initiator_however_it_is_written(
    tmp_path: Path, stated: dict[str, Any]
) -> None:
    script = entry("http://a.example/x.js", 10, "text/javascript", _initiator=DOCUMENT)
    data = entry("http://b.example/d.json", 500, "application/json", **stated)
    assert by(opened(tmp_path, entry(DOCUMENT), script, data), 2) == (1, "script", 0, False)


def test_of_a_call_stack_the_file_that_came_last_is_the_initiator(tmp_path: Path) -> None:
    frames = [{"url": "http://a.example/library.js"}, {"url": "http://a.example/app.js"}]
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/library.js", 10, "text/javascript", _initiator=DOCUMENT),
        entry("http://a.example/app.js", 20, "text/javascript", _initiator=DOCUMENT),
        entry("http://a.example/d", 300, "application/json", _initiator={"stack": {"callFrames": frames}}),
    )
    assert by(loaded, 3)[0] == 2


def test_without_a_word_on_it_time_decides_and_the_initiator_is_inferred(tmp_path: Path) -> None:
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/x.js", 70, "text/javascript"),
        entry("http://a.example/d.json", 190, "application/json"),
        entry("http://a.example/late.json", 900, "application/json"),
    )
    assert by(loaded, 1) == (0, "parser", 500, True)
    assert by(loaded, 2) == (1, "script", 0, True)
    assert by(loaded, 3) == (0, "parser", 1000, True)
    assert "initiators inferred, not recorded: 3" in loaded.notes


def test_a_referer_that_is_a_style_sheet_found_it(tmp_path: Path) -> None:
    referer = {"headers": [{"name": "Referer", "value": "http://a.example/s.css"}]}
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/s.css", 50, "text/css"),
        entry("http://a.example/f.woff", 400, "font/woff", request=referer),
    )
    assert by(loaded, 2) == (1, "style", 0, True)


def test_a_redirect_leads_to_its_target_whatever_the_case_of_its_scheme(tmp_path: Path) -> None:
    moved = {"status": 301, "redirectURL": "HTTP://A.example/#top", "content": {}, "bodySize": 0}
    loaded = opened(tmp_path, entry("http://www.a.example/", response=moved), entry(DOCUMENT, 150))
    assert by(loaded, 1) == (0, "redirect", 0, False)
    assert [resource.kind for resource in loaded.page.resources] == ["document", "document"]


def test_redirects_in_a_circle_are_requests_one_after_the_other(tmp_path: Path) -> None:
    def moved(url: str) -> dict[str, Any]:
        return {"status": 302, "redirectURL": url, "content": {}, "bodySize": 0}

    there, back = "http://a.example/1", "http://a.example/2"
    entries = [entry(there, 0, response=moved(back)), entry(back, 100, response=moved(there))]
    loaded = opened(tmp_path, *entries, entry(there, 200, response=moved(back)))
    assert [by(loaded, index)[:2] for index in (1, 2)] == [(0, "redirect"), (1, "redirect")]


def test_server_time_is_the_wait_less_the_handshake(tmp_path: Path) -> None:
    connect: Any = {"timings": {"connect": 70, "ssl": 45, "wait": 40}}
    loaded = opened(tmp_path, entry(DOCUMENT, **connect), entry(f"{DOCUMENT}q?x", 200, "text/plain"))
    assert [resource.server_ms for resource in loaded.page.resources] == [15.0, 15.0]


def test_firefox_counts_tls_beside_the_handshake(tmp_path: Path) -> None:
    loaded = opened(tmp_path, entry(DOCUMENT, timings={"connect": 30, "ssl": 60, "wait": 45}))
    assert loaded.page.resources[0].server_ms == 15.0


def test_what_ended_after_the_load_event_did_not_hold_it_up(tmp_path: Path) -> None:
    image = entry("http://a.example/i.png", 70, "image/png")
    late = entry("http://a.example/beacon", 180, "image/gif")
    loaded = opened(tmp_path, entry(DOCUMENT), image, late, on_load_ms=200)
    assert [resource.blocks_load for resource in loaded.page.resources] == [True, True, False]


@pytest.mark.parametrize(
    ("response", "wire"),
    [
        ({"bodySize": 700}, 700),
        ({"bodySize": 700, "_transferSize": 700}, 500),
        ({"bodySize": -1, "_transferSize": 900}, 700),
        ({"bodySize": -1, "content": {"size": 1000, "compression": 400}}, 600),
        ({"bodySize": -1}, 1000),
        ({"bodySize": 900, "headers": [{"name": "content-length", "value": "700"}]}, 700),
        ({"bodySize": 900, "headers": [{"name": "content-length", "value": "10000000"}]}, 900),
        ({"bodySize": 900, "headers": [{"name": "content-length", "value": "-1"}]}, 900),
        ({"bodySize": 1200, "content": {"size": 1000, "mimeType": "text/html"}}, 1000),
        ({"bodySize": 1e300, "content": {"size": 5}}, 5),
    ],
)
def test_the_body_has_the_bytes_that_crossed_the_wire(
    tmp_path: Path, response: dict[str, Any], wire: int
) -> None:
    loaded = opened(tmp_path, entry(DOCUMENT, response=response))
    assert loaded.page.resources[0].body_bytes == wire


def test_a_body_is_served_in_the_coding_of_its_header(tmp_path: Path) -> None:
    html = "<p>" + "hello " * 500
    headers = [
        {"name": "Content-Encoding", "value": "gzip"},
        {"name": "Set-Cookie", "value": "a=1\nb=2"},
        {"name": "Connection", "value": "keep-alive"},
        {"name": "bad name", "value": "x"},
    ]
    body = {"headers": headers, "content": {"size": len(html), "mimeType": "text/html", "text": html}}
    loaded = opened(tmp_path, entry(DOCUMENT, response=body))
    served = loaded.bodies[0].read_bytes()
    assert gzip.decompress(served) == html.encode()
    assert loaded.page.resources[0].body_bytes == len(served)
    assert loaded.headers[0] == (("Content-Encoding", "gzip"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))


def test_a_synthesised_body_is_in_no_coding(tmp_path: Path) -> None:
    headers = [{"name": "content-encoding", "value": "br"}, {"name": "ETag", "value": '"x"'}]
    loaded = opened(tmp_path, entry(DOCUMENT, response={"headers": headers}))
    assert (loaded.bodies, loaded.headers) == ({}, {0: (("ETag", '"x"'),)})


def test_binary_bodies_come_back_as_they_were(tmp_path: Path) -> None:
    content = {"size": 4, "mimeType": "image/png", "encoding": "base64"}
    body = base64.b64encode(b"\x89PNG").decode()
    image = entry("http://a.example/i.png", 50, "image/png", response={"content": {**content, "text": body}})
    assert opened(tmp_path, entry(DOCUMENT), image).bodies[1].read_bytes() == b"\x89PNG"


def test_a_text_that_stands_for_a_removed_body_is_not_served(tmp_path: Path) -> None:
    content = {"size": 5000, "mimeType": "text/html", "text": "MANUALLY REMOVED"}
    loaded = opened(tmp_path, entry(DOCUMENT, response={"content": content}))
    assert loaded.bodies == {}
    assert "bodies that the archive does not hold, synthesised: 1" in loaded.notes


def test_markup_tells_where_it_names_a_reference(tmp_path: Path) -> None:
    html = "<p>" * 50 + "<img src=i.png>" + "<p>" * 50
    content = {"size": len(html), "mimeType": "text/html", "text": html}
    image = entry("http://a.example/i.png", 70, "image/png")
    loaded = opened(tmp_path, entry(DOCUMENT, response={"content": content}), image)
    assert by(loaded, 1) == (0, "parser", html.index(">", 150) + 1, False)


def test_what_is_no_request_over_the_network_is_left_out_and_counted(tmp_path: Path) -> None:
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("data:image/gif;base64,AAAA", 10),
        entry("blob:http://a.example/1", 10),
        entry("chrome-extension://abc/x.js", 10),
        entry("wss://a.example/", 10, response={"status": 101}),
        entry("http://a.example/socket", 10, response={"status": 101}),
        entry("http://a.example/blocked", 10, response={"status": 0}),
        entry("http://user:secret@a.example/", 10),
        entry("https://fonts.example400,700/", 10),
        entry("http://a.example/cached.js", 10, "text/javascript", response={"fromDiskCache": True}),
    )
    assert len(loaded.page.resources) == 1
    assert sum(note.startswith("left out") for note in loaded.notes) == 8


def test_what_a_cached_script_asked_for_was_asked_for_by_its_initiator(tmp_path: Path) -> None:
    cached = {"fromDiskCache": True}
    loaded = opened(
        tmp_path,
        entry(DOCUMENT),
        entry("http://a.example/x.js", 50, "text/javascript", response=cached, _initiator=DOCUMENT),
        entry("http://a.example/d", 150, "application/json", _initiator="http://a.example/x.js"),
    )
    assert by(loaded, 1) == (0, "parser", 1000, False)


def test_only_the_first_page_is_read(tmp_path: Path) -> None:
    loaded = opened(tmp_path, entry(DOCUMENT), {**entry("http://b.example/", 5), "pageref": "q"})
    assert [resource.url for resource in loaded.page.resources] == [DOCUMENT]
    assert "left out: requests of other pages in the file: 1" in loaded.notes


def test_a_recording_that_began_after_its_document_is_refused(tmp_path: Path) -> None:
    late = {"headers": [{"name": "Referer", "value": DOCUMENT}]}
    script = entry("http://a.example/x.js", 0, "text/javascript", request=late)
    with pytest.raises(PageInputError, match=r"only what a\.example asked for later") as caught:
        opened(tmp_path, script, script, entry("http://ads.example/frame", 50))
    assert "before the page is loaded" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 5_000, "not JSON"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"[]", "not a HAR"),
        (b'{"log": {"entries": []}}', "not a HAR"),
        (b'{"log": {"entries": [1, {}]}}', "none of its 1 requests has an answer"),
        (gzip.compress(b"{}")[:-4], "not whole gzip"),
        (b"\x1f\x8b\x08", "not whole gzip"),
        (zlib.compress(b"{}"), "UTF-8"),
    ],
)
def test_a_damaged_har_names_the_file_and_the_mend(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "x.har"
    path.write_bytes(text)
    with pytest.raises(PageInputError, match=message) as caught:
        load_page(str(path))
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_gzipped_har_is_read_like_any(tmp_path: Path) -> None:
    har = {"log": {"entries": [entry(DOCUMENT)]}}
    path = tmp_path / "x.har.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(har).encode()))
    assert load_page(str(path))[0].page.url == DOCUMENT


def test_a_har_that_unpacks_to_gigabytes_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(140):
            file.write(bytes(1 << 20))
    with pytest.raises(PageInputError, match="more than 128 MiB"):
        load_page(str(path))


def two_pages(folder: Path) -> Path:
    """A HAR of two pages; the second begins with a redirect."""
    first = [entry("http://a.example/"), entry("http://a.example/i.png", 10.0, "image/png")]
    moved = entry("http://b.example/", 20.0, "")
    moved["response"] |= {"status": 302, "redirectURL": "http://b.example/x"}
    second = [moved, entry("http://b.example/x", 30.0), entry("http://b.example/f.html", 40.0)]
    entries = [{**e, "pageref": page} for page, of in (("p1", first), ("p2", second)) for e in of]
    pages = [{"id": name, "startedDateTime": "2020-01-01T00:00:00Z"} for name in ("p1", "p2")]
    (folder / "x.har").write_text(json.dumps({"log": {"pages": pages, "entries": entries}}))
    return folder / "x.har"


@pytest.mark.parametrize(
    ("fragment", "document"),
    [
        ("", "http://a.example/"),
        ("#http://a.example", "http://a.example/"),
        ("#http://b.example/", "http://b.example/"),
        ("#http://B.example:80/x", "http://b.example/"),
    ],
)
def test_a_page_of_a_har_is_named_by_its_url(tmp_path: Path, fragment: str, document: str) -> None:
    (loaded,) = load_page(f"{two_pages(tmp_path)}{fragment}")
    assert loaded.page.url == document
    assert len(loaded.page.resources) == (2 if "a.example" in document else 3)


def test_a_page_that_a_har_does_not_have_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    path = two_pages(tmp_path)
    for url in ("http://c.example/", "http://b.example/f.html", "http://a.example/i.png"):
        with pytest.raises(PageInputError, match="no page in it begins with") as caught:
            load_page(f"{path}#{url}")
        assert caught.value.hint == f"it has '{path}#http://a.example/', '{path}#http://b.example/x'"


@pytest.mark.parametrize(
    ("recorded", "http", "priority", "connection"),
    [
        ({"response": {"httpVersion": "h3"}, "_priority": "High", "_connectionId": "9"}, "3", "High", "9"),
        ({"_protocol": "HTTP/2", "_priority": "Lowest", "_socket": 165}, "2", "VeryLow", "165"),
        ({"request": {"httpVersion": "http/2.0"}, "_priority": "LOWEST", "connection": "7"}, "2", "Low", "7"),
        ({"response": {"httpVersion": "HTTP/1.1"}, "connection": "443"}, "1.1", "", ""),
        ({"response": {"httpVersion": "http/2+quic/46"}}, "3", "", ""),
        ({"response": {"httpVersion": "unknown"}, "_priority": "Idle", "_socket": 0}, "", "", ""),
    ],
)
def test_what_tools_say_of_a_request_s_connection_is_kept_in_one_form(
    recorded: dict[str, Any], http: str, priority: str, connection: str
) -> None:
    read = read_entry(entry(DOCUMENT, **recorded), 0.0, BodyStore("x"))
    assert isinstance(read, Exchange)
    assert (read.carried.http, read.priority, read.carried.connection) == (http, priority, connection)


def test_the_certificate_of_a_connection_and_what_blocks_rendering_are_kept() -> None:
    secure = {"protocol": "QUIC", "sanList": ["a.example", "*.b.example", 1]}
    raw = entry(DOCUMENT, _securityDetails=secure, serverIPAddress="[::1]", _renderBlocking="blocking")
    read = read_entry(raw, 0.0, BodyStore("x"))
    assert isinstance(read, Exchange)
    assert (read.carried.tls, read.carried.certified) == ("1.3", ("a.example", "*.b.example"))
    assert (read.carried.address, read.render_blocking) == ("::1", True)
    plain = read_entry(entry(DOCUMENT, _renderBlocking="non_blocking"), 0.0, BodyStore("x"))
    assert isinstance(plain, Exchange)
    assert (plain.carried.tls, plain.render_blocking) == ("", False)
