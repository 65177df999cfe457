"""What must come of a load, whichever clock it is made on: handshakes, Fast Open and loss, one question each.

Times are round trips of the path, timers of TCP and time on the wire: each says where it comes from.
A timer goes off on the kernel's wheel, never early (`kernel/time/timer.c`); `ROOM_RTT` is for the rest. On
the real kernel a busy machine may add less than half a round trip.
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
"""Until there is a sample (RFC 6298, section 2)."""
TAUGHT_RTO = RTT_MS + 200.0
"""What one sample of the RTT teaches, with Linux's least variation of 200 ms (`tcp_rtt_estimator`)."""
FALLBACK_RTO = 3000.0
"""Of an accepted Fast Open socket that got no sample (`tcp_init_metrics`)."""
SYN_DATA = 1420
"""Room for data in a SYN (`tcp_send_syn_data`)."""

Rule = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Time:
    """So many round trips, these timers one after the other, so long on the wire, ms."""

    rtts: float
    timers_ms: tuple[float, ...] = ()
    wire_ms: float = 0.0

    def bounds_ms(self, rtt_ms: float, clock: str) -> tuple[float, float]:
        """The earliest and the latest moment that is as specified."""
        exact = self.rtts * rtt_ms + sum(self.timers_ms) + self.wire_ms
        earlier, later = (max(share * rtt_ms, LEAST_ROOM_MS) for share in (ROOM_RTT, LATE_RTT[clock]))
        return exact - earlier, exact + later + sum(map(lateness_ms, self.timers_ms))

    def __str__(self) -> str:
        parts = [f"{self.rtts:g} RTT"] if self.rtts else []
        parts += [f"{timer:g} ms" for timer in self.timers_ms]
        parts += [f"{self.wire_ms:g} ms on the wire"] if self.wire_ms else []
        return " + ".join(parts) or "0"


def lateness_ms(timer_ms: float) -> float:
    """How late a timer may go off: each level of the wheel holds 63 buckets of eight times the ticks."""
    bucket = TICK_MS
    while timer_ms >= 63 * bucket:
        bucket *= 8
    return bucket + TICK_MS


def on_wire_ms(rate_kbps: float, packets: Sequence[int]) -> float:
    """How long packets of so many bytes take to leave, one after the other."""
    return sum(packets) * 8 / rate_kbps


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One load and what must come of it.

    Attributes:
        name: What holds, in a sentence.
        source: Why.
        mode: `tcp` or `tfo`.
        plt: The page load time.
        connections: What the ledger shows of each connection, in the order of opening. A pair is a range.
        resources: The page.
        handshakes: From opening to ready, by connection; not looked at without.
        order: Resources in the order of their requests; not looked at without.
        rules: What the path does to single segments.
        path: What differs from an unlimited path of `RTT_MS`.
        taken: How many segments a middlebox takes; a pair is a range.
        failed: How many resources do not come.
        request_timeout_ms: When a request is given up.
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
        """What either clock is asked for."""
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
        """The least and the most segments that rules and middleboxes take."""
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
    """A script that the resource before it asks for once it has run."""
    url, initiator = f"http://a.test/{number}.js", {"resource": number - 1, "via": "script"}
    return document(url=url, kind="script", mime="text/javascript", initiator=initiator, **fields)


def chain(length: int) -> list[Row]:
    """A document and scripts, one after the other."""
    return [document(), *(script(number) for number in range(1, length))]


def images(count: int, host: str = "a.test") -> list[Row]:
    """A document and images that it asks for all at once."""
    initiator = {"resource": 0, "via": "parser", "at_byte": 500}
    return [
        document(),
        *(
            document(url=f"http://{host}/{number}.png", kind="image", mime="image/png", initiator=initiator)
            for number in range(1, count + 1)
        ),
    ]


def lose(direction: str, kind: str, **fields: Any) -> Rule:  # noqa: ANN401
    """A rule of the path that drops segments: the first that fits, unless `nth` and `count` say otherwise."""
    return {"direction": direction, "kind": kind, **fields, "action": "drop"}


def connection(cookie: str, syn_payload_bytes: int, **seen: Any) -> Row:  # noqa: ANN401
    """What the ledger shows; nothing lost unless `seen` says so."""
    whole = {"syn_data_acked": False, "syn_retransmits": 0, "retransmits": 0, **seen}
    return {"cookie": cookie, "syn_payload_bytes": syn_payload_bytes, **whole}


def plain(**seen: Any) -> Row:  # noqa: ANN401
    """A connection without Fast Open."""
    return connection("none", 0, **seen)


def asking(**seen: Any) -> Row:  # noqa: ANN401
    """One that asks for a cookie."""
    return connection("requested", 0, **seen)


def opened_fast(**seen: Any) -> Row:  # noqa: ANN401
    """One whose SYN carries a cookie and the request, and is answered."""
    return connection("sent", 300, **{"syn_data_acked": True, **seen})


def refused(**seen: Any) -> Row:  # noqa: ANN401
    """One whose SYN carries a cookie and the request in vain."""
    return connection("sent", 300, **seen)
