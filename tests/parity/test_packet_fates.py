"""Random loss with one seed: the same packets of the same connections are lost on both clocks."""

from collections.abc import Sequence
from itertools import product

import pytest
from clocks import Fields, emulate_all, simulate
from scenario import INITIAL_RTO, chain

from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

CONNECTIONS = 6
LOADS = 8
RTT_MS = 50.0
LOSSES = (0.01, 0.02)
MODES = ("tcp", "tfo")
PAGE = {"format": "firstflight-profile/1", "name": "fates", "resources": chain(CONNECTIONS)}

Pair = tuple[Fields, Fields]


def job(mode: str, loss: float, seed: int) -> Fields:
    path = {"rtt_ms": RTT_MS, "loss": loss, "seed": seed}
    return {"path": path, "mode": mode, "cookies": "warm", "keep_alive": False}


@pytest.fixture(scope="module")
def pairs(lab: Lab) -> Sequence[Pair]:
    """Each load, simulated and emulated."""
    asked = [(PAGE, job(*cell)) for cell in product(MODES, LOSSES, range(LOADS))]
    pairs = list(zip((simulate(*load) for load in asked), emulate_all(lab, asked), strict=True))
    for pair in pairs:
        for record in pair:
            assert (record["status"], record["proof"]["ok"]) == ("ok", True), record["error"]
    return pairs


def test_the_same_connections_send_segments_again_on_both_clocks(pairs: Sequence[Pair]) -> None:
    simulated, emulated = ([sent_again(pair[clock]) for pair in pairs] for clock in (0, 1))
    assert simulated == emulated
    hit = sum(syns > 0 or others for load in simulated for syns, others in load)
    assert hit >= LOADS


def test_no_load_waits_for_a_timer_of_a_second_on_one_clock_only(pairs: Sequence[Pair]) -> None:
    for simulated, emulated in pairs:
        assert abs(simulated["plt_ms"] - emulated["plt_ms"]) < INITIAL_RTO / 2


def sent_again(record: Fields) -> list[tuple[int, bool]]:
    """By connection: how many SYNs were sent again, and whether any other segment was.

    The number of the others is not compared. After a lost SYN-ACK, the timers of client and server expire at
    about the same time; the kernel's tick decides which fires first, and so how often the SYN-ACK is sent
    again.
    """
    return [(row["syn_retransmits"], row["retransmits"] > 0) for row in record["connections"]]
