"""Whole pages without loss: both clocks have the same connections, requests and bytes, and similar times.

A run takes every other cell of pages, modes and paths, so that it includes each page in both modes and on
both paths. All cells: `FIRSTFLIGHT_TEST_GRID=all pytest tests/parity/test_whole_pages.py`.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations, product

import pytest
from clocks import Fields, emulate_medians, simulate

from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

pytestmark = pytest.mark.timing

PAGES = ("amazon", "nytimes", "wikipedia", "wsj")
MODES = ("tcp", "tfo")
QUEUE = {"packets": 1000}
PAPER = {"topology": "access", "rtt_ms": 100.0, "down_bps": 4_000_000, "up_bps": 256_000, "queue": QUEUE}
COURSE = {"topology": "star", "rtt_ms": 20.0, "down_bps": 4_000_000, "up_bps": 4_000_000, "queue": QUEUE}
PATHS = {"paper, keep-alive": (PAPER, True), "course, close": (COURSE, False)}
WHOLE_GRID = os.environ.get("FIRSTFLIGHT_TEST_GRID") == "all"
CELLS = [
    (page, mode, path)
    for (row, page), (column, mode), (layer, path) in product(*map(enumerate, (PAGES, MODES, PATHS)))
    if WHOLE_GRID or (row + column + layer) % 2 == 0
]

PLT_ROOM = 0.03
"""How far the page load times of the two clocks may be apart, as a share."""
TIE_ROOM = 0.02
"""Two requests may change places if their times differ by less than this share of the page load time."""

Pair = tuple[Fields, Fields]
Key = tuple[str, str, str]


@pytest.fixture(scope="module")
def loads(lab: Lab) -> Mapping[Key, Pair]:
    """Every cell, simulated and emulated."""
    pages = {
        page.page.name: json.loads(page.page.to_json())
        for page in (under("http", page) for page in open_pages(PAGES))
    }
    asked = [(pages[name], job(mode, path)) for name, mode, path in CELLS]
    pairs = zip([simulate(*load) for load in asked], emulate_medians(lab, asked), strict=True)
    return dict(zip(CELLS, pairs, strict=True))


def job(mode: str, path: str) -> Fields:
    """The job for either clock, without the page."""
    config, keep_alive = PATHS[path]
    return {"path": config, "mode": mode, "cookies": "warm", "keep_alive": keep_alive}


@pytest.fixture(params=CELLS, ids=" ".join)
def pair(request: pytest.FixtureRequest, loads: Mapping[Key, Pair]) -> Pair:
    """Both records of one cell; asserts that both loads ended well."""
    pair = loads[request.param]
    for record in pair:
        assert (record["status"], record["proof"]["ok"]) == ("ok", True), record["error"]
    return pair


def test_connections_carry_the_same_syns(pair: Pair) -> None:
    def syns(record: Fields) -> Counter[tuple[str, str, int, bool]]:
        rows = record["connections"]
        columns = ("origin", "cookie", "syn_payload_bytes", "syn_data_acked")
        return Counter(tuple(row[column] for column in columns) for row in rows)

    assert_equal(pair, syns)


def test_requests_and_their_bytes_are_the_same(pair: Pair) -> None:
    def exchanges(record: Fields) -> list[tuple[int, int | None, int, int]]:
        columns = ("index", "status", "body_bytes", "wire_bytes")
        return sorted(tuple(row[column] for column in columns) for row in record["requests"])

    assert_equal(pair, exchanges)


def test_requests_leave_in_the_same_order_except_in_near_ties(pair: Pair) -> None:
    simulated, emulated = ({row["index"]: row["sent_ms"] for row in record["requests"]} for record in pair)
    tie_ms = TIE_ROOM * pair[1]["plt_ms"]
    swapped = [
        (one, other)
        for one, other in combinations(simulated, 2)
        if min(abs(sent[one] - sent[other]) for sent in (simulated, emulated)) > tie_ms
        and (simulated[one] < simulated[other]) != (emulated[one] < emulated[other])
    ]
    assert swapped == []


def test_page_load_times_are_nearly_the_same(pair: Pair) -> None:
    simulated, emulated = (record["plt_ms"] for record in pair)
    assert simulated == pytest.approx(emulated, rel=PLT_ROOM)


def assert_equal(pair: Pair, what: Callable[[Fields], object]) -> None:
    """Both records say the same."""
    simulated, emulated = map(what, pair)
    assert simulated == emulated
