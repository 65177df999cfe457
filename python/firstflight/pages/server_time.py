"""Pages whose servers answer at once, on a main thread that takes no time: what is left is the network."""

from __future__ import annotations

from dataclasses import asdict, replace

from firstflight.pages.loaded import LoadedPage
from firstflight.pages.model import Page


def without_server_time(page: LoadedPage) -> LoadedPage:
    """`page` without the server and processing times of its recording; its pauses (`delay_ms`) stay."""
    fields = asdict(page.page)
    for resource in fields["resources"]:
        resource["server_ms"] = resource["cpu_ms"] = 0.0
    return replace(page, page=Page.from_fields(fields))
