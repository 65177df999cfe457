"""HTTP/2 on both clocks: one connection to each origin, and page load times that agree."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from firstflight import _core
from firstflight.engines.lab import Lab
from firstflight.pages import open_pages, under

pytestmark = pytest.mark.timing

PATH = {"rtt_ms": 100, "down_bps": 10_000_000, "up_bps": 10_000_000, "queue": {"packets": 1000}}
PAGES = ("wikipedia", "nytimes")
MODES = ("tcp", "tfo")
PLT, BYTES_DOWN, BYTES_UP = 0.05, 0.02, 0.1
"""How far the two may be from each other, relative: packets that tie for a queue fall either way. Much
of what goes up is acknowledgements, of which a kernel on a busy machine sends some more."""
LIMIT_S = 60

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def loads() -> dict[tuple[str, str], tuple[Answer, Answer]]:
    """What the laboratory and the simulator say, by page and mode."""
    texts = {
        name: under("https", page).page.to_json() for name, page in zip(PAGES, open_pages(PAGES), strict=True)
    }
    lab = Lab()

    def load(cell: tuple[str, str]) -> tuple[Answer, Answer]:
        name, mode = cell
        tls = {"post_quantum": False, "http": "2"}
        job = {"scheme": "https", "tls": tls, "path": PATH, "mode": mode, "cookies": "warm"}
        emulated = lab.ask("load", {**job, "page": json.loads(texts[name])}, timeout_s=LIMIT_S)
        return emulated, json.loads(_core.Simulator(texts[name]).load(json.dumps(job)))

    cells = list(product(PAGES, MODES))
    with ThreadPoolExecutor(len(cells)) as pool:
        return dict(zip(cells, pool.map(load, cells), strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("page", PAGES)
def test_both_clocks_agree(loads: dict[tuple[str, str], tuple[Answer, Answer]], page: str, mode: str) -> None:
    emulated, simulated = loads[page, mode]
    for answer in (emulated, simulated):
        assert answer["status"] == "ok", answer["error"]
        origins = [row["origin"] for row in answer["connections"]]
        assert len(origins) == len(set(origins)) == len({row["origin"] for row in answer["requests"]})
    assert simulated["plt_ms"] == pytest.approx(emulated["plt_ms"], rel=PLT)
    assert simulated["bytes_down"] == pytest.approx(emulated["bytes_down"], rel=BYTES_DOWN)
    assert simulated["bytes_up"] == pytest.approx(emulated["bytes_up"], rel=BYTES_UP)
