"""The table of scenarios. Every one holds on both clocks: the real kernel's and the simulator's."""

from cookie_scenarios import COOKIE_STATES
from middlebox_scenarios import MIDDLEBOXES
from scenario import (
    FALLBACK_RTO,
    INITIAL_RTO,
    SYN_DATA,
    TAUGHT_RTO,
    Scenario,
    Time,
    asking,
    chain,
    connection,
    document,
    images,
    lose,
    on_wire_ms,
    opened_fast,
    plain,
    refused,
    script,
)
from traced_scenarios import TRACED
from unsteady_scenarios import UNSTEADY

OPENING = [
    Scenario(
        name="plain TCP takes one round trip for the handshake and one for the request",
        source="RFC 9293, 3.5",
        mode="tcp",
        plt=Time(2),
        connections=[plain()],
        handshakes=[Time(1)],
    ),
    Scenario(
        name="with a cookie the client sends the request in the SYN, and the server answers within one round "
        "trip",
        source="RFC 7413, 3",
        mode="tfo",
        plt=Time(1),
        connections=[opened_fast()],
        handshakes=[Time(0)],
    ),
    Scenario(
        name="without a cookie the client requests one and saves no round trip",
        source="RFC 7413, 4.2.1",
        mode="tfo",
        cookies="cold",
        plt=Time(2),
        connections=[asking()],
        handshakes=[Time(1)],
    ),
    Scenario(
        name="the next connection to the host uses the cookie that the first one requested",
        source="RFC 7413, 4.1.3",
        mode="tfo",
        cookies="cold",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[asking(), opened_fast()],
        handshakes=[Time(1), Time(0)],
    ),
    Scenario(
        name="with a stale cookie the client sends the request again after the handshake and receives a "
        "valid cookie",
        source="RFC 7413, 4.2.2",
        mode="tfo",
        cookies="stale",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[refused(), opened_fast()],
    ),
    Scenario(
        name="the rest of a request that does not fit into the SYN leaves after the handshake",
        source="tcp_send_syn_data",
        mode="tfo",
        resources=[document(request_bytes=2000)],
        plt=Time(2),
        connections=[connection("sent", SYN_DATA, syn_data_acked=True)],
    ),
]

CONNECTIONS = [
    Scenario(
        name="with keep-alive consecutive requests share a connection",
        source="RFC 9112, 9.3",
        mode="tcp",
        resources=chain(3),
        plt=Time(1 + 3),
        connections=[plain()],
        order=[0, 1, 2],
    ),
    Scenario(
        name="without keep-alive each request takes a handshake",
        source="RFC 9112, 9.6",
        mode="tcp",
        keep_alive=False,
        resources=chain(3),
        plt=Time(3 * 2),
        connections=[plain()] * 3,
        handshakes=[Time(1)] * 3,
        order=[0, 1, 2],
    ),
    Scenario(
        name="without keep-alive Fast Open saves a round trip for each request",
        source="RFC 7413, 3",
        mode="tfo",
        keep_alive=False,
        resources=chain(3),
        plt=Time(3),
        connections=[opened_fast()] * 3,
        handshakes=[Time(0)] * 3,
        order=[0, 1, 2],
    ),
    Scenario(
        name="the loader opens six connections to an origin; the seventh image takes the first free one",
        source="crates/loader, after Chromium",
        mode="tcp",
        resources=images(7),
        plt=Time(2 + 2),
        connections=[plain()] * 6,
        handshakes=[Time(1)] * 6,
    ),
    Scenario(
        name="with Fast Open six requests leave at once; the seventh waits for a free connection",
        source="crates/loader, after Chromium",
        mode="tfo",
        resources=images(7),
        plt=Time(1 + 1 + 1),
        connections=[opened_fast()] * 6,
        order=[0, 1, 2, 3, 4, 5, 6, 7],
    ),
]

LOST_HANDSHAKES = [
    Scenario(
        name="a lost SYN costs the initial timeout",
        source="RFC 6298, 2.1",
        mode="tcp",
        rules=[lose("up", "syn")],
        plt=Time(2, (INITIAL_RTO,)),
        connections=[plain(syn_retransmits=1)],
        handshakes=[Time(1, (INITIAL_RTO,))],
    ),
    Scenario(
        name="three lost SYNs cost one second each, because Linux does not double the first timeouts",
        source="tcp_syn_linear_timeouts",
        mode="tcp",
        rules=[lose("up", "syn", count=3)],
        plt=Time(2, (INITIAL_RTO,) * 3),
        connections=[plain(syn_retransmits=3)],
    ),
    Scenario(
        name="the client retransmits a lost SYN without its data, and the request waits for the handshake",
        source="RFC 7413, 4.2; tcp_retransmit_timer",
        mode="tfo",
        rules=[lose("up", "syn", data=True)],
        plt=Time(2, (INITIAL_RTO,)),
        connections=[refused(syn_retransmits=1)],
    ),
    Scenario(
        name="after a lost SYN with data the next connection uses Fast Open again: Linux remembers no "
        "failure",
        source="unlike RFC 7413, 4.1.3.1; tcp_fastopen_active_disable",
        mode="tfo",
        keep_alive=False,
        resources=chain(2),
        rules=[lose("up", "syn", connection=0)],
        plt=Time(2 + 1, (INITIAL_RTO,)),
        connections=[refused(syn_retransmits=1), opened_fast()],
    ),
    Scenario(
        name="a lost SYN delays its own connection only",
        source="RFC 6298, 2.1",
        mode="tcp",
        resources=images(1, "b.test"),
        rules=[lose("up", "syn", connection=1)],
        plt=Time(2 + 2, (INITIAL_RTO,)),
        connections=[plain(), plain(syn_retransmits=1)],
        handshakes=[Time(1), Time(1, (INITIAL_RTO,))],
    ),
    Scenario(
        name="a lost SYN-ACK costs the initial timeout; both ends retransmit unless the client is first",
        source="RFC 6298, 2.1; tcp_check_req",
        mode="tcp",
        rules=[lose("down", "syn-ack")],
        plt=Time(2, (INITIAL_RTO,)),
        connections=[plain(syn_retransmits=1, retransmits=(1, 2))],
    ),
    Scenario(
        name="a lost SYN-ACK with Fast Open: the client drops the early response, which the server sends "
        "again one timeout after the handshake",
        source="RFC 7413, 4.2.2; tcp_rearm_rto",
        mode="tfo",
        rules=[lose("down", "syn-ack")],
        plt=Time(2, (INITIAL_RTO, TAUGHT_RTO)),
        connections=[opened_fast(syn_retransmits=1, retransmits=3)],
    ),
    Scenario(
        name="a lost SYN-ACK with Fast Open, without keep-alive: the server has no RTT sample, so its "
        "timeout is 3 s",
        source="tcp_init_metrics, tcp_rcv_state_process",
        mode="tfo",
        keep_alive=False,
        rules=[lose("down", "syn-ack")],
        plt=Time(2, (INITIAL_RTO, FALLBACK_RTO)),
        connections=[opened_fast(syn_retransmits=1, retransmits=3)],
    ),
    Scenario(
        name="a lost ACK of the SYN-ACK costs nothing, because the request acknowledges the SYN-ACK too",
        source="RFC 9293, 3.10.7.4",
        mode="tcp",
        rules=[lose("up", "ack")],
        plt=Time(2),
        connections=[plain()],
    ),
]

LOST_DATA = [
    Scenario(
        name="the client retransmits a lost request after a timeout that follows from the RTT of the "
        "handshake",
        source="RFC 6298, 2.2",
        mode="tcp",
        rules=[lose("up", "data")],
        plt=Time(2, (TAUGHT_RTO,)),
        connections=[plain(retransmits=1)],
    ),
    Scenario(
        name="the client retransmits a lost request on a connection opened with Fast Open after the same "
        "timeout",
        source="RFC 6298, 2.2",
        mode="tfo",
        resources=chain(2),
        rules=[lose("up", "data")],
        plt=Time(1 + 1, (TAUGHT_RTO,)),
        connections=[opened_fast(retransmits=1)],
    ),
    Scenario(
        name="the server retransmits a lost early response one timeout after the end of the handshake",
        source="tcp_rearm_rto",
        mode="tfo",
        rules=[lose("down", "data")],
        plt=Time(2, (TAUGHT_RTO,)),
        connections=[opened_fast(retransmits=1)],
    ),
    Scenario(
        name="a lost early response before a FIN is detected a quarter of an RTT after the FIN has arrived "
        "(RACK)",
        source="RFC 8985, 6.2",
        mode="tfo",
        keep_alive=False,
        rules=[lose("down", "data")],
        plt=Time(2.25, (2.0,)),
        connections=[opened_fast(retransmits=1)],
    ),
    Scenario(
        name="a loss in the middle of a response is repaired in one more round trip",
        source="RFC 8985, 6.2; RFC 6675",
        mode="tcp",
        resources=[document(body_bytes=14_000)],
        rules=[lose("down", "data", nth=3)],
        plt=Time(3),
        connections=[plain(retransmits=1)],
    ),
    Scenario(
        name="the server probes for a lost last segment after the timeout, because the ACK might only be "
        "delayed",
        source="RFC 8985, 7.2; tcp_schedule_loss_probe",
        mode="tcp",
        resources=[document(body_bytes=10_000)],
        rules=[lose("down", "data", nth=8)],
        plt=Time(3, (TAUGHT_RTO,)),
        connections=[plain(retransmits=1)],
    ),
    Scenario(
        name="a lost FIN does not delay the page",
        source="RFC 9112, 6.2",
        mode="tcp",
        keep_alive=False,
        rules=[lose("down", "fin")],
        plt=Time(2),
        connections=[plain()],
    ),
]

HANDSHAKE = [60, 52]
"""IP packet sizes of a handshake, in bytes: a SYN (or SYN-ACK), then an acknowledgment."""
DOCUMENT = [*[1500] * 7, 116]
IN_VAIN = [116, 1500]
"""Needless retransmissions: the tail loss probe, then the first segment after a timeout.

The timeout counts from the probe.
"""
DOWN = [*HANDSHAKE, *DOCUMENT, *IN_VAIN, 1252]
"""All packets that the server sends until the end of the next response, which is the last of them."""

QUEUES = [
    Scenario(
        name="a queueing delay longer than the timeout that follows from the handshake makes the server "
        "retransmit needlessly, which delays the next response by as much",
        source="RFC 8985, 7.2; RFC 6298, 2.3; RFC 3522",
        mode="tcp",
        path={"rtt_ms": 20, "down_bps": 64_000, "up_bps": 256_000},
        resources=[document(body_bytes=10_000), script(1)],
        plt=Time(2, wire_ms=on_wire_ms(256, [*HANDSHAKE, 352]) + on_wire_ms(64, DOWN)),
        connections=[plain(retransmits=3)],
    ),
]

SCENARIOS = [
    *OPENING,
    *CONNECTIONS,
    *LOST_HANDSHAKES,
    *LOST_DATA,
    *QUEUES,
    *TRACED,
    *UNSTEADY,
    *COOKIE_STATES,
    *MIDDLEBOXES,
]
