"""One download as a round-based model has it: after the first byte a window of segments arrives every RTT.

The window starts at 10 segments (RFC 6928) and doubles each round up to what the rate allows in one RTT, then
stays. As in Lantern there is no loss, no queue and no clocking by ACKs: a round counts as a whole one however
little of it is needed, and the window is one segment at least, so that on a short path a share of a slow link
may carry more than its rate.
"""

from __future__ import annotations

import math

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
