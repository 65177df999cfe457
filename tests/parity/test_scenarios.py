"""Runs every scenario on both clocks: kernel and simulator must both give the expected result."""

from collections.abc import Mapping
from typing import Any

import pytest
from clocks import Fields, emulate_all, simulate
from scenario import Row, Scenario, Time
from scenario_document import DOCUMENT, document
from scenarios import SCENARIOS

from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

CLOCKS = ("simulated", "emulated")

Records = Mapping[tuple[str, str], Fields]


@pytest.fixture(scope="module")
def records(lab: Lab) -> Records:
    """The record of every scenario on both clocks."""
    emulated = emulate_all(lab, [(scenario.page, scenario.job) for scenario in SCENARIOS])
    simulated = [simulate(scenario.page, scenario.job) for scenario in SCENARIOS]
    return {
        (clock, scenario.name): record
        for clock, records in zip(CLOCKS, (simulated, emulated), strict=True)
        for scenario, record in zip(SCENARIOS, records, strict=True)
    }


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_what_comes_of_a_load_is_as_specified(scenario: Scenario, clock: str, records: Records) -> None:
    record = records[clock, scenario.name]
    assert (record["status"], record["proof"]["ok"]) == ("ok", True), record["error"]
    least, most = scenario.takes
    assert least <= record["relay"]["taken"] <= most
    assert sum(request["error"] is not None for request in record["requests"]) == scenario.failed
    assert len(record["connections"]) == len(scenario.connections)
    for row, expected in zip(record["connections"], scenario.connections, strict=True):
        assert as_specified(row, expected) == expected
    if scenario.order is not None:
        assert order(record) == list(scenario.order)
    if scenario.handshakes is not None:
        for took_ms, time in zip(handshakes_ms(record), scenario.handshakes, strict=True):
            assert_takes(took_ms, time, scenario.rtt_ms, clock)
    assert_takes(record["plt_ms"], scenario.plt, scenario.rtt_ms, clock)


def as_specified(row: Row, expected: Row) -> dict[str, Any]:
    """The columns of a row that the scenario specifies. A value within its range is replaced by the range."""
    seen = {}
    for column, value in expected.items():
        within = isinstance(value, tuple) and value[0] <= row[column] <= value[1]
        seen[column] = value if within else row[column]
    return seen


def order(record: Fields) -> list[int]:
    """Resources in the order of their requests."""
    return [request["index"] for request in sorted(record["requests"], key=lambda row: row["sent_ms"])]


def handshakes_ms(record: Fields) -> list[float]:
    """The time from opening to ready of each connection, ms."""
    opened = [row for row in record["requests"] if row["connect_start_ms"] is not None]
    opened.sort(key=lambda row: row["connection"])
    return [row["connect_end_ms"] - row["connect_start_ms"] for row in opened]


def assert_takes(took_ms: float, time: Time, rtt_ms: float, clock: str) -> None:
    """Asserts that a time is within the bounds that the scenario specifies."""
    earliest, latest = time.bounds_ms(rtt_ms, clock)
    assert earliest <= took_ms <= latest, f"{took_ms:g} ms is not {time} ({earliest:g} to {latest:g} ms)"


def test_the_document_shows_this_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert document(text) == text
