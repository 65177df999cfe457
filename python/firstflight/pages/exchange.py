"""One recorded request with its response, for every kind of archive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from firstflight.model.page import Headers, Kind
from firstflight.pages.bodies import scannable
from firstflight.pages.fields import value_of

HTML = ("text/html", "application/xhtml+xml")
_DATA = ("application/json", "text/json", "text/plain", "text/xml", "application/xml")
_WITHOUT_CONTENT = (204, 205)
TextKind = Literal["html", "style", "script", "data"]
# DevTools' resource types, WebPageTest's request types, and Fetch's destinations (`Sec-Fetch-Dest`).
_KINDS: dict[str, Kind] = {
    "document": "frame",
    "iframe": "frame",
    "frame": "frame",
    "stylesheet": "style",
    "style": "style",
    "script": "script",
    "font": "font",
    "image": "image",
    "xhr": "xhr",
    "fetch": "xhr",
    "preflight": "xhr",
    "empty": "xhr",
    "media": "other",
    "video": "other",
    "audio": "other",
    "track": "other",
    "ping": "other",
    "beacon": "other",
    "manifest": "other",
    "texttrack": "other",
    "object": "other",
    "embed": "other",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of a request, ms since the page began, and durations, ms.

    Attributes:
        start_ms: When the browser queued it.
        first_byte_ms: When the first byte of its response came.
        end_ms: When the last byte of its response came.
        wait_ms: From the request sent to the first byte of the response; `None`: not recorded.
        handshake_ms: Duration of the TCP handshake, one round trip; `None`: no connection was opened.
        lookup_ms: Duration of the lookup of the host's name; `None`: there was none.
        held_ms: How long the browser held it back although it needed no connection that others had. This is
            so if it used a connection of HTTP/2 or HTTP/3, or was the first to look its host up. Else 0: a
            request that needs a connection waits for that.
        cpu_ms: Main-thread time that the recording attributes to it; `None`: not recorded.
        tls_ms: Duration of the TLS handshake; `None`: there was none.
    """

    start_ms: float
    first_byte_ms: float
    end_ms: float
    wait_ms: float | None = None
    handshake_ms: float | None = None
    lookup_ms: float | None = None
    held_ms: float = 0.0
    cpu_ms: float | None = None
    tls_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """The recorded initiator of an exchange.

    Attributes:
        type: DevTools' type: `parser`, `script`, `preload`, `other`...; may be empty.
        urls: The initiator's URL; for a script, all files of its call stack, the innermost first.
    """

    type: str = ""
    urls: tuple[str, ...] = ()


HttpVersion = Literal["", "1.0", "1.1", "2", "3"]
Priority = Literal["", "VeryHigh", "High", "Medium", "Low", "VeryLow"]


@dataclass(frozen=True, slots=True)
class Carried:
    """The recorded connection of an exchange. An empty value is not recorded.

    Attributes:
        http: Version of HTTP.
        connection: A name of the connection; all its exchanges have the same one.
        tls: Version of TLS, such as `1.3`, for QUIC that of its handshake; empty also without TLS.
        certified: Names in the server's certificate, some with a wildcard.
        certificate_bytes: Length of the server's certificates; 0: not recorded.
        address: The server's IP address.
    """

    http: HttpVersion = ""
    connection: str = ""
    tls: str = ""
    certified: tuple[str, ...] = ()
    certificate_bytes: int = 0
    address: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response. Sizes in bytes on the wire.

    Attributes:
        url: Absolute URL without fragment.
        method: Request method, in capitals.
        status: HTTP status, 200 to 599.
        mime: MIME type without parameters, may be empty.
        charset: The character encoding that the response declared with the type, if a mirror's log has it.
        request_bytes: Request line, fields and body.
        header_bytes: Status line and fields of the response.
        body_bytes: Body of the response, as encoded.
        headers: Fields of the response that a server may send again, as recorded.
        redirect: Absolute URL that a redirect leads to, or empty.
        referer: The request's `Referer`, or empty.
        kind: The kind that the recording gives; `None`: it gives none.
        body: The body as it is to be served.
        text: The decoded body, if it can refer to other resources; in a mirror, any body.
        timing: Its times; `None`: the recording has none.
        stated: The recorded initiator.
        cached: Whether it came from the browser's cache or from a service worker.
        carried: The recorded connection.
        priority: The browser's first priority, in DevTools' words.
        render_blocking: Whether the browser painted nothing before it; `None`: not recorded.
    """

    url: str
    method: str = "GET"
    status: int = 200
    mime: str = ""
    charset: str = ""
    request_bytes: int = 0
    header_bytes: int = 0
    body_bytes: int = 0
    headers: Headers = ()
    redirect: str = ""
    referer: str = ""
    kind: Kind | None = None
    body: Path | None = None
    text: Path | None = None
    timing: Timing | None = None
    stated: Stated = Stated()
    cached: bool = False
    carried: Carried = Carried()
    priority: Priority = ""
    render_blocking: bool | None = None

    @property
    def host(self) -> str:
        """Host name, lower case, as URLs write it."""
        name = urlsplit(self.url).hostname or ""
        return f"[{name}]" if ":" in name else name

    @property
    def is_html(self) -> bool:
        """Whether browsers read it as HTML."""
        return self.mime in HTML and self.has_content

    @property
    def is_script(self) -> bool:
        """Whether browsers execute it."""
        return self.has_content and (self.kind or kind_of_mime(self.mime, self.url)) == "script"

    @property
    def is_style(self) -> bool:
        """Whether it is a style sheet."""
        return self.has_content and (self.kind == "style" or self.mime == "text/css")

    @property
    def has_content(self) -> bool:
        """Whether the browser had content after it: no redirect, no 204. After a 304 it had its copy."""
        return not self.redirect and self.status not in _WITHOUT_CONTENT

    @property
    def clock(self) -> Timing:
        """Its times; all zero if none are recorded."""
        return self.timing or Timing(0.0, 0.0, 0.0)

    @property
    def start_ms(self) -> float:
        """When the browser queued it, ms; 0 if no times are recorded."""
        return self.timing.start_ms if self.timing else 0.0

    @property
    def end_ms(self) -> float:
        """When the last byte of its response came, ms; 0 if no times are recorded."""
        return self.timing.end_ms if self.timing else 0.0

    @property
    def text_as(self) -> TextKind | None:
        """How its text is scanned; `None` if it has none, or one that refers to nothing."""
        if self.text is None:
            return None
        if self.is_style or self.mime == "text/css":
            return "style"
        if kind_of_mime(self.mime, self.url) == "script":
            return "script"
        if self.mime in _DATA:
            return "data"
        return "html" if self.mime in HTML else None

    @property
    def text_bytes(self) -> int:
        """Length of its text; 0 if it has none."""
        return self.text.stat().st_size if self.text else 0

    def read(self) -> bytes:
        """Its text; empty if it has none, or one that is too long to be scanned."""
        return scannable(self.text) if self.text else b""


def needs_text(mime: str, url: str) -> bool:
    """Whether a body of this type can refer to other resources."""
    return (
        mime in HTML
        or mime.endswith(("xml", "json"))
        or kind_of_mime(mime, url) in ("script", "style", "xhr")
    )


def recorded_kind(words: Iterable[str], fields: list[tuple[str, str]], mime: str) -> Kind | None:
    """The kind according to `words` or the request's `fields`; `None` if they do not give it.

    A navigation is recognised by its `Accept`: only there browsers list `text/html` first.
    """
    for word in (*words, value_of(fields, "sec-fetch-dest")):
        if word.lower() in _KINDS:
            return _KINDS[word.lower()]
    navigates = value_of(fields, "accept").startswith("text/html")
    return "frame" if mime in HTML and navigates else None


def browser_kind(words: Iterable[str], fields: list[tuple[str, str]], mime: str) -> Kind | None:
    """As `recorded_kind`, for requests that certainly a browser made: HTML that it fetched is data."""
    if (found := recorded_kind(words, fields, mime)) is not None:
        return found
    return "xhr" if mime in HTML and value_of(fields, "accept") else None


def _is_script_mime(mime: str) -> bool:
    """Whether browsers execute `mime`."""
    return mime.endswith(("javascript", "ecmascript"))


def kind_of_mime(mime: str, url: str) -> Kind:
    """The kind of a resource of which only the type is known."""
    if _is_script_mime(mime) or (mime == "application/json" and "callback=" in url):
        return "script"
    if mime == "text/css":
        return "style"
    if mime.startswith("image/"):
        return "image"
    if "font" in mime or urlsplit(url).path.endswith((".woff", ".woff2", ".ttf", ".otf", ".eot")):
        return "font"
    if mime == "text/html" or mime in _DATA:
        return "xhr"
    return "other"


def quiet_ms(exchanges: list[Exchange], after_ms: float, before_ms: float) -> float:
    """Time between two moments without an active exchange that a request may wait for, ms.

    A request may wait for scripts, data, style sheets and documents that ended in between. It did not wait
    for one that was still arriving at `before_ms`. No request waits for images.
    """
    within = sorted(
        (max(exchange.start_ms, after_ms), exchange.end_ms)
        for exchange in exchanges
        if after_ms < exchange.end_ms <= before_ms and exchange.text_as is not None
    )
    quiet, at = 0.0, after_ms
    for start, end in within:
        quiet += max(start - at, 0.0)
        at = max(at, end)
    return quiet + max(before_ms - at, 0.0)
