"""What a page is like, in numbers. No loading: that is the engines' work."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from firstflight.pages.model import Page

# Bounds of "small": one segment, and the ten segments of an initial window (RFC 6928).
ONE_SEGMENT_BYTES = 1_400
INITIAL_WINDOW_BYTES = 14_600


@dataclass(frozen=True, slots=True)
class PageDescription:
    """A page in numbers.

    Attributes:
        requests: Number of resources.
        hosts: Number of host names.
        origins: Number of origins (scheme, host, port).
        wire_bytes: Response headers and bodies, bytes.
        request_bytes: Requests, bytes.
        depth: Resources on the longest initiator chain, the document included.
        chain: URLs of the initiator chain that carries most bytes, document first.
        chain_bytes: Response bytes on that chain.
        kinds: Resources of each kind.
        blocking: Resources that the load event waits for.
        missing: References that no recording answers.
        recorded: Initiators that the recording tells, by itself or by what its bodies refer to.
        inferred: Initiators that a rule of the importer decided.
        one_segment_share: Share of responses (header and body) of at most 1,400 bytes.
        initial_window_share: Share of responses of at most 14,600 bytes.
    """

    requests: int
    hosts: int
    origins: int
    wire_bytes: int
    request_bytes: int
    depth: int
    chain: tuple[str, ...]
    chain_bytes: int
    kinds: dict[str, int]
    blocking: int
    missing: int
    recorded: int
    inferred: int
    one_segment_share: float
    initial_window_share: float


def describe(page: Page) -> PageDescription:
    """Counts, sizes and chains of `page`."""
    resources = page.resources
    sizes = [resource.wire_bytes for resource in resources]
    chain = _heaviest_chain(page)
    return PageDescription(
        requests=len(resources),
        hosts=len({urlsplit(resource.url).hostname for resource in resources}),
        origins=len(page.origins),
        wire_bytes=sum(sizes),
        request_bytes=sum(resource.request_bytes for resource in resources),
        depth=max(_depths(page)),
        chain=tuple(resources[index].url for index in chain),
        chain_bytes=sum(sizes[index] for index in chain),
        kinds=dict(Counter(resource.kind for resource in resources).most_common()),
        blocking=sum(resource.blocks_load for resource in resources),
        missing=len(page.missing),
        recorded=sum(r.initiator is not None and not r.initiator.inferred for r in resources),
        inferred=sum(r.initiator is not None and r.initiator.inferred for r in resources),
        one_segment_share=sum(size <= ONE_SEGMENT_BYTES for size in sizes) / len(sizes),
        initial_window_share=sum(size <= INITIAL_WINDOW_BYTES for size in sizes) / len(sizes),
    )


def _depths(page: Page) -> list[int]:
    depths: list[int] = []
    for resource in page.resources:
        depths.append(depths[resource.initiator.resource] + 1 if resource.initiator else 1)
    return depths


def _heaviest_chain(page: Page) -> list[int]:
    totals: list[int] = []
    for resource in page.resources:
        before = totals[resource.initiator.resource] if resource.initiator else 0
        totals.append(before + resource.wire_bytes)
    index = max(range(len(totals)), key=totals.__getitem__)
    chain = [index]
    while (initiator := page.resources[chain[-1]].initiator) is not None:
        chain.append(initiator.resource)
    return chain[::-1]
