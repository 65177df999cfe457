"""Files of WebPageTest, DevTools, Chromium's net logs and traces, browsertime and Lighthouse become pages."""

import base64
import gzip
import json
import zipfile
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstflight.errors import PageInputError
from firstflight.pages import LoadedPage, load_page

PAGE, SCRIPT = "https://a.example/", "https://b.example/x.js"
Node = dict[str, Any]
Json = Any


def saved(folder: Path, document: object, name: str = "input.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def only(path: Path | str) -> LoadedPage:
    (page,) = load_page(str(path))
    return page


def devtools_log() -> list[Node]:
    """A document, and a script that its markup refers to, which uses a connection of its own."""

    def sent(name: str, url: str, at_s: float, **more: Json) -> Node:
        request = {"url": url, "method": "GET", "headers": {}, "initialPriority": "High"}
        params = {"requestId": name, "loaderId": "1", "frameId": "f", "request": request, "timestamp": at_s}
        return {"method": "Network.requestWillBeSent", "params": {**params, "wallTime": 1e9 + at_s, **more}}

    def came(name: str, url: str, mime: str, at_s: float, header: int) -> list[Node]:
        timing = {"requestTime": at_s, "connectStart": 1, "connectEnd": 21, "sslStart": 11, "sslEnd": 21}
        timing |= {"dnsStart": -1, "dnsEnd": -1, "sendStart": 22, "sendEnd": 23, "receiveHeadersEnd": 43}
        response = {"url": url, "status": 200, "headers": {"content-type": mime}, "mimeType": mime}
        response |= {"protocol": "h2", "connectionId": 7 + int(name), "timing": timing}
        response |= {
            "encodedDataLength": header,
            "securityDetails": {"protocol": "TLS 1.3", "sanList": ["*.a"]},
        }
        data = {"requestId": name, "dataLength": 900, "encodedDataLength": 0}
        ended = {"requestId": name, "timestamp": at_s + 0.1, "encodedDataLength": header + 500}
        return [
            {"method": "Network.responseReceived", "params": {"requestId": name, "response": response}},
            {"method": "Network.dataReceived", "params": data},
            {"method": "Network.loadingFinished", "params": ended},
        ]

    by_parser = {"initiator": {"type": "parser", "url": PAGE}, "renderBlockingBehavior": "Blocking"}
    return [
        sent("1", PAGE, 10.0, type="Document", initiator={"type": "other"}),
        *came("1", PAGE, "text/html", 10.0, 35),
        sent("2", SCRIPT, 10.05, type="Script", **by_parser),
        *came("2", SCRIPT, "text/javascript", 10.05, 40),
        {"method": "Page.loadEventFired", "params": {"timestamp": 10.2}},
    ]


def trace() -> Node:
    """The same visit as a Chromium trace, with times on the main thread."""
    answer = {
        "statusCode": 200,
        "mimeType": "text/html",
        "protocol": "h2",
        "connectionId": 8,
        "encodedDataLength": 60,
    }
    script = {**answer, "mimeType": "text/javascript", "connectionId": 9, "encodedDataLength": 40}
    timing = {"sendStart": 1, "sendEnd": 2, "receiveHeadersEnd": 30}
    first = {"requestId": "1", "frame": "f", "url": PAGE, "resourceType": "Document", "priority": "VeryHigh"}
    second = {"requestId": "2", "frame": "f", "url": SCRIPT, "resourceType": "Script", "priority": "High"}
    stack = [{"url": PAGE, "lineNumber": 1}]

    def event(name: str, ts: int, data: Node, **more: Json) -> Node:
        return {
            "name": name,
            "ph": "I",
            "ts": ts,
            "pid": 1,
            "tid": 1,
            "args": {"data": data, **more.pop("args", {})},
            **more,
        }

    return {
        "traceEvents": [
            event("navigationStart", 1_000_000, {"isOutermostMainFrame": True}, args={"frame": "f"}),
            event("ResourceWillSendRequest", 1_000_000, {"requestId": "1"}),
            event("ResourceSendRequest", 1_040_000, first),
            event(
                "ResourceReceiveResponse",
                1_040_100,
                {**answer, "requestId": "1", "timing": {**timing, "requestTime": 1.0}},
            ),
            event(
                "ResourceFinish",
                1_060_000,
                {"requestId": "1", "encodedDataLength": 560, "decodedBodyLength": 900},
            ),
            event(
                "ResourceSendRequest",
                1_050_000,
                {**second, "stackTrace": stack, "renderBlocking": "blocking"},
            ),
            event(
                "ResourceReceiveResponse",
                1_090_000,
                {**script, "requestId": "2", "timing": {**timing, "requestTime": 1.05}},
            ),
            event(
                "ResourceFinish",
                1_100_000,
                {"requestId": "2", "encodedDataLength": 540, "decodedBodyLength": 900},
            ),
            event("EvaluateScript", 1_100_000, {"url": SCRIPT}, ph="X", dur=30_000),
            event("FunctionCall", 1_110_000, {"url": PAGE}, ph="X", dur=10_000),
            event("MarkLoad", 1_200_000, {"isOutermostMainFrame": True, "frame": "f"}),
        ]
    }


TYPES = [
    "REQUEST_ALIVE",
    "URL_REQUEST_START_JOB",
    "HTTP_STREAM_REQUEST",
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
    "TCP_CONNECT",
    "SSL_CONNECT",
    "HTTP_TRANSACTION_SEND_REQUEST",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
    "SOCKET_POOL_BOUND_TO_SOCKET",
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    "URL_REQUEST_JOB_FILTERED_BYTES_READ",
    "HTTP_STREAM_REQUEST_PROTO",
]


def netlog() -> Node:
    """A net log of a document with its connection and body, and of a request by the browser itself."""
    kinds = {"URL_REQUEST": 1, "HTTP_STREAM_JOB": 16, "SOCKET": 9}

    def event(source: str, name: int, event_type: str, at_ms: int, phase: int = 0, **params: Json) -> Node:
        return {
            "source": {"id": name, "type": kinds[source]},
            "type": TYPES.index(event_type),
            "time": str(at_ms),
            "phase": phase,
            "params": params,
        }

    def led(to: int) -> Node:
        return {"source_dependency": {"id": to}}

    body = base64.b64encode(b"<p>hello</p>").decode()
    answer = ["HTTP/1.1 200", "content-type: text/html", "content-length: 12"]
    return {
        "constants": {
            "logEventTypes": {name: number for number, name in enumerate(TYPES)},
            "logSourceType": kinds,
            "logEventPhase": {"PHASE_NONE": 0, "PHASE_BEGIN": 1, "PHASE_END": 2},
            "timeTickOffset": 1e12,
        },
        "events": [
            event("URL_REQUEST", 1, "REQUEST_ALIVE", 100, 1, priority="HIGHEST"),
            event(
                "URL_REQUEST",
                1,
                "URL_REQUEST_START_JOB",
                100,
                1,
                url=PAGE,
                method="GET",
                request_type="main frame",
            ),
            event(
                "URL_REQUEST",
                5,
                "URL_REQUEST_START_JOB",
                100,
                1,
                url="https://update.example/",
                initiator="not an origin",
            ),
            event("URL_REQUEST", 1, "HTTP_STREAM_REQUEST", 101, 1),
            event("SOCKET", 3, "TCP_CONNECT", 102, 1),
            event("SOCKET", 3, "TCP_CONNECT", 122, 2, remote_address="192.0.2.1:443"),
            event("SOCKET", 3, "SSL_CONNECT", 122, 1),
            event("SOCKET", 3, "SSL_CONNECT", 150, 2, version="TLS 1.3", next_proto="h2"),
            event("HTTP_STREAM_JOB", 2, "SOCKET_POOL_BOUND_TO_SOCKET", 150, **led(3)),
            event("URL_REQUEST", 1, "HTTP_STREAM_REQUEST_BOUND_TO_JOB", 150, **led(2)),
            event("URL_REQUEST", 1, "HTTP_TRANSACTION_SEND_REQUEST", 151, 1),
            event(
                "URL_REQUEST",
                1,
                "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
                151,
                headers=[":path: /", "accept: */*"],
            ),
            event("URL_REQUEST", 1, "HTTP_TRANSACTION_SEND_REQUEST", 152, 2),
            event("URL_REQUEST", 1, "HTTP_TRANSACTION_READ_RESPONSE_HEADERS", 180, headers=answer),
            event("URL_REQUEST", 1, "URL_REQUEST_JOB_FILTERED_BYTES_READ", 190, byte_count=12, bytes=body),
        ],
    }


def request(url: str, created: int, **more: Json) -> Node:
    """A request as WebPageTest records it: created at `created` ms, then DNS, TCP and TLS, then sent."""
    return {
        "full_url": url,
        "method": "GET",
        "responseCode": 200,
        "contentType": "text/html",
        "protocol": "HTTP/2",
        "created": created,
        "dns_start": created + 5,
        "dns_ms": 15,
        "connect_start": created + 20,
        "connect_end": created + 40,
        "connect_ms": 20,
        "ssl_start": created + 40,
        "ssl_end": created + 70,
        "ssl_ms": 30,
        "load_start": created + 70,
        "ttfb_ms": 50,
        "load_end": created + 140,
        "objectSize": 500,
        "socket": 4,
        "priority": "Highest",
        "headers": {"request": ["accept: */*"], "response": ["HTTP/1.1 200 OK", "content-length: 500"]},
        **more,
    }


def step(load_ms: int, *more: Node) -> Node:
    return {"date": 1.7e9, "loadTime": load_ms, "requests": [request(PAGE, 10), *more]}


def result(*loads_ms: int) -> Node:
    """A WebPageTest result with a run for each load time in `loads_ms`, and one view with a filled cache."""
    runs = {str(number + 1): {"firstView": step(ms)} for number, ms in enumerate(loads_ms)}
    runs["1"]["repeatView"] = step(1)
    return {"data": {"id": "x", "runs": runs}}


def test_a_devtools_log_has_connections_priorities_and_who_asked(tmp_path: Path) -> None:
    page = only(saved(tmp_path, devtools_log())).page
    document, script = page.resources
    assert (document.url, script.url, script.kind) == (PAGE, SCRIPT, "script")
    assert script.initiator is not None
    assert (script.initiator.via, script.initiator.inferred) == ("parser", False)
    assert (document.body_bytes, script.body_bytes) == (500, 500)
    assert {host.host: host.rtt_ms for host in page.hosts} == {"a.example": 10.0, "b.example": 10.0}
    assert page.source == "DevTools log input.json"


def test_selenium_s_performance_log_is_the_same_log_in_strings(tmp_path: Path) -> None:
    wrapped = [
        {"level": "INFO", "message": json.dumps({"message": event, "webview": "x"})}
        for event in devtools_log()
    ]
    one, two = (only(saved(tmp_path, log)).page for log in (devtools_log(), wrapped))
    assert one == two


def test_a_redirect_under_one_id_is_two_requests(tmp_path: Path) -> None:
    log = devtools_log()
    hop = json.loads(json.dumps(log[0]))
    hop["params"]["request"]["url"] = "https://a.example/old"
    hop["params"]["timestamp"] = 9.0
    log[0]["params"]["redirectResponse"] = {
        "status": 301,
        "headers": {"location": PAGE},
        "encodedDataLength": 90,
    }
    page = only(saved(tmp_path, [hop, *log])).page
    assert [(r.url, r.status) for r in page.resources][:2] == [("https://a.example/old", 301), (PAGE, 200)]


def test_two_navigations_of_a_user_are_two_pages(tmp_path: Path) -> None:
    later = json.loads(json.dumps(devtools_log()).replace("a.example", "c.example"))
    for event in later:
        params = event["params"]
        params["timestamp"] = params.get("timestamp", 0.0) + 100.0
        params["requestId"] = "1" + params.get("requestId", "")
        params["loaderId"] = "11"
    path = saved(tmp_path, [*devtools_log(), *later])
    assert only(path).page.url == PAGE
    assert only(f"{path}#https://c.example/").page.url == "https://c.example/"


@pytest.mark.parametrize("as_list", [False, True])
def test_a_trace_has_the_main_thread_s_time_without_what_ran_inside(tmp_path: Path, *, as_list: bool) -> None:
    whole = trace()
    page = only(saved(tmp_path, whole["traceEvents"] if as_list else whole)).page
    document, script = page.resources
    assert (document.cpu_ms, script.cpu_ms) == (10.0, 20.0)
    assert script.initiator is not None
    assert (script.initiator.via, script.initiator.inferred) == ("parser", False)


def test_a_net_log_has_the_body_and_the_connection_and_not_what_the_browser_asked_for_itself(
    tmp_path: Path,
) -> None:
    loaded = only(saved(tmp_path, netlog()))
    (document,) = loaded.page.resources
    assert (document.url, document.body_bytes) == (PAGE, 12)
    assert loaded.bodies[0].read_bytes() == b"<p>hello</p>"
    assert [(host.host, host.rtt_ms) for host in loaded.page.hosts] == [("a.example", 20.0)]


def test_of_webpagetest_s_runs_the_lower_median_is_taken_and_a_filled_cache_is_none(tmp_path: Path) -> None:
    loaded = only(saved(tmp_path, result(900, 300, 700, 500)))
    assert loaded.notes[0] == ("run 4 of 4 (run 4), the median by load event: 500 ms of 300 to 900 ms")


def test_webpagetest_s_times_begin_when_a_request_was_asked_for(tmp_path: Path) -> None:
    page = only(saved(tmp_path, result(900))).page
    assert [(host.rtt_ms, host.lookup_ms) for host in page.hosts] == [(20.0, 15.0)]
    assert page.resources[0].server_ms == 30.0


def test_a_har_of_webpagetest_has_the_times_of_its_result(tmp_path: Path) -> None:
    """An entry begins when its request was sent, although its timings include the handshakes before that."""
    whole = result(900)
    asked = whole["data"]["runs"]["1"]["firstView"]["requests"][0]
    entry = har(PAGE, 900, tool="WebPagetest")["log"]["entries"][0]
    entry |= {f"_{key}": value for key, value in asked.items()}
    entry |= {"startedDateTime": "2023-11-14T22:13:20.080Z", "time": 165.0, "_run": 1}
    entry["timings"] = {"dns": 15, "connect": 50, "ssl": 30, "wait": 50, "receive": 20}
    pages = [{"id": "page_1", "startedDateTime": "2023-11-14T22:13:20Z", "pageTimings": {"onLoad": 900}}]
    recorded = {"log": {"creator": {"name": "WebPagetest"}, "pages": pages, "entries": [entry]}}
    one, two = (only(saved(tmp_path, document)).page for document in (whole, recorded))
    assert one.hosts == two.hosts
    assert [(r.server_ms, r.cpu_ms) for r in one.resources] == [
        (r.server_ms, r.cpu_ms) for r in two.resources
    ]


def test_what_was_posted_counts_where_only_its_header_says_how_long_it_was(tmp_path: Path) -> None:
    document = har(PAGE, 1)
    bare = only(saved(tmp_path, document)).page.resources[0].request_bytes
    document["log"]["entries"][0]["request"]["headers"] = [{"name": "Content-Length", "value": "9000"}]
    assert only(saved(tmp_path, document)).page.resources[0].request_bytes > bare + 8_500


def test_the_agent_s_zip_is_read_with_its_bodies(tmp_path: Path) -> None:
    inner = tmp_path / "bodies.zip"
    with zipfile.ZipFile(inner, "w") as bodies:
        bodies.writestr("001-x-body.txt", "h" * 500)
    asked = request(PAGE, 10, body_file="001-x-body.txt")
    data = {"pageData": {"date": 1.7e9, "loadTime": 300}, "requests": [asked]}
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1_devtools_requests.json.gz", gzip.compress(json.dumps(data).encode()))
        archive.write(inner, "1_bodies.zip")
        archive.writestr("testinfo.json", json.dumps({"bwIn": 5000, "bwOut": "1000", "latency": 28}))
    loaded = only(path)
    assert loaded.bodies[0].read_bytes() == b"h" * 500
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "folder")
    assert only(tmp_path / "folder").page.resources == loaded.page.resources


def har(url: str, *loads_ms: float, tool: str = "Browsertime") -> Node:
    entry = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "time": 100,
        "request": {"method": "GET", "url": url, "headers": []},
        "response": {
            "status": 200,
            "headers": [],
            "content": {"size": 9, "mimeType": "text/html"},
            "bodySize": 9,
        },
        "timings": {"wait": 50, "receive": 50},
    }
    pages = [{"id": f"page_{n}", "pageTimings": {"onLoad": ms}} for n, ms in enumerate(loads_ms, start=1)]
    entries = [{**entry, "pageref": page["id"]} for page in pages]
    return {"log": {"creator": {"name": tool}, "pages": pages, "entries": entries}}


def test_a_browsertime_har_has_runs_and_another_tool_s_pages_are_none(tmp_path: Path) -> None:
    runs, pages = (
        only(saved(tmp_path, har(PAGE, 300, 100, 200, tool=tool), "x.har")).notes
        for tool in ("Browsertime", "WebInspector")
    )
    assert runs[0] == "run 3 of 3 (page_3), the median by load event: 200 ms of 100 to 300 ms"
    assert not any(line.startswith("run") for line in pages)


def test_a_sitespeed_folder_gives_each_page_once(tmp_path: Path) -> None:
    saved(tmp_path, har(PAGE, 300, 100), "pages/a_example/data/browsertime.har")
    saved(tmp_path, har("https://c.example/", 50, 70, 60), "pages/c_example/data/browsertime.har.gz")
    pages = load_page(str(tmp_path))
    assert [page.page.url for page in pages] == [PAGE, "https://c.example/"]
    assert [page.notes[0][:10] for page in pages] == ["run 2 of 2", "run 3 of 3"]
    assert only(f"{tmp_path}#https://c.example/").page.url == "https://c.example/"
    with pytest.raises(PageInputError, match="no page in its HARs begins with"):
        load_page(f"{tmp_path}#https://z.example/")


def test_several_hars_of_one_page_in_a_folder_are_its_runs(tmp_path: Path) -> None:
    for name, ms in (("a", 300), ("b", 100), ("c", 200)):
        saved(tmp_path, har(PAGE, ms, tool="WebInspector"), f"{name}.har")
    assert only(tmp_path).notes[0].startswith("run 3 of 3 (c.har page_1), the median by load event: 200 ms")


def test_lighthouse_s_artifacts_are_read_where_there_is_one_log(tmp_path: Path) -> None:
    saved(tmp_path, devtools_log(), "defaultPass.devtoolslog.json")
    assert only(tmp_path).page.url == PAGE
    saved(tmp_path, devtools_log(), "other.devtoolslog.json")
    with pytest.raises(PageInputError, match="2 DevTools logs"):
        load_page(str(tmp_path))


DOCUMENTS: dict[str, Callable[[], Json]] = {
    "log": devtools_log,
    "trace": trace,
    "netlog": netlog,
    "result": lambda: result(3, 1),
    "har": lambda: har(PAGE, 3, 1),
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("ending", ["x.json", "x.json.gz", "x.txt", "x"])
def test_a_file_is_known_by_its_content(tmp_path: Path, name: str, ending: str) -> None:
    assert only(saved(tmp_path, DOCUMENTS[name](), ending)).page.url == PAGE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[{}]", "of none of the formats"),
        (b"{}", "of none of the formats"),
        (b"3", "of none of the formats"),
        (b'{"traceEvents": [', r"not JSON: .* line 1 column"),
        (b'{"traceEvents": []}', "without a request over http"),
        (b'[{"method": "Network.enable", "params": 1}]', "without a request in it"),
        (b'{"constants": {"logEventTypes": {"x": 1}}, "events": []}', "without a request of a page"),
        (b'{"data": {"runs": {"1": {"firstView": {"a": 1}}}}}', "without the requests of any run"),
        (b"\x1f\x8b\x08\x00junk", "not whole gzip"),
        (b"PK\x03\x04junk", "no ZIP"),
        (b"", "not JSON"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_place_and_a_hint(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    if data.startswith(b"PK"):
        path = path.rename(tmp_path / "x.zip")
    with pytest.raises(PageInputError, match=message) as caught:
        load_page(str(path))
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("data", [b"", b"hello", b"\xd4\xc3\xb2\xa1\x02\x00"])
def test_a_file_of_another_kind_is_refused_with_the_kinds_that_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    with pytest.raises(PageInputError, match="of none of the formats that are read") as caught:
        load_page(str(path))
    assert "WebPageTest's result, a trace" in caught.value.hint


def test_a_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(netlog()).encode())
    for size in (9, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "x.json.gz"
        path.write_bytes(whole[:size])
        with pytest.raises(PageInputError, match="not whole gzip"):
            load_page(str(path))


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 1 << 70)
    | st.floats()
    | st.sampled_from(["", "x", PAGE, "h2", "1e400", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["url", "headers", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Json, place: tuple[Json, ...] = ()) -> list[tuple[Json, ...]]:
    """The path of keys to every value in a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, item in inner for found in places(item, (*place, key)))]


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_change_of_a_recording_makes_a_reader_fail_otherwise_than_in_words(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    document: Json = DOCUMENTS[name]()
    for _ in range(data.draw(st.integers(1, 4))):
        known = places(document)[1:]
        if known:
            *way, last = data.draw(st.sampled_from(known))
            reduce(getitem, way, document)[last] = data.draw(JUNK)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    try:
        load_page(str(path))
    except PageInputError as error:
        assert error.message
        assert error.hint
