"""Scenarios of middleboxes on the path: what each does to a load, on both clocks.

Linux does not remember that a path drops SYN data, although RFC 7413, section 4.1.3.1, requires it. The
second connection therefore takes as long as the first.
"""

from scenario import INITIAL_RTO, Scenario, Time, asking, chain, images, opened_fast, plain, refused

STALLED = 500.0
"""The request timeout of these scenarios: a request without progress fails after this time, ms."""
HALF = {"share": 0.5}
BEFORE_THE_SECOND = {"seed": 8}
"""With this seed and `HALF`, the path to the second host has the middlebox, that to the first has none."""

MIDDLEBOXES = [
    Scenario(
        name="a middlebox that drops SYNs with data costs every connection the initial timeout",
        source="unlike RFC 7413, 4.1.3.1; tcp_fastopen_active_disable",
        mode="tfo",
        keep_alive=False,
        resources=chain(2),
        path={"middlebox": {"kind": "drop-data"}},
        taken=2,
        plt=Time(2 * 2, (INITIAL_RTO,) * 2),
        connections=[refused(syn_retransmits=1, interfered="drop")] * 2,
    ),
    Scenario(
        name="a middlebox that drops SYNs with the option costs connections that request a cookie the "
        "initial timeout",
        source="RFC 7413, 7.1; tcp_send_syn_data",
        mode="tfo",
        cookies="cold",
        keep_alive=False,
        resources=chain(2),
        path={"middlebox": {"kind": "drop-option"}},
        taken=2,
        plt=Time(2 * 2, (INITIAL_RTO,) * 2),
        connections=[asking(syn_retransmits=1, interfered="drop")] * 2,
    ),
    Scenario(
        name="a middlebox that strips the option costs only the saved round trip: the request waits for the "
        "handshake",
        source="tcp_try_fastopen",
        mode="tfo",
        keep_alive=False,
        resources=chain(2),
        path={"middlebox": {"kind": "strip-option"}},
        plt=Time(2 * 2),
        connections=[refused(interfered="strip-option")] * 2,
    ),
    Scenario(
        name="behind a middlebox that strips the option the client never gets a cookie, not by the "
        "experimental option either",
        source="tcp_rcv_fastopen_synack",
        mode="tfo",
        cookies="cold",
        keep_alive=False,
        resources=chain(2),
        path={"middlebox": {"kind": "strip-option"}},
        plt=Time(2 * 2),
        connections=[asking(interfered="strip-option")] * 2,
    ),
    Scenario(
        name="a middlebox that strips the data costs only the saved round trip, although the cookie is valid",
        source="tcp_fastopen_add_skb",
        mode="tfo",
        keep_alive=False,
        resources=chain(2),
        path={"middlebox": {"kind": "strip-data"}},
        plt=Time(2 * 2),
        connections=[refused(interfered="strip-data")] * 2,
    ),
    Scenario(
        name="a middlebox that resets SYNs with data costs the resource",
        source="RFC 9293, 3.10.7.3",
        mode="tfo",
        resources=images(1, "b.test"),
        path={"middlebox": {"kind": "reset", **HALF}, **BEFORE_THE_SECOND},
        taken=1,
        failed=1,
        plt=Time(1 + 0.5),
        connections=[opened_fast(interfered=None), refused(interfered="reset")],
    ),
    Scenario(
        name="behind a black hole the server accepts the request, and the client waits for a response until "
        "it gives up",
        source="RFC 7413, 4.1.3.1; tcp_fastopen_blackhole_timeout_sec is 0",
        mode="tfo",
        resources=images(1, "b.test"),
        path={"middlebox": {"kind": "black-hole", **HALF}, **BEFORE_THE_SECOND},
        request_timeout_ms=STALLED,
        taken=(2, 9),
        failed=1,
        plt=Time(1, (STALLED,)),
        connections=[opened_fast(interfered=None), opened_fast(interfered="drop", retransmits=(0, 3))],
    ),
    Scenario(
        name="a duplicated SYN causes a second SYN-ACK and nothing else",
        source="tcp_check_req",
        mode="tcp",
        path={"middlebox": {"kind": "duplicate-syn"}},
        plt=Time(2),
        connections=[plain(retransmits=1, interfered="duplicate")],
    ),
    Scenario(
        name="a duplicated SYN with data is not served twice while its connection exists",
        source="RFC 7413, 6.1; tcp_check_req",
        mode="tfo",
        path={"middlebox": {"kind": "duplicate-syn"}},
        plt=Time(1),
        connections=[opened_fast(retransmits=1, interfered="duplicate")],
    ),
]
