"""Scenarios of TFO cookie states: which cookies the client has, and which the servers accept."""

from scenario import Scenario, Time, asking, chain, connection, images, opened_fast, refused

SOME = "warm:0.5"
THE_FIRST = {"seed": 6}
"""With this seed and `SOME`, the client has a cookie of the first host and none of the second."""

COOKIE_STATES = [
    Scenario(
        name="a cookie under the backup key is valid once more and costs nothing; the server replaces it",
        source="RFC 7413, 4.1.2; tcp_try_fastopen",
        mode="tfo",
        cookies="backup",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2),
        connections=[opened_fast(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="connections opened at once with a stale cookie each lose a round trip, and each receives a new "
        "cookie",
        source="RFC 7413, 4.1.3; tcp_rcv_fastopen_synack",
        mode="tfo",
        cookies="stale",
        resources=images(3, "b.test"),
        plt=Time(2 * 2),
        connections=[refused(new_cookie=True)] * 4,
    ),
    Scenario(
        name="the client has cookies of a share of the hosts and requests one from each other host",
        source="RFC 7413, 4.1.1",
        mode="tfo",
        cookies=SOME,
        path=THE_FIRST,
        resources=images(1, "b.test"),
        plt=Time(1 + 2),
        connections=[opened_fast(new_cookie=False), asking(new_cookie=True)],
    ),
    Scenario(
        name="a client with a new address has no cookies, because Linux caches them by its own address too",
        source="RFC 7413, 4.1.3; tcp_get_metrics",
        mode="tfo",
        cookies="moved",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[asking(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="behind a NAT with a new address the client sends its cookie without effect, once",
        source="RFC 7413, 7.1; tcp_fastopen_cookie_gen_check",
        mode="tfo",
        cookies="nat",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[refused(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="in cookieless mode every SYN carries the request and no option, including the first",
        source="tcp_fastopen_no_cookie",
        mode="tfo",
        cookies="cookieless",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2),
        connections=[connection("none", 300, syn_data_acked=True, new_cookie=False)] * 2,
    ),
]
