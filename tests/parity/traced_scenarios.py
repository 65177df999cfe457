"""Scenarios on links that follow a delivery trace (Mahimahi), on both clocks.

A load ends with a delivery opportunity. The interval between two opportunities is longer than the tolerance
of the expected time, so a load that needs one opportunity more fails.
"""

from scenario import Scenario, Time, document, opened_fast, plain

SELDOM_MS = 200
OFTEN_MS = 20

TRACED = [
    Scenario(
        name="on a trace with an opportunity every 200 ms each round trip of 100 ms ends with an opportunity",
        source="Mahimahi, link_queue.cc",
        mode="tcp",
        path={"down_trace": str(SELDOM_MS)},
        plt=Time(0, wire_ms=2 * SELDOM_MS),
        handshakes=[Time(0, wire_ms=SELDOM_MS)],
        connections=[plain()],
    ),
    Scenario(
        name="on such a trace an early response shares the opportunity of its SYN-ACK",
        source="Mahimahi, link_queue.cc",
        mode="tfo",
        path={"down_trace": str(SELDOM_MS)},
        plt=Time(0, wire_ms=SELDOM_MS),
        connections=[opened_fast()],
    ),
    Scenario(
        name="packets share the 1,500 bytes of an opportunity; what does not fit takes the next one",
        source="Mahimahi, link_queue.cc",
        mode="tfo",
        path={"down_trace": str(OFTEN_MS)},
        resources=[document(body_bytes=10_000)],
        # A SYN-ACK of 60 bytes, seven packets of 1,500 and one of 116, from 100 ms on: eight opportunities.
        plt=Time(1, wire_ms=8 * OFTEN_MS),
        connections=[opened_fast()],
    ),
]
