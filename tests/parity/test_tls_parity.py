"""TLS on both clocks: SYNs carry the same ClientHello bytes, and page load times agree."""

import json
from collections.abc import Mapping
from itertools import product

import pytest
from clocks import Fields, emulate_medians, simulate

from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

pytestmark = pytest.mark.timing

PATH = {"rtt_ms": 100, "down_bps": 4_000_000, "up_bps": 4_000_000, "queue": {"packets": 1000}}
"""A path without loss, so that the times of handshakes decide the result."""
OFFERS: dict[str, Fields] = {
    "TLS 1.3, post-quantum share": {"post_quantum": True},
    "TLS 1.3, classic share": {"post_quantum": False},
    "TLS 1.2": {"version": "1.2"},
}
MODES = ("tcp", "tfo")
PLT, BYTES = 0.05, 0.02
"""How far the two clocks may be apart, relative.

Where packets reach a queue at once, either may enter first.
"""

Loads = Mapping[tuple[str, str], tuple[Fields, Fields]]


@pytest.fixture(scope="module")
def loads(lab: Lab) -> Loads:
    """What the laboratory and the simulator say, by offer and mode."""
    (loaded,) = (under("https", page) for page in open_pages(["wikipedia"]))
    page, cells = json.loads(loaded.page.to_json()), list(product(OFFERS, MODES))
    asked = [(page, job(*cell)) for cell in cells]
    pairs = zip(emulate_medians(lab, asked), [simulate(*load) for load in asked], strict=True)
    return dict(zip(cells, pairs, strict=True))


def job(offer: str, mode: str) -> Fields:
    """The job for either clock, without the page."""
    return {"scheme": "https", "tls": OFFERS[offer], "path": PATH, "mode": mode, "cookies": "warm"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("offer", OFFERS)
def test_both_clocks_agree(loads: Loads, offer: str, mode: str) -> None:
    emulated, simulated = loads[offer, mode]
    for answer in (emulated, simulated):
        assert answer["status"] == "ok", answer["error"]
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=PLT)
    for direction in ("bytes_down", "bytes_up"):
        assert simulated[direction] == pytest.approx(emulated[direction], rel=BYTES)


@pytest.mark.parametrize("offer", OFFERS)
def test_the_same_client_hellos_ride_in_the_syns(loads: Loads, offer: str) -> None:
    """The sizes are equal to the byte, so the same connections resume a session."""
    emulated, simulated = (
        sorted((row["origin"], row["syn_payload_bytes"]) for row in answer["connections"])
        for answer in loads[offer, "tfo"]
    )
    assert simulated == emulated
