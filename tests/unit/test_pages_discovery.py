"""What discovered each resource, and when, is inferred from the files and the times of a log."""

from pathlib import Path

import pytest

from firstflight.model.page import Initiator
from firstflight.pages.discovery import Discovery, discover
from firstflight.pages.exchange import Exchange, quiet_ms
from firstflight.pages.mentions import collect_mentions
from firstflight.pages.readers.fetchlog import FetchLog, Histogram, Resolve, Response, Transaction
from firstflight.pages.readers.mirror import MirrorFiles, exchanges_of_log
from firstflight.pages.times import Times, derive_times, load_event_ms

HOST = "http://a.example"
Row = tuple[float, float, str, str, str]


class Recorded:
    """A recording of `rows`: start, end (both ms), path, MIME type, and the body or '-> target'."""

    def __init__(self, root: Path, rows: list[Row], log: FetchLog | None = None) -> None:
        self.log = log or FetchLog()
        for start, end, path, mime, body in rows:
            url, redirect = f"{HOST}{path}", body.removeprefix("-> ") if body.startswith("-> ") else ""
            self.log.transactions.append(Transaction(start, end, url))
            self.log.responses.append(Response(302 if redirect else 200, mime, "", url, redirect))
            file = root / "a.example" / (path.lstrip("/") or "index.html")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("" if redirect else body)
        files = MirrorFiles(root)
        self.exchanges: list[Exchange] = exchanges_of_log(self.log, files)
        self.found: Discovery = discover(self.exchanges, collect_mentions(self.exchanges, files), files)
        self.times: Times = derive_times(self.exchanges, self.found, self.log)


HTML, CSS, JS, PNG = "text/html", "text/css", "application/javascript", "image/png"


def test_markup_names_its_references_at_their_byte(tmp_path: Path) -> None:
    html = '<p><img src="i.png">'
    recorded = Recorded(tmp_path, [(0, 100, "/", HTML, html), (60, 90, "/i.png", PNG, "x")])
    assert recorded.found.initiators == [None, Initiator(0, "parser", len(html))]
    assert recorded.found.kinds == ["document", "image"]


def test_a_redirect_leads_to_the_next_request_of_its_target(tmp_path: Path) -> None:
    rows = [
        (0.0, 100.0, "/", HTML, "-> http://a.example/home"),
        (101.0, 200.0, "/home", HTML, '<img src="/i">'),
        (180.0, 220.0, "/i", "", "-> http://a.example/j"),
        (220.0, 260.0, "/j", PNG, "x"),
    ]
    recorded = Recorded(tmp_path, rows)
    assert recorded.found.initiators[1] == Initiator(0, "redirect")
    assert recorded.found.initiators[3] == Initiator(2, "redirect")
    assert recorded.found.kinds == ["document", "document", "image", "image"]


def test_the_body_after_a_redirect_is_saved_under_the_first_url(tmp_path: Path) -> None:
    recorded = Recorded(
        tmp_path, [(0, 10, "/", HTML, "-> http://a.example/home#x"), (11, 20, "/home", HTML, "-")]
    )
    (tmp_path / "a.example" / "index.html").write_text("<p>")
    (tmp_path / "a.example" / "home").unlink()
    first, second = exchanges_of_log(recorded.log, MirrorFiles(tmp_path))
    assert first.body is None
    assert second.body == tmp_path / "a.example" / "index.html"


def test_a_script_that_names_the_url_and_has_just_ended_asked_for_it(tmp_path: Path) -> None:
    html = '<script src="a.js"></script><script src="b.js"></script>'
    rows = [
        (0.0, 100.0, "/", HTML, html),
        (60.0, 200.0, "/a.js", JS, "load('/data/x.json?now')"),
        (60.0, 210.0, "/b.js", JS, "nothing"),
        (220.0, 250.0, "/data/x.json", "application/json", "{}"),
    ]
    assert Recorded(tmp_path, rows).found.initiators[3] == Initiator(1, "script")


def test_a_script_that_ended_long_before_did_not_ask(tmp_path: Path) -> None:
    html = '<script src="a.js"></script><script src="b.js"></script>'
    rows = [
        (0.0, 100.0, "/", HTML, html),
        (60.0, 200.0, "/a.js", JS, "load('/data/x.json')"),
        (60.0, 300.0, "/b.js", JS, "nothing"),
        (310.0, 350.0, "/data/x.json", "application/json", "{}"),
    ]
    assert Recorded(tmp_path, rows).found.initiators[3] == Initiator(2, "script", inferred=True)


def test_what_nothing_names_before_any_script_is_the_documents(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, [(0, 100, "/", HTML, "x" * 1000), (50, 90, "/i.png", PNG, "x")])
    initiator = recorded.found.initiators[1]
    assert initiator is not None
    assert (initiator.resource, initiator.via, initiator.inferred) == (0, "parser", True)


def test_data_that_names_a_url_discovers_it_as_a_script_does(tmp_path: Path) -> None:
    rows = [
        (0.0, 100.0, "/", HTML, "<p>"),
        (110.0, 200.0, "/piece", HTML, '<div><img src="/dir/i.png"></div>'),
        (205.0, 230.0, "/dir/i.png", PNG, "x"),
    ]
    recorded = Recorded(tmp_path, rows)
    assert recorded.found.initiators[2] == Initiator(1, "script")
    assert recorded.found.kinds[1] == "xhr"


def test_a_cached_style_sheet_is_looked_through(tmp_path: Path) -> None:
    html = '<link rel=stylesheet href="/cached.css">'
    (tmp_path / "a.example").mkdir()
    (tmp_path / "a.example" / "cached.css").write_text(
        "p { background: url(i.png) } q { background: url(no.png) }"
    )
    recorded = Recorded(tmp_path, [(0, 100, "/", HTML, html), (60, 90, "/i.png", PNG, "x")])
    assert recorded.found.initiators[1] == Initiator(0, "parser", len(html))
    assert [missing.url for missing in recorded.found.missing] == [f"{HOST}/no.png"]


def test_quiet_time_leaves_out_what_could_have_been_waited_for(tmp_path: Path) -> None:
    rows = [(0.0, 50.0, "/", HTML, "<p>"), (60.0, 80.0, "/a.js", JS, ""), (70.0, 95.0, "/i.png", PNG, "x")]
    exchanges = Recorded(tmp_path, rows).exchanges
    assert quiet_ms(exchanges, 50, 100) == 30
    assert quiet_ms(exchanges, 50, 75) == 25
    assert quiet_ms(exchanges, 50, 50) == 0


def test_waiting_after_a_script_is_processing_then_delay(tmp_path: Path) -> None:
    html = '<script src="a.js"></script>'
    rows = [
        (0.0, 100.0, "/", HTML, html),
        (60.0, 200.0, "/a.js", JS, ""),
        (230.0, 300.0, "/x", PNG, "x"),
        (250.0, 300.0, "/y", PNG, "x"),
        (5_000.0, 5_100.0, "/z", PNG, "x"),
    ]
    times = Recorded(tmp_path, rows).times
    assert times.cpu_ms == [0, 30, 0, 0, 0]
    assert times.delay_ms == [0, 0, 0, 20, 500]


def test_server_time_is_what_lookup_and_round_trips_leave(tmp_path: Path) -> None:
    log = FetchLog(resolves=[Resolve(0, 15, 0, "a.example")])
    html = '<img src="/i.png"><img src="/j.cgi"><img src="/k.cgi">'
    rows = [
        (0.0, 300.0, "/", HTML, html),
        (275.0, 325.0, "/i.png", PNG, "x"),
        (310.0, 400.0, "/j.cgi", PNG, "x"),
        (450.0, 900.0, "/k.cgi", PNG, "x"),
    ]
    times = Recorded(tmp_path, rows, log).times
    round_trip = 25  # of i.png, on a second connection
    assert times.server_ms == [275 - 15 - 2 * round_trip, 0, 90 - round_trip, 100]


def test_a_lookup_that_the_log_overwrote_costs_the_mean(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0.0, 300.0, "/", HTML, ""),
        (320.0, 360.0, "/x", PNG, "x"),
        (400.0, 440.0, "/y", PNG, "x"),
    ]
    log = FetchLog(
        resolves=[Resolve(0, 400.2, 0, "a.example"), Resolve(400.1, 400.1, 1, "a.example")],
        histograms={"DNS.ResolveSuccess": Histogram(1, 60.0)},
    )
    assert Recorded(tmp_path, rows, log).times.server_ms[0] == 300 - 60 - 2 * 40


@pytest.mark.parametrize(("script_end", "expected"), [(100.0, 210.0), (180.0, float("inf"))])
def test_the_load_event_needs_quiet_and_no_script_just_ended(
    tmp_path: Path, script_end: float, expected: float
) -> None:
    html = '<script src="a.js"></script><img src="/i.png">'
    rows = [
        (0.0, 90.0, "/", HTML, html),
        (50.0, script_end, "/a.js", JS, ""),
        (60.0, 200.0, "/i.png", PNG, "x"),
        (210.0, 230.0, "/beacon", PNG, "x"),
    ]
    recorded = Recorded(tmp_path, rows)
    assert load_event_ms(recorded.exchanges, recorded.found.kinds) == expected
    assert recorded.times.blocks_load == [True, True, True, expected > 210]
