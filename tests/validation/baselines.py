"""Simple models of a page load, with which the simulator's accuracy is compared. See `docs/baselines.md`.

The first is a round-based model like Lighthouse's Lantern. It is a baseline and not precise. It was written
from a description of Lighthouse's ``TCPConnection`` and ``Simulator`` in the literature study:

- A cold connection takes a round trip for SYN and SYN-ACK, and one more with TLS; then it sends the request.
- A response arrives in rounds.
- The active requests, at most ten, share the rate equally. The shares are computed again at each event.
- Each origin has a pool of six connections.
- CPU tasks run one after the other. Their times are multiplied, and limited to ten seconds each.
- What a resource refers to starts once the resource has arrived and been processed.

This project added three things: `tfo` saves the round trip of a new connection if the origin has a cookie,
and the request (under TLS the ClientHello) fits into a SYN; and in a star each origin has its own rate.

Lantern has no loss, queues, uplink rate or early discovery by the parser, and neither has this model. This
model also leaves out DNS and HTTP/2.
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
"""The longest time that a CPU task may count, ms."""

SYN_DATA_BYTES = 1420
"""The most data that a SYN carries next to its options, bytes."""

CLIENT_HELLO_BYTES = 517
"""The size of a ClientHello without a post-quantum key share, bytes."""


class Path(Protocol):
    """The properties of a path that the model needs. `firstflight.model.path.Path` has them."""

    @property
    def topology(self) -> str:
        """`access` or `star`."""

    @property
    def rtt_ms(self) -> float:
        """Round-trip time."""

    @property
    def down_bps(self) -> int | None:
        """Rate towards the client, bit/s; `None`: unlimited."""


def lantern_plt_ms(
    page: Page,
    path: Path,
    mode: str,
    *,
    cookies: str = "warm",
    keep_alive: bool = True,
    cpu_multiplier: float = 1.0,
) -> float:
    """The PLT that the model predicts, ms.

    Args:
        page: The page.
        path: The path.
        mode: `tcp` or `tfo`.
        cookies: With `warm` every origin has a cookie, otherwise only after its first connection.
        keep_alive: Whether a connection carries more than one request.
        cpu_multiplier: How many times slower this client's CPU is than that of the recording.
    """
    warm = cookies == "warm"
    return _Run(
        page, path, tfo=mode == "tfo", warm=warm, keep_alive=keep_alive, cpu_multiplier=cpu_multiplier
    ).plt_ms()


@dataclass(slots=True)
class _Pool:
    """The connections to one origin: congestion windows of idle ones (segments), and how many are open."""

    idle: list[int] = field(default_factory=list)
    open: int = 0
    has_cookie: bool = False


class _Run:
    """One simulated load.

    Events are the ends of downloads, CPU tasks and delays; between them no rate changes.
    """

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
        """Advances to the next event."""
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
        """For each active request, segments per RTT: its equal share of the link's rate."""
        rate, rtt_ms = self.path.down_bps, self.path.rtt_ms
        if self.path.topology != "star":
            limit = window_limit(rate and rate / max(1, len(self.active)), rtt_ms)
            return dict.fromkeys(self.active, limit)
        sharing: dict[str, int] = {}
        for index in self.active:
            sharing[self.origins[index]] = sharing.get(self.origins[index], 0) + 1
        return {i: window_limit(rate and rate / sharing[self.origins[i]], rtt_ms) for i in self.active}

    def _start_waiting(self) -> None:
        """Starts waiting requests, in order, as long as limits on requests and connections allow it."""
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
        """Ends a resource: its end may delay the load event, and the requests that it initiates may start."""
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
"""Lantern's segment size."""

INITIAL_WINDOW = 10
"""Segments."""

_ROUNDING_MS = 1e-6
"""Tolerance for sums of the same rounds in different orders."""


class Download:
    """The response to one request.

    Args:
        size_bytes: Header and body.
        first_ms: When its first window arrives.
        window: The connection's congestion window, segments.
        rtt_ms: The RTT of its connection.
    """

    __slots__ = ("_left", "_next_ms", "_rtt_ms", "window")

    def __init__(self, size_bytes: float, first_ms: float, window: int, rtt_ms: float) -> None:
        self.window = window
        self._left = max(1, math.ceil(size_bytes / MSS_BYTES))
        self._next_ms = first_ms
        self._rtt_ms = max(rtt_ms, 1e-6)

    def end_ms(self, limit: int) -> float:
        """When its last byte arrives if its share of the rate does not change.

        Args:
            limit: Segments that its share of the rate allows in one RTT.
        """
        left, rounds, window = self._left, 0, min(self.window, limit)
        while left > window and window < limit:
            left, rounds, window = left - window, rounds + 1, min(2 * window, limit)
        return self._next_ms + (rounds + math.ceil(left / window) - 1) * self._rtt_ms

    def advance(self, until_ms: float, limit: int) -> None:
        """Lets every window arrive that is due by `until_ms`."""
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
    """The PLT that the naive model predicts, ms.

    Args:
        tcp: Critical path of a `tcp` load of the cell. The model uses nothing else of the page and the path.
        mode: `tcp` gives the measured PLT, `tfo` that less an RTT for each cold connection on the path.
    """
    return tcp.plt_ms - (tcp.could_save_rtts_ms if mode == "tfo" else 0.0)
