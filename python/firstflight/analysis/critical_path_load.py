"""One load as the search for its critical path sees it: rows and page together, and what bytes cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from firstflight.pages.model import Page, Resource
from firstflight.results import LoadRecord

Row = Mapping[str, Any]

MSS_BYTES = 1448
"""Data in a full segment: an MTU of 1,500 bytes less the headers."""

HEADER_BYTES = 52
"""IPv4 and TCP headers with the timestamp option."""

_EVENTS = ("queued_ms", "connect_start_ms", "connect_end_ms", "sent_ms", "first_byte_ms", "end_ms")


class Load:
    """A load's rows with its page.

    Args:
        record: One load: its row of `loads`, its rows of `requests` and `connections`.
        page: The page as it was loaded.
    """

    def __init__(self, record: LoadRecord, page: Page) -> None:
        self.row: Row = record["load"]
        self.requests: list[Row] = [row for row in record["requests"] if times(row)]
        self.page = page
        self.rtt_ms = float(self.row["rtt_ms"])
        self._connections = {row["connection"]: row for row in record["connections"]}

    @property
    def is_modelled(self) -> bool:
        """Whether the built-in loader made it, whose main thread can be computed from the rows."""
        return bool(self.row["client"] == "loader")

    @cached_property
    def by_index(self) -> dict[int, Row]:
        """The first request for each resource, in order of index."""
        ordered = sorted(self.requests, key=lambda row: (-int(row["index"]), -started_ms(row)))
        return {int(row["index"]): row for row in reversed(ordered)}

    def resource(self, row: Row) -> Resource | None:
        """The page's resource of a request; `None` for one that the page does not have."""
        index = int(row["index"])
        return self.page.resources[index] if index < len(self.page.resources) else None

    def initiator(self, row: Row) -> Row | None:
        """The request whose answer asked for this one.

        Where that one was never sent, whoever asked for it in turn; where nobody is known, the document.
        """
        document = self.by_index.get(0, self.requests[0])
        index = row["initiator"]
        while index is not None and index not in self.by_index:
            above = self.page.resources[index].initiator if index < len(self.page.resources) else None
            index = above.resource if above else None
        found = document if index is None else self.by_index[index]
        return None if found is row or row is document else found

    def connection(self, row: Row) -> Row:
        """The connection of a request as the ledger saw it; empty if it never was on the wire."""
        return self._connections.get(row["connection"], {})

    def connections(self) -> Iterable[Row]:
        """All connections of the load."""
        return self._connections.values()

    def opened(self, row: Row) -> bool:
        """Whether the request waited for its connection to be opened."""
        return row["connect_start_ms"] is not None

    def neighbours(self, row: Row) -> Iterator[Row]:
        """The requests whose answers share a link with this one's."""
        star = self.row["topology"] == "star"
        for other in self.requests:
            if other is not row and (not star or other["origin"] == row["origin"]):
                yield other

    def down_ms(self, data_bytes: float) -> float:
        """How long the link towards the client is busy with data in full segments, ms."""
        return _busy_ms(data_bytes, self.row["down_mbps"])

    def up_ms(self, data_bytes: float) -> float:
        """How long the link from the client is busy with data in full segments, ms."""
        return _busy_ms(data_bytes, self.row["up_mbps"])


def times(row: Row) -> list[float]:
    """The known moments of a request in their order, ms; empty for one that was never discovered."""
    return [float(row[name]) for name in _EVENTS if row[name] is not None]


def started_ms(row: Row) -> float:
    """When the request was discovered, ms: its first known moment."""
    return max(0.0, times(row)[0])


def _busy_ms(data_bytes: float, rate_mbps: float | None) -> float:
    if not rate_mbps or data_bytes <= 0:
        return 0.0
    segments = -(-data_bytes // MSS_BYTES)
    return (data_bytes + segments * HEADER_BYTES) * 8 / (rate_mbps * 1000)
