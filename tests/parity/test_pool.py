"""Servers behind one address: a connection to another server than the last cookie's costs one more RTT."""

from math import sqrt

import pytest
from clocks import Fields, emulate_all, simulate
from scenario import Time, chain

from firstflight.engines.lab import Lab

pytestmark = pytest.mark.timing

SERVERS = 2
CONNECTIONS = 12
LOADS = 4
RTT_MS = 50.0
ROOM_MS = RTT_MS / 2
"""How much longer a load of twelve connections may take on a busy machine, ms; less than one round trip."""
DEVIATIONS = 4

PAGE = {"format": "firstflight-profile/1", "name": "pool", "resources": chain(CONNECTIONS)}


def job(seed: int) -> Fields:
    path = {"rtt_ms": RTT_MS, "seed": seed}
    return {"path": path, "mode": "tfo", "cookies": f"pool:{SERVERS}", "keep_alive": False}


@pytest.mark.parametrize("clock", ["simulated", "emulated"])
def test_each_connection_to_another_server_than_the_last_cookie_s_pays_a_round_trip(
    clock: str, lab: Lab
) -> None:
    loads = [(PAGE, job(seed)) for seed in range(LOADS)]
    records = emulate_all(lab, loads) if clock == "emulated" else [simulate(*load) for load in loads]
    for record in records:
        assert (record["status"], record["proof"]["ok"]) == ("ok", True), record["error"]
        ledger = record["proof"]["ledger"]
        assert (ledger["offered"], ledger["given"]) == (CONNECTIONS, CONNECTIONS - ledger["accepted"])
        earliest, latest = Time(CONNECTIONS + ledger["given"]).bounds_ms(RTT_MS, clock)
        assert earliest <= record["plt_ms"] <= latest + ROOM_MS
    share = sum(record["tfo_accepted"] for record in records) / (LOADS * CONNECTIONS)
    deviation = sqrt((1 - 1 / SERVERS) / SERVERS / (LOADS * CONNECTIONS))
    assert abs(share - 1 / SERVERS) < DEVIATIONS * deviation
