"""A scenario: one load and its expected handshakes, Fast Open, losses and times, the same on both clocks.

An expected time is a sum of round trips, TCP timers and transmission times. Kernel timers run on a timer
wheel and never fire early (`kernel/time/timer.c`). `ROOM_RTT` allows for all other differences. On the real
kernel a busy machine may add less than half a round trip (`LATE_RTT`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

RTT_MS = 100.0
ROOM_RTT = 0.15
LATE_RTT = {"simulated": ROOM_RTT, "emulated": 0.4}
LEAST_ROOM_MS = 5.0
TICK_MS = 4.0

INITIAL_RTO = 1000.0
"""Retransmission timeout before the first RTT sample, ms (RFC 6298, section 2)."""
TAUGHT_RTO = RTT_MS + 200.0
"""Retransmission timeout after one RTT sample, ms. Linux adds at least 200 ms (`tcp_rtt_estimator`)."""
FALLBACK_RTO = 3000.0
"""Retransmission timeout of an accepted Fast Open socket without RTT sample, ms (`tcp_init_metrics`)."""
SYN_DATA = 1420
"""The most data that a SYN carries, bytes (`tcp_send_syn_data`)."""

Rule = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Time:
    """An expected time: round trips, plus timers that run in sequence (ms), plus transmission time (ms)."""

    rtts: float
    timers_ms: tuple[float, ...] = ()
    wire_ms: float = 0.0

    def bounds_ms(self, rtt_ms: float, clock: str) -> tuple[float, float]:
        """The earliest and the latest time that still meets the specification, ms."""
        exact = self.rtts * rtt_ms + sum(self.timers_ms) + self.wire_ms
        earlier, later = (max(share * rtt_ms, LEAST_ROOM_MS) for share in (ROOM_RTT, LATE_RTT[clock]))
        return exact - earlier, exact + later + sum(map(lateness_ms, self.timers_ms))

    def __str__(self) -> str:
        parts = [f"{self.rtts:g} RTT"] if self.rtts else []
        parts += [f"{timer:g} ms" for timer in self.timers_ms]
        parts += [f"{self.wire_ms:g} ms on the wire"] if self.wire_ms else []
        return " + ".join(parts) or "0"


def lateness_ms(timer_ms: float) -> float:
    """How late a kernel timer may fire, ms.

    Each level of the timer wheel covers 63 buckets; its buckets are eight times as long as those of the level
    below.
    """
    bucket = TICK_MS
    while timer_ms >= 63 * bucket:
        bucket *= 8
    return bucket + TICK_MS


def on_wire_ms(rate_kbps: float, packets: Sequence[int]) -> float:
    """How long a link of this rate takes to send packets of these sizes (bytes), one after the other, ms."""
    return sum(packets) * 8 / rate_kbps


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One load, and what must result on either clock.

    Attributes:
        name: The behaviour that the scenario shows, in a sentence.
        source: The RFC section or the Linux function that requires it.
        mode: `tcp` or `tfo`.
        plt: The page load time.
        connections: The row of the ledger for each connection, in the order of opening. A pair is a range.
        resources: The resources of the page.
        handshakes: Time from opening to ready, by connection. `None`: not checked.
        order: Resources in the order of their requests. `None`: not checked.
        rules: What the path does to single segments.
        path: Keys of the path that differ from an unlimited path of `RTT_MS`.
        taken: How many segments middleboxes drop; a pair is a range.
        failed: How many resources fail to load.
        request_timeout_ms: How long the client waits for a request without progress.
    """

    name: str
    source: str
    mode: str
    plt: Time
    connections: Sequence[Row]
    resources: Sequence[Row] = field(default_factory=lambda: [document()])
    cookies: str = "warm"
    keep_alive: bool = True
    handshakes: Sequence[Time] | None = None
    order: Sequence[int] | None = None
    rules: Sequence[Rule] = ()
    path: Mapping[str, Any] = field(default_factory=dict)
    taken: int | tuple[int, int] = 0
    failed: int = 0
    request_timeout_ms: float = 30_000

    @property
    def page(self) -> dict[str, Any]:
        """The page as a profile."""
        return {"format": "firstflight-profile/1", "name": "scenario", "resources": list(self.resources)}

    @property
    def job(self) -> dict[str, Any]:
        """The job for either clock, without the page."""
        path = {"topology": "access", "rtt_ms": RTT_MS, **self.path, "interference": list(self.rules)}
        return {
            "path": path,
            "mode": self.mode,
            "cookies": self.cookies,
            "keep_alive": self.keep_alive,
            "request_timeout_ms": round(self.request_timeout_ms),
        }

    @property
    def takes(self) -> tuple[int, int]:
        """The least and the most segments that rules and middleboxes drop."""
        ruled = sum(rule.get("count", 1) for rule in self.rules)
        least, most = self.taken if isinstance(self.taken, tuple) else (self.taken, self.taken)
        return ruled + least, ruled + most

    @property
    def rtt_ms(self) -> float:
        """The path's round-trip time."""
        return float(self.path.get("rtt_ms", RTT_MS))


def document(**fields: Any) -> Row:  # noqa: ANN401
    """A page's first resource."""
    sizes = {"request_bytes": 300, "header_bytes": 200, "body_bytes": 1000}
    return {"url": "http://a.test/", "kind": "document", "mime": "text/html", **sizes, **fields}


def script(number: int, **fields: Any) -> Row:  # noqa: ANN401
    """A script that the resource before it requests once it has run."""
    url, initiator = f"http://a.test/{number}.js", {"resource": number - 1, "via": "script"}
    return document(url=url, kind="script", mime="text/javascript", initiator=initiator, **fields)


def chain(length: int) -> list[Row]:
    """A document and scripts, each requested by the one before."""
    return [document(), *(script(number) for number in range(1, length))]


def images(count: int, host: str = "a.test") -> list[Row]:
    """A document that requests `count` images at once."""
    initiator = {"resource": 0, "via": "parser", "at_byte": 500}
    return [
        document(),
        *(
            document(url=f"http://{host}/{number}.png", kind="image", mime="image/png", initiator=initiator)
            for number in range(1, count + 1)
        ),
    ]


def lose(direction: str, kind: str, **fields: Any) -> Rule:  # noqa: ANN401
    """A rule of the path: drops the first segment that matches, unless `nth` and `count` select others."""
    return {"direction": direction, "kind": kind, **fields, "action": "drop"}


def connection(cookie: str, syn_payload_bytes: int, **seen: Any) -> Row:  # noqa: ANN401
    """The ledger's row of a connection; nothing was lost unless `seen` says so."""
    whole = {"syn_data_acked": False, "syn_retransmits": 0, "retransmits": 0, **seen}
    return {"cookie": cookie, "syn_payload_bytes": syn_payload_bytes, **whole}


def plain(**seen: Any) -> Row:  # noqa: ANN401
    """A connection without Fast Open."""
    return connection("none", 0, **seen)


def asking(**seen: Any) -> Row:  # noqa: ANN401
    """A connection whose SYN requests a cookie."""
    return connection("requested", 0, **seen)


def opened_fast(**seen: Any) -> Row:  # noqa: ANN401
    """A connection whose SYN carries a cookie and the request, and whose server accepts the data."""
    return connection("sent", 300, **{"syn_data_acked": True, **seen})


def refused(**seen: Any) -> Row:  # noqa: ANN401
    """A connection whose SYN carries a cookie and the request, without effect."""
    return connection("sent", 300, **seen)
