"""The driver's job and its result: JSON, so that the driver can run in a laboratory."""

from dataclasses import asdict, dataclass, field

from firstflight.deferred import pydantic


@dataclass(frozen=True)
class DriveJob:
    """A page load that the driver is to make.

    Attributes:
        url: The page.
        browser: Path of the browser.
        preload: Library that adds TFO to the browser's connections.
        hosts: Every host that the page was recorded with; no other name resolves. `None`: all names do.
        clear_hosts: Hosts that are requested without TLS, whatever the browser's HSTS list says.
        favicon: Whether the page has a favicon; if not, the browser does not request one.
        expected: URLs that the page is known to request. The driver stops waiting once all have ended.
        start_ms: Limit for the browser's start, ms.
        timeout_ms: Limit for the load, ms.
        quiet_ms: After the load event, the page is done when no request was active for this time, ms.
        authority: Certificate of the laboratory's authority; `None`: the page is loaded without TLS.
        post_quantum: Whether TLS offers the key share X25519MLKEM768.
        clock_ms: The time that the page sees at its start, ms since 1970. `None`: time and random numbers are
            not changed.
        sandbox: Whether the browser must have its own sandbox; if it must and cannot, the load fails.
        har: File for a HAR of the load; `None`: none is written.
        screenshot: File for a screenshot of the page; `None`: none is written.
        quic: Whether https origins are requested over QUIC from the first request on.
        early_data: Whether safe requests are sent as early data of a resumed session.
        tls12: Whether TLS 1.2 is the newest version.
        partitions: Whether connections and tickets of different sites are kept apart.
        rtt_ms: Round-trip time of the path, ms.
        visits: URLs that are requested before the load, to give the browser TLS tickets.
        flags: Further command-line flags of the browser.
    """

    url: str
    browser: str
    preload: str
    hosts: list[str] | None
    clear_hosts: list[str]
    favicon: bool = False
    expected: list[str] = field(default_factory=list)
    start_ms: int = 60_000
    timeout_ms: int = 120_000
    quiet_ms: int = 1_000
    authority: str | None = None
    post_quantum: bool = True
    clock_ms: float | None = None
    sandbox: bool = True
    har: str | None = None
    screenshot: str | None = None
    quic: bool = False
    early_data: bool = False
    tls12: bool = False
    partitions: bool = True
    rtt_ms: float = 0.0
    visits: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """The JSON form that the driver takes."""
        return asdict(self)


BLOCKED = "inspector"
"""The error of a request that DevTools stopped because the driver asked it to."""


@dataclass
class Fetch:
    """One request as the browser saw it. Times are ms after navigation start; `None`: did not happen.

    Attributes:
        asked_how: DevTools' type of the initiator: `parser`, `script`, `preload`, `other`...
        asked_by: Files of the initiator's call stack, innermost first; for markup, the document.
        posted: The request's body, in base64 pieces.
    """

    url: str
    method: str
    kind: str
    queued_ms: float
    connect_start_ms: float | None = None
    tls_start_ms: float | None = None
    connect_end_ms: float | None = None
    sent_ms: float | None = None
    first_byte_ms: float | None = None
    end_ms: float | None = None
    status: int | None = None
    mime: str | None = None
    protocol: str | None = None
    body_bytes: int | None = None
    wire_bytes: int | None = None
    initiator: str | None = None
    asked_how: str = ""
    asked_by: list[str] = field(default_factory=list)
    posted: list[str] = field(default_factory=list)
    socket: int | None = None
    cached: bool = False
    error: str | None = None


@dataclass
class Drive:
    """What came of a load; the laboratory reads `started_ns`, `plt_ms`, `first_byte_ms` and `error`.

    Attributes:
        started_ns: Navigation start, monotonic clock, ns.
        plt_ms: Navigation start to load event, ms.
        first_byte_ms: First byte of the document, ms after navigation start.
        marks: Further moments of the page, ms after navigation start: `dom_content_loaded_ms`,
            `first_paint_ms`, `first_contentful_paint_ms`, `lcp_ms`.
        fetches: Every request, in the order of being asked for.
        browser: The browser's version.
        sandboxed: Whether the browser has its own sandbox.
        error: Why the load failed.
        broken: The browser itself failed: it died, hung, or could not be started.
    """

    started_ns: int | None = None
    plt_ms: float | None = None
    first_byte_ms: float | None = None
    marks: dict[str, float | None] = field(default_factory=dict)
    fetches: list[Fetch] = field(default_factory=list)
    browser: str = ""
    sandboxed: bool = False
    error: str | None = None
    broken: bool = False

    def to_json(self) -> dict[str, object]:
        """The form in which the driver answers."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: object) -> "Drive":
        """The inverse of `to_json`. What it does not know is left out: a hostile browser may have written it.

        Raises:
            ValueError: A value is of another type, or missing.
        """
        return pydantic.TypeAdapter(cls).validate_python(document)
