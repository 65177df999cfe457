"""Explicit congestion notification on both clocks: packets that a queue marks are not sent again.

Only with CoDel: PIE drops much of what slow start sends, even from flows that it could mark (RFC 8033,
section 5.1).
"""

from collections.abc import Mapping

import pytest
from clocks import Fields, emulate_all, simulate
from scenario import document

from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

CLOCKS = ("simulated", "emulated")
MODES = ("tcp", "tfo", "quic")
CLOSE = 3
"""How far the numbers of marks on the two clocks, about ten each, may differ."""

Key = tuple[str, str, bool]


@pytest.fixture(scope="module")
def loads(lab: Lab) -> Mapping[Key, Fields]:
    """The records of the loads, by clock, mode, and whether the queue marks."""
    keys = [(mode, ecn) for mode in MODES for ecn in (False, True)]
    jobs = [(page("https" if mode == "quic" else "http"), job(mode, ecn)) for mode, ecn in keys]
    by_clock = ([simulate(*load) for load in jobs], emulate_all(lab, jobs))
    return {
        (clock, *key): record
        for clock, records in zip(CLOCKS, by_clock, strict=True)
        for key, record in zip(keys, records, strict=True)
    }


def page(scheme: str) -> Fields:
    """A document that takes the link three seconds to send."""
    resources = [document(body_bytes=1_500_000, url=f"{scheme}://a.test/")]
    return {"format": "firstflight-profile/1", "name": "long", "resources": resources}


def job(mode: str, ecn: bool) -> Fields:
    """The job for either clock, without the page."""
    link = {"rtt_ms": 50, "down_bps": 4_000_000, "up_bps": 4_000_000, "queue": "codel", "ecn": ecn}
    path = {"topology": "access", **link}
    return {
        "path": path,
        "mode": mode,
        "cookies": "warm",
        "keep_alive": True,
        "scheme": "recorded" if mode == "quic" else "http",
    }


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("mode", MODES)
def test_a_queue_that_marks_drops_nothing_and_nothing_is_sent_again(
    clock: str, mode: str, loads: Mapping[Key, Fields]
) -> None:
    dropping, marking = (loads[clock, mode, ecn] for ecn in (False, True))
    for record in (dropping, marking):
        assert (record["status"], record["proof"]["ok"]) == ("ok", True), record["error"]
    assert dropping["relay"]["marked"] == marking["relay"]["dropped"] == 0
    assert min(dropping["relay"]["dropped"], marking["relay"]["marked"]) > 0
    # QUIC sends lost data in new packets, which do not count as retransmissions.
    assert dropping["retransmits"] >= (dropping["relay"]["dropped"] if mode != "quic" else 0)
    assert marking["retransmits"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_both_clocks_come_down_for_marks_alike(mode: str, loads: Mapping[Key, Fields]) -> None:
    simulated, emulated = (loads[clock, mode, True] for clock in CLOCKS)
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=0.1)
    assert simulated["relay"]["marked"] == pytest.approx(emulated["relay"]["marked"], abs=CLOSE)
