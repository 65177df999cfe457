"""The path between client and origins, in the forms of plans and of engines."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from firstflight.model.units import BadValueError, parse_number, quoted

_BYTES = {"MB": 10**6, "kB": 10**3, "B": 1}


@dataclass(frozen=True)
class Queue:
    """The queue in front of a link; exactly one of the four attributes is set.

    Attributes:
        packets: The most packets.
        bytes: The most bytes.
        ms: The longest wait, ms.
        name: `unlimited`, `codel` (RFC 8289) or `pie` (RFC 8033).
    """

    packets: int | None = None
    bytes: int | None = None
    ms: int | None = None
    name: str | None = None

    @property
    def is_managed(self) -> bool:
        """Whether it is an active queue management, which may drop packets before the queue is full."""
        return self.name in {"codel", "pie"}

    def holds_bytes(self, rate_bps: int) -> float:
        """The most bytes that wait in front of a link with this rate, for packets of 1,500 bytes."""
        if self.packets is not None:
            return 1500 * self.packets
        if self.ms is not None:
            return rate_bps / 8 * self.ms / 1000
        return self.bytes or math.inf

    def __str__(self) -> str:
        """In the form of a plan: `1000p`, `64kB`, `100ms` or its name."""
        if self.name is not None:
            return self.name
        if self.packets is not None:
            return f"{self.packets}p"
        if self.ms is not None:
            return f"{self.ms}ms"
        size = self.bytes or 0
        unit, factor = next((unit, factor) for unit, factor in _BYTES.items() if size % factor == 0)
        return f"{size // factor}{unit}"

    def to_json(self) -> dict[str, int] | str:
        """The JSON form for an engine."""
        if self.name is not None:
            return self.name
        limits = {"packets": self.packets, "bytes": self.bytes, "ms": self.ms}
        return {unit: limit for unit, limit in limits.items() if limit is not None}


@dataclass(frozen=True)
class Trace:
    """The times at which a link delivers, in Mahimahi's format. Traces with the same times are equal.

    Attributes:
        name: Name of its file.
        text: A time in ms per line; docs/path.md says more.
        mean_bps: Its mean rate, bit/s.
        lasts_ms: After this time it repeats, ms.
    """

    name: str = field(compare=False)
    text: str = field(repr=False)
    mean_bps: int = field(compare=False)
    lasts_ms: int = field(compare=False)

    @cached_property
    def sha256(self) -> str:
        """Digest of its times, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        """Its file's name and the first digits of its digest, so that names of traces are unique."""
        return f"{self.name} {self.sha256[:12]}"

    def describe(self) -> dict[str, object]:
        """What identifies it, without its times."""
        limits = {"mean_bps": self.mean_bps, "lasts_ms": self.lasts_ms}
        return {"name": self.name, "sha256": self.sha256, **limits}


@dataclass(frozen=True)
class Middlebox:
    """A middlebox on paths to origins: its effect on packets, and the probability that a path has it."""

    kind: str
    share: float = 1.0

    def __str__(self) -> str:
        """In the form of a plan: `drop-data`, or with the share of paths `drop-data:0.3`."""
        return self.kind if self.share == 1 else f"{self.kind}:{self.share!r}"

    def to_json(self) -> dict[str, object]:
        """The JSON form for an engine."""
        return {"kind": self.kind, "share": self.share}


@dataclass(frozen=True)
class Burst:
    """Losses in bursts: mean length of a bad state, packets, and the share of packets lost in it."""

    packets: float
    loss: float = 1.0

    def to_json(self) -> dict[str, float]:
        """The JSON form for an engine."""
        return {"packets": self.packets, "loss": self.loss}


@dataclass(frozen=True)
class Path:
    """RTT, rates, queue and impairments between client and origins. A rate of `None` is unlimited."""

    topology: str
    rtt_ms: float
    down_bps: int | None
    up_bps: int | None
    queue: Queue
    loss: float
    middlebox: Middlebox | None = None
    burst: Burst | None = None
    jitter_ms: float = 0.0
    reorder: bool = False
    duplicate: float = 0.0
    ecn: bool = False
    down_trace: Trace | None = None
    up_trace: Trace | None = None

    @property
    def traces(self) -> dict[str, Trace]:
        """The path's traces, by `down_trace` and `up_trace`. The rate of a link with a trace is its mean."""
        traces = {"down_trace": self.down_trace, "up_trace": self.up_trace}
        return {way: trace for way, trace in traces.items() if trace}

    def columns(self) -> dict[str, object]:
        """The path's columns in the loads table (`firstflight.results.LOADS`)."""
        burst, middlebox = self.burst, self.middlebox
        return {
            "topology": self.topology,
            "rtt_ms": self.rtt_ms,
            "down_mbps": _mbps(self.down_bps),
            "up_mbps": _mbps(self.up_bps),
            "down_trace": str(self.down_trace) if self.down_trace else None,
            "up_trace": str(self.up_trace) if self.up_trace else None,
            "loss": self.loss,
            "loss_burst": burst.packets if burst else None,
            "loss_in_burst": burst.loss if burst else None,
            "jitter_ms": self.jitter_ms,
            "reorder": self.reorder,
            "duplicate": self.duplicate,
            "queue": str(self.queue),
            "ecn": self.ecn,
            "middlebox": str(middlebox) if middlebox else "off",
        }

    def to_json(self, seed: int) -> dict[str, object]:
        """The path as an engine takes it; `seed` decides which packets and origins an impairment affects."""
        return {
            "topology": self.topology,
            "rtt_ms": self.rtt_ms,
            "down_bps": self.down_bps,
            "up_bps": self.up_bps,
            "queue": self.queue.to_json(),
            "loss": self.loss,
            "jitter_ms": self.jitter_ms,
            "reorder": self.reorder,
            "duplicate": self.duplicate,
            "ecn": self.ecn,
            "seed": seed,
            **({"middlebox": self.middlebox.to_json()} if self.middlebox else {}),
            **({"burst": self.burst.to_json()} if self.burst else {}),
            **{way.replace("trace", "bps"): None for way in self.traces},
            **{way: trace.text for way, trace in self.traces.items()},
        }


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else rate_bps / 1e6


_QUEUE = re.compile(r"(\d+)\s*(p|b|kb|mb|ms)", re.ASCII)

_QUEUES = ("unlimited", "codel", "pie")

_SIZES = {"mb": 10**6, "kb": 10**3, "b": 1}

MIDDLEBOXES = (
    "drop-data",
    "drop-option",
    "strip-option",
    "strip-data",
    "reset",
    "black-hole",
    "duplicate-syn",
    "drop-udp",
    "drop-large-udp",
    "limit-udp",
    "drop-early-data",
    "drop-cut-hello",
)
"""Effects of a middlebox on a SYN, a ClientHello or datagrams; docs/lab.md explains each."""

OF_QUIC = ("drop-udp", "drop-large-udp", "limit-udp")
"""Middleboxes that affect only QUIC."""

OF_TLS = ("drop-early-data", "drop-cut-hello")
"""Middleboxes that affect only TLS over TCP."""


def parse_queue(value: object) -> Queue:
    """Parses a queue: packets (`1000p`), bytes (`64kB`; k is 1,000), a wait (`100ms`), or a name."""
    if isinstance(value, Queue):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    if text in _QUEUES:
        return Queue(name=text)
    match = _QUEUE.fullmatch(text)
    if not match:
        hint = (
            "write packets such as 1000p, bytes such as 64kB, a wait such as 100ms, unlimited, codel or pie"
        )
        raise BadValueError(f"{quoted(value)} is not a queue", hint)
    queue = _drop_tail(int(match[1]), match[2])
    if not _holds_a_packet(queue):
        raise BadValueError(
            f"{quoted(value)} is out of range", "use 1p to 1000000p, 1500B to 1000MB, or 1ms to 60000ms"
        )
    return queue


def parse_middlebox(value: object) -> Middlebox | None:
    """Parses a middlebox: its effect, and the share of paths that have it; `None` for `off`.

    >>> parse_middlebox("strip-option:0.3")
    Middlebox(kind='strip-option', share=0.3)
    """
    if value in (None, "off") or isinstance(value, Middlebox):
        return value if isinstance(value, Middlebox) else None
    kind, colon, share = str(value).strip().partition(":")
    if kind not in MIDDLEBOXES:
        raise BadValueError(f"{quoted(value)} is not a middlebox", f"use off, {', '.join(MIDDLEBOXES)}")
    hint = f"write the share of paths behind it, above 0 and up to 1, such as {kind}:0.3"
    number = parse_number(share, "a share of paths", hint) if colon else 1.0
    if not 0 < number <= 1:
        raise BadValueError(f"{quoted(value)} is out of range", hint)
    return Middlebox(kind, number)


def write_middlebox(middlebox: Middlebox | None) -> str:
    """The inverse of `parse_middlebox`."""
    return "off" if middlebox is None else str(middlebox)


def _drop_tail(size: int, unit: str) -> Queue:
    if unit == "p":
        return Queue(packets=size)
    return Queue(ms=size) if unit == "ms" else Queue(bytes=size * _SIZES[unit])


def _holds_a_packet(queue: Queue) -> bool:
    if queue.packets is not None:
        return 1 <= queue.packets <= 10**6
    if queue.ms is not None:
        return 1 <= queue.ms <= 60_000
    return queue.bytes is not None and 1500 <= queue.bytes <= 10**9


TRACES_FOLDER = "traces"
"""Name of the folder in a results folder."""


def parse_trace(value: object) -> Trace | None:
    """Accepts a trace, or `off`, which becomes `None`; `experiment.plan_file` reads the files of traces."""
    if value in (None, "off"):
        return None
    if isinstance(value, Trace):
        return value
    raise BadValueError(f"{quoted(value)} is not a file", "name a file in Mahimahi's format, or off")


def write_trace(way: str) -> Callable[[Trace | None], str]:
    """The file name of that direction's trace, `down` or `up`, in the plan of a results folder."""
    return lambda trace: f"{TRACES_FOLDER}/{way}/{trace.name}.gz" if trace else "off"
