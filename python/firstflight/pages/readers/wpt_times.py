"""When WebPageTest's requests were queued, and their phases.

`load_start` is when a request was sent. It was queued before that: at `created` or, in older results, when
its connection began to be opened. If that was ready long before (`_AHEAD_MS`), it was a preconnect and does
not count. All times are ms since the test of the page began.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.pages.readers.har_entry import Node, positive

_AHEAD_MS = 20.0


@dataclass(frozen=True, slots=True)
class Times:
    """When a request was queued, ms since the test of the page began, and the durations of its phases, ms."""

    asked_ms: float
    length_ms: float
    phases: Node

    @classmethod
    def of(cls, request: Node) -> Times:
        """The times of a request in the form of the API's result."""

        def at(key: str) -> float:
            return positive(request, key) or 0.0

        sent_ms = at("load_start")
        dns_ms, tcp_ms, tls_ms = at("dns_ms"), at("connect_ms"), at("ssl_ms")
        dns_ms = dns_ms or max(at("dns_end") - at("dns_start"), 0.0)
        tcp_ms = tcp_ms or max(at("connect_end") - at("connect_start"), 0.0)
        tls_ms = tls_ms or max(at("ssl_end") - at("ssl_start"), 0.0)
        began = [
            at(f"{phase}_start")
            for phase, ms in (("dns", dns_ms), ("connect", tcp_ms), ("ssl", tls_ms))
            if ms
        ]
        ready_ms = max(at("dns_end"), at("connect_end"), at("ssl_end"))
        opened_ms = min(began) if began and ready_ms + _AHEAD_MS >= sent_ms else sent_ms
        asked_ms = min(at("created") or opened_ms, sent_ms)
        first_ms = max(at("ttfb_end") or sent_ms + at("ttfb_ms"), sent_ms)
        ended_ms = max(at("load_end") or at("all_end") or sent_ms + at("load_ms"), first_ms)
        opening_ms = dns_ms + tcp_ms + tls_ms
        return cls(
            asked_ms,
            ended_ms - asked_ms,
            {
                "blocked": max(sent_ms - asked_ms - opening_ms, 0.0),
                "dns": dns_ms or -1,
                "connect": tcp_ms + tls_ms or -1,
                "ssl": tls_ms or -1,
                "send": 0.0,
                "wait": first_ms - sent_ms,
                "receive": ended_ms - first_ms,
            },
        )


def restated(entry: Node) -> Node:
    """Moves the start of an entry in WebPageTest's own HAR from when it was sent to when it was queued.

    `startedDateTime` is `load_start` there, but `timings` include the DNS lookup and handshakes before it.
    """
    sent_ms = positive(entry, "_load_start")
    if sent_ms is None:
        return entry
    request = {key[1:]: value for key, value in entry.items() if key.startswith("_")}
    times = Times.of(request)
    asked_ms = times.asked_ms - sent_ms
    return {**entry, "_asked_ms": asked_ms, "time": times.length_ms, "timings": times.phases}
