"""TLS on both clocks: the same flights in the same SYNs, and page load times that agree."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from firstflight import _core
from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

PATH = {"rtt_ms": 100, "down_bps": 4_000_000, "up_bps": 4_000_000, "queue": {"packets": 1000}}
"""Nothing is sent twice here: how long a handshake takes is what shows."""
OFFERS: dict[str, dict[str, Any]] = {
    "TLS 1.3, post-quantum share": {"post_quantum": True},
    "TLS 1.3, classic share": {"post_quantum": False},
    "TLS 1.2": {"version": "1.2"},
}
MODES = ("tcp", "tfo")
PLT, BYTES = 0.05, 0.02
"""How far the two may be from each other, relative: packets that tie for a queue fall either way."""
LIMIT_S = 60

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def loads() -> dict[tuple[str, str], tuple[Answer, Answer]]:
    """What the laboratory and the simulator say, by offer and mode."""
    (page,) = (under("https", page) for page in open_pages(["wikipedia"]))
    text = page.page.to_json()
    lab, simulator = Lab(), _core.Simulator(text)

    def load(cell: tuple[str, str]) -> tuple[Answer, Answer]:
        offer, mode = cell
        job = {"scheme": "https", "tls": OFFERS[offer], "path": PATH, "mode": mode, "cookies": "warm"}
        emulated = lab.ask("load", {**job, "page": json.loads(text)}, timeout_s=LIMIT_S)
        return emulated, json.loads(simulator.load(json.dumps(job)))

    cells = list(product(OFFERS, MODES))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cells, pool.map(load, cells), strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("offer", OFFERS)
def test_both_clocks_agree(
    loads: dict[tuple[str, str], tuple[Answer, Answer]], offer: str, mode: str
) -> None:
    emulated, simulated = loads[offer, mode]
    for answer in (emulated, simulated):
        assert answer["status"] == "ok", answer["error"]
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=PLT)
    for direction in ("bytes_down", "bytes_up"):
        assert simulated[direction] == pytest.approx(emulated[direction], rel=BYTES)


@pytest.mark.parametrize("offer", OFFERS)
def test_the_same_client_hellos_ride_in_the_syns(
    loads: dict[tuple[str, str], tuple[Answer, Answer]], offer: str
) -> None:
    """Byte for byte, so that the same connections resume a session."""
    emulated, simulated = (
        sorted((row["origin"], row["syn_payload_bytes"]) for row in answer["connections"])
        for answer in loads[offer, "tfo"]
    )
    assert simulated == emulated
