"""A page in Python, and the parts of it that an experiment needs: a mirror of `crates/page/src/model.rs`.

Only Rust validates pages: a `Page` is made from JSON that `_core.check_page` accepted, and is written through
it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from firstflight import _core
from firstflight.errors import PageInputError

FORMAT = "firstflight-profile/1"

Kind = Literal["document", "frame", "style", "script", "font", "xhr", "image", "other"]
Via = Literal["parser", "style", "script", "redirect"]
Headers: TypeAlias = tuple[tuple[str, str], ...]
# Limits of "small": one segment, and the ten segments of an initial window (RFC 6928).
ONE_SEGMENT_BYTES = 1_400
INITIAL_WINDOW_BYTES = 14_600
LONGEST_MS = 600_000.0
"""As in `crates/page/src/validate.rs`."""


@dataclass(frozen=True, slots=True)
class Initiator:
    """How a resource is discovered, and when.

    Attributes:
        resource: Index of the discovering resource.
        via: The way of its discovery.
        at_byte: With `via` = `parser`: bytes of the initiator's body, on the wire, that must have arrived.
        after: Index of another resource that must be finished before the request, such as a script that
            blocks the parser; `None`: there is none.
        delay_ms: Time between discovery, or the end of `after`, and request, ms.
        inferred: Whether a rule of the importer chose the initiator, not the recording.
    """

    resource: int
    via: Via
    at_byte: int = 0
    after: int | None = None
    delay_ms: float = 0.0
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """One request and its response. Sizes in bytes on the wire, times in ms."""

    url: str
    kind: Kind
    mime: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    method: str = "GET"
    status: int = 200
    server_ms: float = 0.0
    cpu_ms: float = 0.0
    blocks_load: bool = True
    initiator: Initiator | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and, if it is not the default, port."""
        parts = urlsplit(self.url)
        default = 443 if parts.scheme == "https" else 80
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = "" if parts.port in (None, default) else f":{parts.port}"
        return f"{parts.scheme}://{host}{port}"

    @property
    def wire_bytes(self) -> int:
        """Response header and body."""
        return self.header_bytes + self.body_bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """A reference that no recorded response answers: it is listed, but never requested."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class Host:
    """What the recording shows of a host. Times in ms; 0: not recorded.

    Attributes:
        host: Its name.
        rtt_ms: Round-trip time.
        lookup_ms: Time to look its name up.
        http: Version of HTTP over TLS; `None`: not recorded.
        tls_trips: Round trips of a full TLS handshake: 2 or 1.
        verify_ms: Time of the handshake in addition to its round trips.
        carrier: The host whose connection of HTTP/2 carried its requests too; `None`: it had its own.
    """

    host: str
    rtt_ms: float = 0.0
    lookup_ms: float = 0.0
    http: Literal["1.1", "2"] | None = None
    tls_trips: int = 0
    verify_ms: float = 0.0
    carrier: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """The access link of a recording: its own round-trip time (ms) and rates (bit/s)."""

    rtt_ms: float
    down_bps: int
    up_bps: int


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that one navigation loads. `Page.from_json` and `Page.from_fields` make pages.

    Attributes:
        name: Short name, used in tables and file names.
        resources: The page's resources. The first is the document; each comes after its initiator.
        source: Where the page comes from.
        missing: References in the page without a recorded response.
        hosts: What the recording shows of each host: RTT, name lookup, HTTP version, TLS.
        link: The access link over which the page was recorded, if known.
    """

    name: str
    resources: tuple[Resource, ...]
    source: str = ""
    missing: tuple[Missing, ...] = ()
    hosts: tuple[Host, ...] = ()
    link: Link | None = None
    format: str = field(default=FORMAT)

    @classmethod
    def from_json(cls, text: str, *, place: str = "profile") -> Page:
        """Makes a page from the JSON text of a profile.

        Args:
            text: The profile's JSON.
            place: Named in errors, e.g. the file.

        Raises:
            PageInputError: The text is not a page that can be loaded.
        """
        try:
            fields = json.loads(_core.check_page(text))
        except _core.PageError as error:
            raise PageInputError(f"{place}: {error.at}: {error.problem}", error.hint) from None
        resources = tuple(_resource(entry) for entry in fields.pop("resources"))
        missing = tuple(Missing(**entry) for entry in fields.pop("missing", ()))
        hosts = tuple(Host(**entry) for entry in fields.pop("hosts", ()))
        link = Link(**written) if (written := fields.pop("link", None)) else None
        return cls(resources=resources, missing=missing, hosts=hosts, link=link, **fields)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], *, place: str = "page") -> Page:
        """Makes a page from a profile's keys and values, checked as `from_json` does."""
        return cls.from_json(json.dumps({"format": FORMAT, **fields}), place=place)

    def checked(self, *, place: str = "page") -> Page:
        """Checks the page as `from_json` does, and returns it.

        Raises:
            PageInputError: It cannot be loaded; the message names `place`.
        """
        return Page.from_json(json.dumps(self, default=_members), place=place)

    def to_json(self) -> str:
        """The page as a profile: canonical JSON text with a final newline."""
        try:
            return _core.check_page(json.dumps(self, default=_members))
        except _core.PageError as error:
            raise PageInputError(f"page {self.name}: {error.at}: {error.problem}", error.hint) from None

    @property
    def url(self) -> str:
        """The document's URL."""
        return self.resources[0].url

    @property
    def origins(self) -> tuple[str, ...]:
        """The page's origins in order of first use."""
        return tuple(dict.fromkeys(resource.origin for resource in self.resources))

    @property
    def is_secure(self) -> bool:
        """Whether any origin uses TLS."""
        return any(origin.startswith("https:") for origin in self.origins)

    @property
    def tells_http(self) -> bool:
        """Whether the recording names the HTTP version of an https host, or the page has no https host."""
        return not self.is_secure or any(host.http for host in self.hosts)

    def describe(self) -> PageDescription:
        """Counts, sizes and chains of the page."""
        return describe(self)


def _members(record: object) -> dict[str, Any]:
    """A dataclass for `json.dumps`, which calls this again for nested ones, so that nothing is copied."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}  # type: ignore[attr-defined]


def _resource(entry: dict[str, Any]) -> Resource:
    initiator = entry.pop("initiator", None)
    return Resource(initiator=Initiator(**initiator) if initiator else None, **entry)


@dataclass(frozen=True, slots=True)
class Spare:
    """A recorded response that is not part of the page: the browser had it cached, or did not need it."""

    url: str
    mime: str
    file: Path


@dataclass(frozen=True, slots=True)
class LoadedPage:
    """A page, ready for an experiment.

    Attributes:
        page: The page.
        bodies: File with the body of each resource, by the resource's index; empty for a profile.
        notes: What the reader decided or left out, one line each.
        headers: Recorded header fields that the server sends again, by the resource's index. Fields of the
            connection and the framing are left out, except `Transfer-Encoding: chunked`. `Content-Encoding`
            is there only if `bodies` has the body in that coding.
        spare: Recorded responses that are not part of the page, for clients that choose their own requests.
        multiplexed: Share of requests that were recorded over HTTP/2 or HTTP/3; 0 if the version is unknown.
    """

    page: Page
    bodies: dict[int, Path] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    headers: dict[int, Headers] = field(default_factory=dict)
    spare: tuple[Spare, ...] = ()
    multiplexed: float = 0.0


def strip(page: Page) -> Page:
    """The profile of an archive's page.

    A `Page` has no content: the content of an archive is in `LoadedPage.bodies`. Without them the bodies are
    synthesised, so the profile is the same page under its own name, checked again.
    """
    return Page.from_json(page.to_json(), place=page.name)


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
        recorded: Initiators that the recording has itself, or that its bodies show.
        inferred: Initiators that a rule of the importer chose.
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


def paced(page: Page, *, server_time: bool = True, processing: float = 1.0) -> Page:
    """`page` with changed times.

    Args:
        page: The page as recorded.
        server_time: Whether servers and the main thread take time; pauses (`delay_ms`) are kept in any case.
        processing: Factor on the main thread's time (`cpu_ms`) and on pauses.
    """
    if server_time and processing == 1:
        return page

    def at_pace(resource: Resource) -> Resource:
        by = resource.initiator
        return replace(
            resource,
            server_ms=resource.server_ms * server_time,
            cpu_ms=min(LONGEST_MS, resource.cpu_ms * processing * server_time),
            initiator=by and replace(by, delay_ms=min(LONGEST_MS, by.delay_ms * processing)),
        )

    return replace(page, resources=tuple(map(at_pace, page.resources))).checked()
