"""What an engine is asked for and what it gives back; free of any engine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from firstflight.engines.what_if import TODAY, WhatIf
from firstflight.model.treatment import PLAIN
from firstflight.results.schema import LOADS, LoadRecord

if TYPE_CHECKING:
    from firstflight.pages import LoadedPage


CA_FILE = "/dev/shm/firstflight-ca.pem"
"""Where clients inside a laboratory find whom to trust: a file system of the laboratory's own."""

_BYTES = {"MB": 10**6, "kB": 10**3, "B": 1}


class Record(LoadRecord, total=False):
    """What came of one load, as it goes to the journal."""

    unmatched: list[str]
    """URLs that the client asked for and no recording answers, where there were any."""
    approximate_requests: int
    """Requests answered although a value that changes with every visit differs, where there were any."""
    attempt: int
    """Counts from 1; above it where a relay was late, or the client broke, and the load was made again."""
    browser: dict[str, Any]
    """Version and moments of the page, where a browser loaded it."""
    broken: bool
    """The client died or hung."""
    instrument_failure: bool
    """The laboratory could not be built, or died: `error` says how. The line is of no load."""
    hint: str
    """What can be done about an instrument failure."""


@dataclass(frozen=True)
class Queue:
    """The queue in front of a link; exactly one of the four is set.

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
        """Whether it drops packets before it is full."""
        return self.name in {"codel", "pie"}

    def __str__(self) -> str:
        """As a plan has it: `1000p`, `64kB`, `100ms` or its name."""
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
        """The form in which an engine takes it."""
        if self.name is not None:
            return self.name
        limits = {"packets": self.packets, "bytes": self.bytes, "ms": self.ms}
        return {unit: limit for unit, limit in limits.items() if limit is not None}


@dataclass(frozen=True)
class Trace:
    """When a link delivers, as Mahimahi records it. With the same times they are equal, whatever their names.

    Attributes:
        name: Of the file that it was read from.
        text: A time in ms per line; docs/path.md says more.
        mean_bps: What it delivers in the mean, bit/s.
        lasts_ms: When it begins again, ms.
    """

    name: str = field(compare=False)
    text: str = field(repr=False)
    mean_bps: int = field(compare=False)
    lasts_ms: int = field(compare=False)

    @cached_property
    def sha256(self) -> str:
        """Of its times, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        """Its file's name and the first digits of its digest: traces with other times never have one name."""
        return f"{self.name} {self.sha256[:12]}"

    def describe(self) -> dict[str, Any]:
        """What identifies it, without its times."""
        limits = {"mean_bps": self.mean_bps, "lasts_ms": self.lasts_ms}
        return {"name": self.name, "sha256": self.sha256, **limits}


@dataclass(frozen=True)
class Middlebox:
    """What stands on paths to origins: its habit, and the probability that it stands on one."""

    habit: str
    share: float = 1.0

    def __str__(self) -> str:
        """As a plan has it: `drop-data`, or with the share of paths `drop-data:0.3`."""
        return self.habit if self.share == 1 else f"{self.habit}:{self.share!r}"

    def to_json(self) -> dict[str, Any]:
        """The form in which an engine takes it."""
        return {"habit": self.habit, "share": self.share}


@dataclass(frozen=True)
class Burst:
    """Losses in bursts: mean length of a bad state, packets, and the share of packets lost in it."""

    packets: float
    loss: float = 1.0

    def to_json(self) -> dict[str, float]:
        """The form in which an engine takes it."""
        return {"packets": self.packets, "loss": self.loss}


@dataclass(frozen=True)
class Path:
    """RTT, rates, queue and what befalls packets between client and origins. `None`: an unlimited rate."""

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
        """Its traces, `down_trace` and `up_trace`; the rate of such a link is the trace's mean."""
        traces = {"down_trace": self.down_trace, "up_trace": self.up_trace}
        return {way: trace for way, trace in traces.items() if trace}

    def columns(self) -> dict[str, Any]:
        """What the loads table says of it (`firstflight.results.LOADS`)."""
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

    def to_json(self, seed: int) -> dict[str, Any]:
        """The form in which an engine takes it; `seed` decides what befalls which packet or origin."""
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


@dataclass(frozen=True)
class Transport:
    """What every TCP connection has at both ends: initial window (segments) and congestion control."""

    initial_window: int = 10
    congestion_control: str = "cubic"

    def to_json(self) -> dict[str, Any]:
        """The form in which an engine takes it."""
        return {"initial_window": self.initial_window, "congestion_control": self.congestion_control}


@dataclass(frozen=True)
class PlannedLoad:
    """One load to be made: its identity, its place in the run (`order`), and everything that defines it.

    Loads of one block share `seed`, so that every treatment gets the same random numbers.

    Attributes:
        treatment: Name of its treatment; empty: its mode is all that it has of one.
        baseline: Name of the treatment that its own is compared with; empty: the first of all modes.
        compared: Plan keys in which the treatments differ: what the load is held to beside its mode.
    """

    load_id: str
    block: int
    order: int
    repeat: int
    page: str
    path: Path
    mode: str
    seed: int
    client: str = "loader"
    browser: str = ""
    engine: str = "emulate"
    cookies: str = "warm"
    keep_alive: bool = True
    initial_window: int = 10
    congestion_control: str = "cubic"
    scheme: str = "recorded"
    post_quantum: bool = True
    http: str = "1.1"
    origin_rtt: str = "path"
    lookups: bool = False
    server_time: bool = True
    processing: float = 1.0
    determinism: bool = True
    what_if: WhatIf = TODAY
    treatment: str = ""
    baseline: str = ""
    compared: tuple[str, ...] = ()

    @property
    def transport(self) -> Transport:
        """What every connection has."""
        return Transport(self.initial_window, self.congestion_control)

    def columns(self) -> dict[str, Any]:
        """What the loads table says of it (`firstflight.results.LOADS`): all but what came of the load."""
        named = {name: getattr(self, name) for name in _COLUMNS_BY_NAME}
        treatment = {"treatment": self.treatment or self.mode, "baseline": self.baseline or PLAIN}
        return {**named, **self.path.columns(), **treatment, "what_if": str(self.what_if)}


_COLUMNS_BY_NAME = sorted(
    PlannedLoad.__dataclass_fields__.keys() & {*LOADS.names} - {"path", "what_if", "treatment"}
)


@dataclass(frozen=True)
class Calibration:
    """What a path turned out to be when nothing but probes crossed it.

    Attributes:
        path: The path asked for.
        rate_ms: How long a stream ran each way, ms; 0: none did.
        measured: RTT, rates and relay, as the laboratory gives them.
    """

    path: Path
    rate_ms: int
    measured: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For `environment.json`: asked and measured side by side."""
        traces = {way: trace.describe() for way, trace in self.path.traces.items()}
        return {"path": {**self.path.to_json(seed=0), **traces}, "rate_ms": self.rate_ms, **self.measured}


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else rate_bps / 1e6


class EngineStoppedError(Exception):
    """The engine was told to stop while this load was under way: there is no record of it."""


class Engine(Protocol):
    """Makes loads, several at once when called from several threads."""

    def calibrate(self, path: Path, bias_ms: float | None = None) -> Calibration:
        """Measures an empty path.

        Args:
            path: The path.
            bias_ms: What the relay adds to this RTT, ms, if that is known already; None: it is measured.

        Raises:
            LabError: The laboratory cannot be built.
        """

    def load(self, planned: PlannedLoad, page: LoadedPage) -> Record:
        """Makes one load. A load that the page or the client made fail is a record with `status` `failed`.

        Raises:
            LabError: There is no result: the laboratory could not be built, or died.
            EngineStoppedError: `stop` was called meanwhile.
        """

    def stop(self) -> None:
        """Ends every load under way, at once and for good. Safe from any thread."""
