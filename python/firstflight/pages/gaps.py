"""The time between two moments of a recording that the network does not account for."""

from __future__ import annotations

from firstflight.pages.exchanges import Exchange


def quiet_ms(exchanges: list[Exchange], after_ms: float, before_ms: float) -> float:
    """Time from `after_ms` to `before_ms` in which nothing was fetched that could have been waited for, ms.

    What could have been waited for: scripts, data, style sheets and documents that ended in between. One
    still on its way at `before_ms` was not waited for; images are waited for by nothing.
    """
    waits = sorted(
        (max(exchange.start_ms, after_ms), exchange.end_ms)
        for exchange in exchanges
        if after_ms < exchange.end_ms <= before_ms and _can_be_waited_for(exchange)
    )
    quiet, at = 0.0, after_ms
    for start, end in waits:
        quiet += max(start - at, 0.0)
        at = max(at, end)
    return quiet + max(before_ms - at, 0.0)


def _can_be_waited_for(exchange: Exchange) -> bool:
    return exchange.is_script or exchange.is_data or exchange.is_css or exchange.is_html
