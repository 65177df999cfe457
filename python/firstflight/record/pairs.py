"""Each exchange on the wire with the request of the page that it belongs to, and what could not be had."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from firstflight.engines.clients.chromium.job import Fetch
from firstflight.record.wire import Exchange

_BLOCKED = "inspector"
"""Why DevTools stopped a request: the driver asked it to."""
_LASTING = ("ERR_NAME_", "ERR_ABORTED", "ERR_BLOCKED_BY_", "ERR_CERT_", "ERR_UNSAFE_PORT", "ERR_INVALID_")
"""What would not be otherwise a second time."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An exchange, and what DevTools says of it; nothing of what a service worker asked for."""

    exchange: Exchange
    fetch: Fetch | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A request whose answer could not be had, or not whole."""

    url: str
    method: str
    reason: str

    @property
    def lasting(self) -> bool:
        """Whether it would be lost again."""
        return any(word in self.reason for word in _LASTING)


def pair(exchanges: Iterable[Exchange], fetches: Iterable[Fetch]) -> tuple[list[Pair], list[Lost]]:
    """The exchanges that the page made, in the order of being sent, and what it did not get.

    The same request made twice is told apart by its order. What the browser asks on its own account is left
    out.
    """
    waiting = _by_request(fetches)
    pairs: list[Pair] = []
    for exchange in sorted(exchanges, key=lambda exchange: exchange.sent_ms):
        asked = waiting[exchange.method, exchange.url]
        if asked or exchange.from_page:
            pairs.append(Pair(exchange, asked.popleft() if asked else None))
    unsent = [_unsent(fetch) for fetches in waiting.values() for fetch in fetches if fetch.status is None]
    return [pair for pair in pairs if pair.exchange.answer], [*filter(None, map(_cut, pairs)), *unsent]


def _by_request(fetches: Iterable[Fetch]) -> defaultdict[tuple[str, str], deque[Fetch]]:
    waiting: defaultdict[tuple[str, str], deque[Fetch]] = defaultdict(deque)
    network = (fetch for fetch in fetches if not fetch.cached and fetch.error != _BLOCKED)
    for fetch in sorted(network, key=lambda fetch: fetch.sent_ms or fetch.queued_ms):
        waiting[fetch.method, fetch.url.partition("#")[0]].append(fetch)
    return waiting


def _unsent(fetch: Fetch) -> Lost:
    return Lost(fetch.url, fetch.method, fetch.error or "never answered")


def _cut(pair: Pair) -> Lost | None:
    exchange = pair.exchange
    if exchange.whole:
        return None
    said = pair.fetch.error if pair.fetch and pair.fetch.error else f"net error {exchange.error}"
    if exchange.answer is None:
        return Lost(exchange.url, exchange.method, f"{said}: no answer")
    stated = f" of {exchange.stated_bytes}" if exchange.stated_bytes is not None else ""
    return Lost(exchange.url, exchange.method, f"{said}: {exchange.body_bytes}{stated} bytes came")
