"""A mirrored page before it becomes a `Page`: exchanges, who discovered them, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from firstflight.pages.discovery import Discovery, with_wire_offset
from firstflight.pages.exchanges import Exchange
from firstflight.pages.fetchlog import FetchLog
from firstflight.pages.model import Page
from firstflight.pages.sizes import Sizes
from firstflight.pages.times import Times


@dataclass(frozen=True, slots=True)
class Recording:
    """A mirrored page.

    Attributes:
        exchanges: Requests and responses; an initiator comes before what it discovers.
        discovery: Who discovered each.
        times: Server, processing and waiting times.
        log: The browser's log; None if the mirror has none.
        cached: Number of bodies that the browser had and did not ask for.
    """

    exchanges: list[Exchange]
    discovery: Discovery
    times: Times
    log: FetchLog | None = None
    cached: int = field(default=0)


def page_of(recording: Recording, sizes: Sizes, *, name: str, source: str) -> Page:
    """Makes the page of a recording; `at_byte` is mapped from the file to the wire in proportion.

    Raises:
        PageInputError: The page cannot be loaded, e.g. a host name is too long.
    """
    fields = {
        "name": name,
        "source": source,
        "resources": [_resource(recording, sizes, index) for index in range(len(recording.exchanges))],
        "missing": [asdict(reference) for reference in recording.discovery.missing],
    }
    return Page.from_fields(fields, place=source or name)


def _resource(recording: Recording, sizes: Sizes, index: int) -> dict[str, Any]:
    exchange, times = recording.exchanges[index], recording.times
    initiator = recording.discovery.initiators[index]
    if initiator is not None:
        parent = initiator.resource
        file_bytes = recording.exchanges[parent].body_bytes
        initiator = with_wire_offset(initiator, file_bytes, sizes.body_bytes[parent])
        initiator = replace(initiator, delay_ms=times.delay_ms[index])
    return {
        "url": exchange.url,
        "kind": recording.discovery.kinds[index],
        "mime": exchange.mime,
        "status": exchange.status,
        "request_bytes": sizes.request_bytes[index],
        "header_bytes": sizes.header_bytes[index],
        "body_bytes": sizes.body_bytes[index],
        "server_ms": times.server_ms[index],
        "cpu_ms": times.cpu_ms[index],
        "blocks_load": times.blocks_load[index],
        "initiator": asdict(initiator) if initiator else None,
    }
