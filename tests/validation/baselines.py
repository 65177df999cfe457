"""Simple models of a page load, to hold the simulator's accuracy against. See `docs/baselines.md`.

The first is a round-based model as Lighthouse's Lantern computes it: a baseline, not a model to trust.
Written from the description in the literature study of the field (the network model of Lighthouse's
``TCPConnection`` and ``Simulator``): a cold connection costs a round trip for SYN and SYN-ACK, one more with
TLS, and then the request; a response arrives in rounds; the rate is divided equally among the
active requests, anew at each event, of which there are ten at most; a connection pool of six per origin; the
CPU's tasks run one after the other, times a multiplier, ten seconds at most each; what a resource discovers
starts once it has arrived and been processed.

Added for this project: `tfo` saves the round trip of a new connection if the request (under TLS the
ClientHello) fits a SYN and the origin has a cookie, and a star has a rate per origin. Left out as in Lantern:
loss, queues, the uplink's rate, early discovery by the parser. Left out besides: DNS and HTTP/2.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from firstflight.analysis.critical_path.walk import CriticalPath
from firstflight.model.page import Page, Resource

MOST_REQUESTS = 10
"""Active requests at a time."""

MOST_PER_ORIGIN = 6
"""Connections to an origin at a time."""

LONGEST_TASK_MS = 10_000.0
"""A CPU task counts no more than this."""

SYN_DATA_BYTES = 1420
"""What fits a SYN beside its options."""

CLIENT_HELLO_BYTES = 517
"""A ClientHello without a post-quantum key share."""


class Path(Protocol):
    """What the model needs of a path; `firstflight.model.path.Path` is one."""

    @property
    def topology(self) -> str:
        """`access` or `star`."""

    @property
    def rtt_ms(self) -> float:
        """Round-trip time."""

    @property
    def down_bps(self) -> int | None:
        """Rate towards the client; `None`: unlimited."""


def lantern_plt_ms(
    page: Page,
    path: Path,
    mode: str,
    *,
    cookies: str = "warm",
    keep_alive: bool = True,
    cpu_multiplier: float = 1.0,
) -> float:
    """The PLT by the model, ms.

    Args:
        page: What is loaded.
        path: What it is loaded over.
        mode: `tcp` or `tfo`.
        cookies: With `warm` every origin has a cookie; else those to which a connection was opened before.
        keep_alive: Whether a connection carries more than one request.
        cpu_multiplier: By how much this client's CPU is slower than the recorded one.
    """
    warm = cookies == "warm"
    return _Run(
        page, path, tfo=mode == "tfo", warm=warm, keep_alive=keep_alive, cpu_multiplier=cpu_multiplier
    ).plt_ms()


@dataclass(slots=True)
class _Pool:
    """The connections to one origin: congestion windows of idle ones, and how many there are."""

    idle: list[int] = field(default_factory=list)
    open: int = 0
    has_cookie: bool = False


class _Run:
    """One load. Events are the ends of downloads and of CPU tasks; between them nothing changes."""

    def __init__(
        self, page: Page, path: Path, *, tfo: bool, warm: bool, keep_alive: bool, cpu_multiplier: float
    ) -> None:
        self.resources = page.resources
        self.origins = [resource.origin for resource in page.resources]
        self.path = path
        self.tfo = tfo
        self.keep_alive = keep_alive
        self.cpu_multiplier = cpu_multiplier
        self.children: list[list[int]] = [[] for _ in page.resources]
        for index, resource in enumerate(page.resources):
            if resource.initiator:
                self.children[resource.initiator.resource].append(index)
        self.pools = {origin: _Pool(has_cookie=warm) for origin in self.origins}
        self.waiting: list[int] = []
        self.delayed: list[tuple[float, int]] = []
        self.active: dict[int, Download] = {}
        self.tasks: deque[int] = deque()
        self.task_end_ms = 0.0
        self.now_ms = 0.0
        self.load_event_ms = 0.0

    def plt_ms(self) -> float:
        self.waiting.append(0)
        self._start_waiting()
        while self.active or self.tasks or self.delayed:
            self._step()
        return self.load_event_ms

    def _step(self) -> None:
        """Goes on to the next event."""
        limits = self._limits()
        ends = {index: download.end_ms(limits[index]) for index, download in self.active.items()}
        now = min(
            min(ends.values(), default=float("inf")),
            self.task_end_ms if self.tasks else float("inf"),
            min(self.delayed)[0] if self.delayed else float("inf"),
        )
        self.now_ms = now
        for index, download in self.active.items():
            download.advance(now, limits[index])
        for index in [index for index, end_ms in ends.items() if end_ms <= now]:
            self._arrived(index)
        if self.tasks and self.task_end_ms <= now:
            self._processed()
        for due in sorted(due for due in self.delayed if due[0] <= now):
            self.delayed.remove(due)
            self.waiting.append(due[1])
        self._start_waiting()

    def _limits(self) -> dict[int, int]:
        """Segments per RTT of each active request: an equal share of the rate of its link."""
        rate, rtt_ms = self.path.down_bps, self.path.rtt_ms
        if self.path.topology != "star":
            limit = window_limit(rate and rate / max(1, len(self.active)), rtt_ms)
            return dict.fromkeys(self.active, limit)
        sharing: dict[str, int] = {}
        for index in self.active:
            sharing[self.origins[index]] = sharing.get(self.origins[index], 0) + 1
        return {i: window_limit(rate and rate / sharing[self.origins[i]], rtt_ms) for i in self.active}

    def _start_waiting(self) -> None:
        """Starts the requests, in order, for which there is room."""
        left = []
        for index in self.waiting:
            pool = self.pools[self.origins[index]]
            room = pool.idle or pool.open < MOST_PER_ORIGIN
            if len(self.active) < MOST_REQUESTS and room:
                self._start(index, pool)
            else:
                left.append(index)
        self.waiting = left

    def _start(self, index: int, pool: _Pool) -> None:
        resource, rtt_ms = self.resources[index], self.path.rtt_ms
        window, handshake_ms = INITIAL_WINDOW, 0.0
        if pool.idle:
            window = pool.idle.pop()
        else:
            pool.open += 1
            handshake_ms = self._handshake_ms(resource, pool)
        first_ms = self.now_ms + handshake_ms + rtt_ms + resource.server_ms
        self.active[index] = Download(resource.wire_bytes, first_ms, window, rtt_ms)

    def _handshake_ms(self, resource: Resource, pool: _Pool) -> float:
        secure = resource.url.startswith("https:")
        first_bytes = CLIENT_HELLO_BYTES if secure else resource.request_bytes
        saved = self.tfo and pool.has_cookie and first_bytes <= SYN_DATA_BYTES
        return (int(secure) + int(not saved)) * self.path.rtt_ms

    def _arrived(self, index: int) -> None:
        download, pool = self.active.pop(index), self.pools[self.origins[index]]
        pool.has_cookie = True
        if self.keep_alive:
            pool.idle.append(download.window)
        else:
            pool.open -= 1
        if self.resources[index].cpu_ms > 0:
            self._submit(index)
        else:
            self._settled(index)

    def _submit(self, index: int) -> None:
        self.tasks.append(index)
        if len(self.tasks) == 1:
            self.task_end_ms = self.now_ms + self._task_ms(index)

    def _task_ms(self, index: int) -> float:
        return min(LONGEST_TASK_MS, self.resources[index].cpu_ms * self.cpu_multiplier)

    def _processed(self) -> None:
        self._settled(self.tasks.popleft())
        if self.tasks:
            self.task_end_ms = self.now_ms + self._task_ms(self.tasks[0])

    def _settled(self, index: int) -> None:
        """A resource is done with: the load event waits for it, and what it asks for is known."""
        if self.resources[index].blocks_load:
            self.load_event_ms = max(self.load_event_ms, self.now_ms)
        for child in self.children[index]:
            initiator = self.resources[child].initiator
            delay_ms = initiator.delay_ms if initiator else 0.0
            if delay_ms > 0:
                self.delayed.append((self.now_ms + delay_ms, child))
            else:
                self.waiting.append(child)


MSS_BYTES = 1460
"""Lantern's segment."""

INITIAL_WINDOW = 10
"""Segments."""

_ROUNDING_MS = 1e-6
"""Sums of the same rounds in another order differ by less."""


class Download:
    """The response to one request.

    Args:
        size_bytes: Header and body.
        first_ms: When its first window arrives.
        window: The connection's congestion window, segments.
        rtt_ms: Of its connection.
    """

    __slots__ = ("_left", "_next_ms", "_rtt_ms", "window")

    def __init__(self, size_bytes: float, first_ms: float, window: int, rtt_ms: float) -> None:
        self.window = window
        self._left = max(1, math.ceil(size_bytes / MSS_BYTES))
        self._next_ms = first_ms
        self._rtt_ms = max(rtt_ms, 1e-6)

    def end_ms(self, limit: int) -> float:
        """When its last byte arrives if nothing changes any more.

        Args:
            limit: Segments that its share of the rate allows in one RTT.
        """
        left, rounds, window = self._left, 0, min(self.window, limit)
        while left > window and window < limit:
            left, rounds, window = left - window, rounds + 1, min(2 * window, limit)
        return self._next_ms + (rounds + math.ceil(left / window) - 1) * self._rtt_ms

    def advance(self, until_ms: float, limit: int) -> None:
        """Lets every window arrive that is due until a moment."""
        until_ms += _ROUNDING_MS
        window = min(self.window, limit)
        while self._left > 0 and self._next_ms <= until_ms and window < limit:
            self._arrive(window, 1)
            window = min(2 * window, limit)
        if self._left > 0 and self._next_ms <= until_ms:
            rounds = min(
                math.floor((until_ms - self._next_ms) / self._rtt_ms) + 1, math.ceil(self._left / window)
            )
            self._arrive(window, rounds)
        self.window = max(self.window, window)

    def _arrive(self, window: int, rounds: int) -> None:
        self._left -= window * rounds
        self._next_ms += rounds * self._rtt_ms


def window_limit(rate_bps: float | None, rtt_ms: float) -> int:
    """Segments that a rate allows in one RTT, rounded down, at least one.

    >>> window_limit(4_000_000, 100)
    34
    """
    if rate_bps is None:
        return 2**31
    return max(1, math.floor(rate_bps * rtt_ms / 8000 / MSS_BYTES))


def naive_plt_ms(tcp: CriticalPath, mode: str) -> float:
    """The PLT, ms.

    Args:
        tcp: Critical path of a `tcp` load of the cell. The model knows nothing of pages and paths but this.
        mode: `tcp`, which is as it was measured, or `tfo`.
    """
    return tcp.plt_ms - (tcp.could_save_rtts_ms if mode == "tfo" else 0.0)
