"""The laboratory's ledger and the browser's own report are joined to one record."""

from typing import Any

from firstflight.engines.clients.job import Drive, Fetch
from firstflight.engines.clients.join import in_the_clear, join
from firstflight.engines.engine import Answer
from firstflight.pages import Page

DOCUMENT, IMAGE = "http://a.test/", "http://b.test/1.png"
STRANGER = "http://stranger.test/x.js"


def resource(url: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    sizes = {"request_bytes": 300, "header_bytes": 200, "body_bytes": 500}
    return {"url": url, "kind": "document", "mime": "text/html", **sizes, **fields}


PAGE = Page.from_fields(
    {
        "name": "two",
        "resources": [
            resource(DOCUMENT),
            resource(
                IMAGE,
                kind="image",
                mime="image/png",
                initiator={"resource": 0, "via": "parser", "at_byte": 100},
            ),
        ],
    }
)


def row(index: int, url: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    times = dict.fromkeys(("queued_ms", "connect_start_ms", "connect_end_ms"))
    return {
        **{"index": index, "url": url, "connection": index, **times},
        **{"sent_ms": 1.0, "first_byte_ms": 2.0, "end_ms": 3.0, "status": 200, "error": None, **fields},
    }


def answer(*rows: dict[str, Any], opened_ms: float = 1.0) -> Any:  # noqa: ANN401
    return {
        "status": "ok",
        "requests": list(rows),
        "unmatched_requests": sum(row["index"] >= 2 for row in rows),
        "connections": [{"opened_ms": opened_ms}],
    }


def fetch(url: str, queued_ms: float = 0.5, **fields: Any) -> Fetch:  # noqa: ANN401
    return Fetch(url=url, method="GET", kind="Image", queued_ms=queued_ms, **fields)


def served(url: str, queued_ms: float = 0.5, **fields: Any) -> Fetch:  # noqa: ANN401
    times = {"sent_ms": queued_ms + 10, "first_byte_ms": queued_ms + 20, "end_ms": queued_ms + 30}
    return fetch(url, queued_ms, **{**times, "status": 200, **fields})


def joined(*rows: dict[str, Any], fetches: list[Fetch], **drive: Any) -> Answer:  # noqa: ANN401
    return join(answer(*rows), Drive(fetches=fetches, **drive), PAGE)


def test_a_request_has_the_browsers_times_and_the_laboratorys_connection() -> None:
    [first] = joined(row(0, DOCUMENT), fetches=[served(DOCUMENT, connect_start_ms=4.0, connect_end_ms=5.0)])[
        "requests"
    ]
    assert first == row(
        0,
        DOCUMENT,
        queued_ms=0.5,
        connect_start_ms=4.0,
        connect_end_ms=5.0,
        sent_ms=10.5,
        first_byte_ms=20.5,
        end_ms=30.5,
        initiator=None,
    )


def test_the_initiator_is_the_resource_with_its_url_and_fragments_do_not_matter() -> None:
    image = joined(
        row(0, DOCUMENT),
        row(1, IMAGE),
        fetches=[served(DOCUMENT), served(f"{IMAGE}#part", 2, initiator=DOCUMENT)],
    )["requests"][1]
    assert (image["index"], image["initiator"], image["queued_ms"]) == (1, 0, 2)


def test_the_same_url_twice_is_joined_in_the_order_of_being_sent() -> None:
    rows = joined(
        row(1, IMAGE, connection=7),
        row(1, IMAGE, connection=8),
        fetches=[served(IMAGE, 40.0), served(IMAGE, 20.0)],
    )["requests"]
    assert [(row["connection"], row["queued_ms"]) for row in rows] == [(7, 20.0), (8, 40.0)]


def test_what_no_name_resolved_is_an_unmatched_request_with_its_error() -> None:
    record = joined(
        row(0, DOCUMENT), fetches=[served(DOCUMENT), fetch(STRANGER, error="net::ERR_NAME_NOT_RESOLVED")]
    )
    assert record["unmatched_requests"] == 1
    stray = next(row for row in record["requests"] if row["url"] == STRANGER)
    assert (stray["index"], stray["status"], stray["error"]) == (2, None, "net::ERR_NAME_NOT_RESOLVED")


def test_strays_of_the_servers_and_of_the_browser_share_no_index() -> None:
    record = joined(
        row(2, "http://a.test/unknown", error="no recording answers it"),
        fetches=[served("http://a.test/unknown"), fetch(STRANGER, error="net::ERR_NAME_NOT_RESOLVED")],
    )
    assert record["unmatched_requests"] == 2
    assert sorted(row["index"] for row in record["requests"]) == [2, 3]


def test_a_recorded_resource_that_was_never_sent_is_a_failed_request_not_an_unmatched_one() -> None:
    record = joined(
        row(0, DOCUMENT), fetches=[served(DOCUMENT), fetch(IMAGE, error="net::ERR_SSL_PROTOCOL_ERROR")]
    )
    assert record["unmatched_requests"] == 0
    assert record["requests"][1]["index"] == 1 and record["requests"][1]["status"] is None


def test_what_came_from_memory_or_was_blocked_is_no_request() -> None:
    record = joined(
        row(0, DOCUMENT),
        fetches=[
            served(DOCUMENT),
            fetch(IMAGE, cached=True),
            fetch("http://a.test/favicon.ico", error="inspector"),
        ],
    )
    assert len(record["requests"]) == 1 and record["unmatched_requests"] == 0


def test_a_response_that_nobody_read_ended_when_the_laboratory_says() -> None:
    unread = served(IMAGE, end_ms=None, error="net::ERR_ABORTED")
    [image] = joined(row(1, IMAGE, end_ms=77.0), fetches=[unread])["requests"]
    assert (image["end_ms"], image["error"]) == (77.0, None)


def test_a_connection_before_navigation_fails_the_load() -> None:
    record = join(answer(opened_ms=-3.0), Drive(), PAGE)
    assert record["status"] == "failed" and "before navigation" in str(record["error"])


def test_a_broken_browser_is_said_to_be_broken() -> None:
    assert join(answer(), Drive(error="it died", broken=True), PAGE)["broken"] is True
    assert "broken" not in join(answer(), Drive(), PAGE)


def test_urls_lose_their_tls_as_the_laboratory_takes_it_from_them() -> None:
    for recorded, cleared in [
        ("https://a.test/x?y=https://b.test/", "http://a.test/x?y=https://b.test/"),
        ("https://a.test:443/", "http://a.test/"),
        ("https://a.test:8443/", "http://a.test:8443/"),
        ("https://a.test:80/", "http://a.test/"),
        ("http://a.test/", "http://a.test/"),
    ]:
        assert in_the_clear(recorded) == cleared


def test_of_interleaved_responses_the_browser_knows_which_came_whole() -> None:
    cut = {"end_ms": None, "error": "the response did not reach the client whole", "wire_bytes": 0}
    whole = served(DOCUMENT, protocol="h2", wire_bytes=700)
    stray = served(STRANGER, protocol="h2", wire_bytes=70)
    rows = joined(row(0, DOCUMENT, **cut), row(2, STRANGER, **cut), fetches=[whole, stray])["requests"]
    assert [(item["wire_bytes"], item["error"]) for item in rows] == [(700, None), (0, cut["error"])]


def test_a_response_that_the_browser_gave_up_is_judged_by_what_arrived() -> None:
    cut = {"end_ms": None, "error": "the response did not reach the client whole"}
    [given_up] = joined(
        row(0, DOCUMENT, **cut), fetches=[served(DOCUMENT, protocol="h2", error="net::ERR_ABORTED")]
    )["requests"]
    assert given_up["error"] == cut["error"]
