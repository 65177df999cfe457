"""The page model, as Python sees it: a mirror of `crates/page/src/model.rs`.

Rust is the one validator: a `Page` comes from JSON that `_core.check_page` has accepted, and goes back
through it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from firstflight import _core
from firstflight.errors import PageInputError
from firstflight.pages.description import PageDescription, describe

FORMAT = "firstflight-profile/1"

Kind = Literal["document", "frame", "style", "script", "font", "xhr", "image", "other"]
Via = Literal["parser", "style", "script", "redirect"]


@dataclass(frozen=True, slots=True)
class Initiator:
    """Who discovers a resource, and when.

    Attributes:
        resource: Index of the discovering resource.
        via: How it is discovered.
        at_byte: With `via` = `parser`: bytes of the initiator's body that must have arrived, on the wire.
        after: Index of a resource that has to be done with, too, before the request: a script that holds the
            parser; None if there is none.
        delay_ms: Time that passes between discovery, or `after`, and request, ms.
        inferred: Whether a rule of the importer decided, not the recording.
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
        """Scheme, host and, where it is not the scheme's own, port."""
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
    """A reference that no recording answers: listed, never requested."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class Host:
    """How far a host was when the page was recorded; 0 where it was not recorded. Times in ms."""

    host: str
    rtt_ms: float = 0.0
    lookup_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Page:
    """Everything one navigation loads. Made by `Page.from_json` or `Page.from_fields`.

    Attributes:
        name: Short name, used in tables and file names.
        resources: What is loaded; the first is the document, a resource comes after its initiator.
        source: Where the page comes from.
        missing: References seen in the page that no recording answers.
        hosts: What the recording tells of the way to hosts.
    """

    name: str
    resources: tuple[Resource, ...]
    source: str = ""
    missing: tuple[Missing, ...] = ()
    hosts: tuple[Host, ...] = ()
    format: str = field(default=FORMAT)

    @classmethod
    def from_json(cls, text: str, *, place: str = "profile") -> Page:
        """Reads a profile.

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
        return cls(resources=resources, missing=missing, hosts=hosts, **fields)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], *, place: str = "page") -> Page:
        """Makes a page from a profile's keys and values, checked as `from_json` does."""
        return cls.from_json(json.dumps({"format": FORMAT, **fields}), place=place)

    def to_json(self) -> str:
        """The page as a profile: canonical JSON text with a final newline."""
        try:
            return _core.check_page(json.dumps(asdict(self)))
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

    def describe(self) -> PageDescription:
        """What the page is like: counts, sizes, chains."""
        return describe(self)


def _resource(entry: dict[str, Any]) -> Resource:
    initiator = entry.pop("initiator", None)
    return Resource(initiator=Initiator(**initiator) if initiator else None, **entry)
