"""Cases in which round-based models are known to fail: chains, transfers, one slow answer among fast ones."""

from typing import Any

import pytest
from baselines import lantern_plt_ms

from firstflight.analysis.records import known
from firstflight.engines.simulate import Simulator
from firstflight.model.load import PlannedLoad
from firstflight.model.path import Path, Queue
from firstflight.pages import LoadedPage, Page

RTT_MS, RATE_BPS = 75.0, 8_000_000
PATH = Path("access", RTT_MS, RATE_BPS, RATE_BPS, Queue(packets=1000), 0.0)
BODY_BYTES = 12_000
"""Fits into an initial window, so the response takes no round trip of its own."""
TRANSFER_MS = 8_000 * BODY_BYTES / RATE_BPS


def page(hosts: int, initiator: Any, server_ms: tuple[float, ...] = (0.0,) * 10) -> LoadedPage:  # noqa: ANN401
    """A document and nine scripts on `hosts` hosts.

    `initiator` gives the number of each script's initiator.
    """
    resources = [
        {
            "url": f"http://h{number % hosts}.test/{number}",
            "kind": "script" if number else "document",
            "mime": "text/javascript" if number else "text/html",
            **{"request_bytes": 300, "header_bytes": 200, "body_bytes": BODY_BYTES},
            "server_ms": server_ms[number],
            **({"initiator": {"resource": initiator(number), "via": "script"}} if number else {}),
        }
        for number in range(10)
    ]
    return LoadedPage(Page.from_fields({"name": "ten", "resources": resources}))


def chain(hosts: int, server_ms: tuple[float, ...] = (0.0,) * 10) -> LoadedPage:
    """A page in which each resource is the initiator of the next."""
    return page(hosts, lambda number: number - 1, server_ms)


def plt_ms(of: LoadedPage, mode: str) -> float:
    planned = PlannedLoad("x", 0, 0, 1, "ten", PATH, mode, seed=1, engine="simulate")
    load = Simulator().load(planned, of)["load"]
    assert load["status"] == "ok"
    return known(load["plt_ms"])


@pytest.mark.parametrize(
    ("hosts", "mode", "round_trips"),
    [(1, "tfo", 10), (1, "tcp", 11), (10, "tfo", 10), (10, "tcp", 20)],
)
def test_a_chain_of_ten_takes_all_its_round_trips_and_its_transfers(
    hosts: int, mode: str, round_trips: int
) -> None:
    least_ms = round_trips * RTT_MS + 10 * TRANSFER_MS
    assert least_ms < plt_ms(chain(hosts), mode) < 1.03 * least_ms


def test_ten_at_once_are_told_from_a_chain() -> None:
    assert plt_ms(page(10, lambda _: 0), "tcp") < 5 * RTT_MS + 10 * TRANSFER_MS


def test_a_model_of_whole_rounds_leaves_the_transfers_of_the_chain_out() -> None:
    assert lantern_plt_ms(chain(1).page, PATH, "tcp") == pytest.approx(11 * RTT_MS)


def test_a_slow_document_counts_in_full_though_nine_of_ten_answers_of_its_host_are_quick() -> None:
    quick, slow = (plt_ms(chain(1, (wait_ms, *[10.0] * 9)), "tcp") for wait_ms in (10.0, 810.0))
    assert slow - quick == pytest.approx(800, abs=1)
