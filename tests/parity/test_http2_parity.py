"""HTTP/2 on both clocks: one connection to each origin, and page load times that agree."""

import json
from collections.abc import Mapping
from itertools import product

import pytest
from clocks import Fields, emulate_medians, simulate

from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

pytestmark = pytest.mark.timing

PATH = {"rtt_ms": 100, "down_bps": 10_000_000, "up_bps": 10_000_000, "queue": {"packets": 1000}}
PAGES = ("wikipedia", "nytimes")
MODES = ("tcp", "tfo")
PLT, BYTES_DOWN, BYTES_UP = 0.05, 0.02, 0.1
"""How far the two clocks may be apart, relative.

Where packets reach a queue at once, either may enter first. Most upstream bytes are acknowledgments, and a
kernel on a busy machine sends a few more of them.
"""
JOB: Fields = {
    "scheme": "https",
    "tls": {"post_quantum": False, "http": "2"},
    "path": PATH,
    "cookies": "warm",
}

Loads = Mapping[tuple[str, str], tuple[Fields, Fields]]


@pytest.fixture(scope="module")
def loads(lab: Lab) -> Loads:
    """The records of laboratory and simulator, by page and mode."""
    loaded = (under("https", page) for page in open_pages(PAGES))
    pages = dict(zip(PAGES, (json.loads(page.page.to_json()) for page in loaded), strict=True))
    cells = list(product(PAGES, MODES))
    asked = [(pages[name], {**JOB, "mode": mode}) for name, mode in cells]
    pairs = zip(emulate_medians(lab, asked), [simulate(*load) for load in asked], strict=True)
    return dict(zip(cells, pairs, strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("page", PAGES)
def test_both_clocks_agree(loads: Loads, page: str, mode: str) -> None:
    emulated, simulated = loads[page, mode]
    for answer in (emulated, simulated):
        assert answer["status"] == "ok", answer["error"]
        origins = [row["origin"] for row in answer["connections"]]
        assert len(origins) == len(set(origins)) == len({row["origin"] for row in answer["requests"]})
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=PLT)
    assert simulated["bytes_down"] == pytest.approx(emulated["bytes_down"], rel=BYTES_DOWN)
    assert simulated["bytes_up"] == pytest.approx(emulated["bytes_up"], rel=BYTES_UP)
