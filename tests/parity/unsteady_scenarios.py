"""Scenarios on unsteady links: bursts of loss, jitter, reordering and duplicate packets, on both clocks.

A seed decides the fate of packet k of a connection and direction. On links with bursts of loss it decides
that of packet k of the link. The fate is the same on both clocks.
"""

from scenario import INITIAL_RTO, TAUGHT_RTO, Scenario, Time, chain, document, opened_fast, plain

JITTER_MS = 10.0
TRAIN = document(body_bytes=14_000)
"""A response of ten segments, which the server sends at once."""
CROSSINGS_MS = 3 * JITTER_MS / 2 + JITTER_MS
"""How much longer the two round trips of `TRAIN` take with jitter, ms.

Three crossings take the mean jitter each. The fourth takes the maximum, that of the latest of ten packets.
"""
SLIGHT_MS = 4.0

UNSTEADY = [
    Scenario(
        name="a burst of losses drops two SYNs in a row and costs the initial timeout twice",
        source="RFC 6298, 2.1; tcp_syn_linear_timeouts",
        mode="tcp",
        path={"loss": 0.05, "burst": {"packets": 2.0}, "seed": 88},
        plt=Time(2, (INITIAL_RTO,) * 2),
        connections=[plain(syn_retransmits=2)],
    ),
    Scenario(
        name="jitter without reordering costs its delay and causes no retransmission",
        source="RFC 9293, 3.8.1",
        mode="tcp",
        resources=[TRAIN],
        path={"jitter_ms": JITTER_MS},
        plt=Time(2, wire_ms=CROSSINGS_MS),
        connections=[plain()],
    ),
    Scenario(
        name="reordering by less than a quarter of the RTT causes no retransmission",
        source="RFC 8985, 6.2",
        mode="tcp",
        resources=[TRAIN],
        path={"jitter_ms": JITTER_MS, "reorder": True},
        plt=Time(2, wire_ms=CROSSINGS_MS),
        connections=[plain()],
    ),
    Scenario(
        name="the client drops an early response that overtakes its SYN-ACK; the server sends it again after "
        "a timeout",
        source="RFC 7413, 4.2.2; tcp_rcv_synsent_state_process, tcp_rearm_rto",
        mode="tfo",
        path={"jitter_ms": SLIGHT_MS, "reorder": True, "seed": 19},
        plt=Time(2, (TAUGHT_RTO,), wire_ms=4 * SLIGHT_MS / 2),
        connections=[opened_fast(retransmits=1)],
    ),
    Scenario(
        name="if every packet is duplicated, only SYN-ACKs are sent twice, and no request is served twice",
        source="tcp_check_req; RFC 5961, 4.2",
        mode="tcp",
        keep_alive=False,
        resources=chain(2),
        path={"duplicate": 1.0},
        plt=Time(2 * 2),
        connections=[plain(retransmits=1)] * 2,
    ),
    Scenario(
        name="if every packet is duplicated, a request in a SYN is served once, and every counter counts one "
        "Fast Open",
        source="RFC 7413, 6.1; tcp_check_req",
        mode="tfo",
        keep_alive=False,
        resources=chain(2),
        path={"duplicate": 1.0},
        plt=Time(2),
        connections=[opened_fast(retransmits=1)] * 2,
    ),
]
