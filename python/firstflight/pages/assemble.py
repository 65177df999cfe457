"""Makes a page with bodies and header fields from recorded exchanges, their initiators and times."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import zip_longest

from firstflight.errors import PageInputError
from firstflight.model.page import Headers, LoadedPage, Page, Resource
from firstflight.pages.discovery import Discovery
from firstflight.pages.exchange import Exchange
from firstflight.pages.fields import without
from firstflight.pages.hosts import hosts_of
from firstflight.pages.link import Crossed
from firstflight.pages.times import Times
from firstflight.pages.urls import page_name

MOST_RESOURCES = 20_000


def assemble(
    exchanges: list[Exchange],
    discovery: Discovery,
    times: Times,
    *,
    source: str,
    notes: Counter[str],
    crossed: Crossed | None = None,
) -> LoadedPage:
    """Makes the page of an archive.

    Args:
        exchanges: Requests and responses; an initiator comes before what it discovers.
        discovery: The initiator of each.
        times: Server, processing and waiting times.
        source: The archive, also named in errors.
        notes: Counts of what is left out, by reason.
        crossed: The recording without the effects of its access link; `None`: the link is not known.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    page = make_page(
        exchanges, discovery, times, name=page_name(exchanges[0].url), source=source, crossed=crossed
    )
    bodies = {index: exchange.body for index, exchange in enumerate(exchanges) if exchange.body}
    headers = {index: _served(exchange) for index, exchange in enumerate(exchanges) if exchange.headers}
    return LoadedPage(page, bodies, _lines(exchanges, discovery, notes), headers)


def make_page(
    exchanges: list[Exchange],
    discovery: Discovery,
    times: Times,
    *,
    name: str,
    source: str,
    crossed: Crossed | None = None,
) -> Page:
    """Makes the page alone; see `assemble`.

    Raises:
        PageInputError: The page cannot be loaded, e.g. a host name is too long.
    """
    initiators = zip_longest(discovery.initiators, times.delay_ms, times.after)
    resources = tuple(
        Resource(
            url=exchange.url,
            method=exchange.method,
            kind=kind,
            mime=exchange.mime,
            status=exchange.status,
            request_bytes=exchange.request_bytes,
            header_bytes=exchange.header_bytes,
            body_bytes=exchange.body_bytes,
            server_ms=times.server_ms[index],
            cpu_ms=times.cpu_ms[index],
            blocks_load=times.blocks_load[index],
            initiator=replace(by, delay_ms=delay_ms, after=after) if by else None,
        )
        for index, (exchange, kind, (by, delay_ms, after)) in enumerate(
            zip(exchanges, discovery.kinds, initiators, strict=True)
        )
    )
    hosts = tuple(hosts_of(exchanges, crossed.trips if crossed else None))
    link = crossed.link if crossed else None
    page = Page(name, resources, source, tuple(discovery.missing), hosts, link)
    return page.checked(place=source or name)


def check_count(requests: int, place: str) -> None:
    """Raises `PageInputError` if an archive has more requests than a page may have."""
    if requests > MOST_RESOURCES:
        problem = f"{place}: {requests} requests are too many for one page"
        raise PageInputError(problem, f"a page has at most {MOST_RESOURCES}: split the archive")


def _served(exchange: Exchange) -> Headers:
    """The header fields that are served. A synthesised body has no content coding."""
    return exchange.headers if exchange.body else without(exchange.headers, "content-encoding")


def _lines(exchanges: list[Exchange], discovery: Discovery, notes: Counter[str]) -> list[str]:
    inferred = sum(bool(by and by.inferred) for by in discovery.initiators)
    bodiless = sum(exchange.body is None and exchange.body_bytes > 0 for exchange in exchanges)
    counts = [
        *((f"left out: {text}", count) for text, count in sorted(notes.items())),
        ("bodies that the archive does not hold, synthesised", bodiless),
        ("references without an answer, listed and not requested", len(discovery.missing)),
        ("initiators inferred, not recorded", inferred),
    ]
    return [f"{text}: {count}" for text, count in counts if count]
