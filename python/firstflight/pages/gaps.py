"""The time between two moments of a recording that the network does not account for."""

from __future__ import annotations

from firstflight.pages.exchanges import Exchange


def quiet_ms(exchanges: list[Exchange], after_ms: float, before_ms: float) -> float:
    """Time from `after_ms` to `before_ms` in which nothing was fetched that could have been waited for, ms.

    What could have been waited for: scripts, data, style sheets and documents that ended in between. One
    still on its way at `before_ms` was not waited for; images are waited for by nothing.
    """
    waits = [(exchange.start_ms, exchange.end_ms) for exchange in exchanges if _can_be_waited_for(exchange)]
    return quiet_between(waits, after_ms, before_ms)


def quiet_between(waits: list[tuple[float, float]], after_ms: float, before_ms: float) -> float:
    """As `quiet_ms`, of the starts and ends in `waits`."""
    within = sorted((max(start, after_ms), end) for start, end in waits if after_ms < end <= before_ms)
    quiet, at = 0.0, after_ms
    for start, end in within:
        quiet += max(start - at, 0.0)
        at = max(at, end)
    return quiet + max(before_ms - at, 0.0)


def _can_be_waited_for(exchange: Exchange) -> bool:
    return exchange.is_script or exchange.is_data or exchange.is_css or exchange.is_html
