"""Scenarios of TFO cookie states: which cookies the client has, and which the servers accept."""

from scenario import Scenario, Time, asking, chain, connection, images, opened_fast, refused

SOME = "warm:0.5"
THE_FIRST = {"seed": 6}
"""With this seed and `SOME`, the client has a cookie of the first host and none of the second."""

COOKIE_STATES = [
    Scenario(
        name="a key that is kept as a backup costs nothing: the cookie is good once more, and replaced",
        source="RFC 7413, 4.1.2; tcp_try_fastopen",
        mode="tfo",
        cookies="backup",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2),
        connections=[opened_fast(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="connections that are opened at once with a stale cookie all pay, and each brings a new one",
        source="RFC 7413, 4.1.3; tcp_rcv_fastopen_synack",
        mode="tfo",
        cookies="stale",
        resources=images(3, "b.test"),
        plt=Time(2 * 2),
        connections=[refused(new_cookie=True)] * 4,
    ),
    Scenario(
        name="of a share of the hosts the client has a cookie; the others are asked for one",
        source="RFC 7413, 4.1.1",
        mode="tfo",
        cookies=SOME,
        path=THE_FIRST,
        resources=images(1, "b.test"),
        plt=Time(1 + 2),
        connections=[opened_fast(new_cookie=False), asking(new_cookie=True)],
    ),
    Scenario(
        name="a client with another address has no cookies: Linux keeps them by its own address too",
        source="RFC 7413, 4.1.3; tcp_get_metrics",
        mode="tfo",
        cookies="moved",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[asking(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="behind a NAT with another address the client sends its cookie without effect, once",
        source="RFC 7413, 7.1; tcp_fastopen_cookie_gen_check",
        mode="tfo",
        cookies="nat",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2 + 1),
        connections=[refused(new_cookie=True), opened_fast(new_cookie=False)],
    ),
    Scenario(
        name="without cookies every SYN carries the request and no option, the first one too",
        source="tcp_fastopen_no_cookie",
        mode="tfo",
        cookies="cookieless",
        keep_alive=False,
        resources=chain(2),
        plt=Time(2),
        connections=[connection("none", 300, syn_data_acked=True, new_cookie=False)] * 2,
    ),
]
