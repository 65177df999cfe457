"""One recorded request and its response, whatever kind of archive it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from firstflight.pages.exchanges import Exchange, kind_of_mime
from firstflight.pages.loaded import Headers
from firstflight.pages.model import Kind

HTML = ("text/html", "application/xhtml+xml")
_WITHOUT_CONTENT = (204, 205)


@dataclass(frozen=True, slots=True)
class Timing:
    """When a request was made and answered, in ms since the page began.

    Attributes:
        start_ms: When the browser asked for it.
        first_byte_ms: When its first byte came.
        end_ms: When its last byte came.
        wait_ms: From the request sent to the first byte of the answer; None where not recorded.
        handshake_ms: What the TCP handshake took: a round trip; None where no connection was opened.
        lookup_ms: What the lookup of the host's name took; None where there was none.
        held_ms: How long it waited for its turn although it needed no connection of its own: it went over one
            of HTTP/2 or HTTP/3 that others opened. Else 0: whoever needs a connection waits for that.
        cpu_ms: Main-thread time that the recording attributes to it; None where it does not.
    """

    start_ms: float
    first_byte_ms: float
    end_ms: float
    wait_ms: float | None = None
    handshake_ms: float | None = None
    lookup_ms: float | None = None
    held_ms: float = 0.0
    cpu_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """What the recording says of an entry's initiator.

    Attributes:
        type: In DevTools' words: `parser`, `script`, `preload`, `other`...; may be empty.
        urls: Who asked; of a script's call stack all files, the innermost first.
    """

    type: str = ""
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and its response. Sizes in bytes on the wire.

    Attributes:
        url: Absolute URL without fragment.
        method: Request method, in capitals.
        status: HTTP status, 200 to 599.
        mime: MIME type without parameters, may be empty.
        request_bytes: Request line, fields and body.
        header_bytes: Status line and fields of the response.
        body_bytes: Body of the response, as encoded.
        headers: Fields of the response that a server may repeat, as recorded.
        redirect: Absolute URL that a redirect leads to, or empty.
        referer: What the request's `Referer` says, or empty.
        kind: What the browser took it for, where the recording says.
        body: The body as it is to be served.
        text: The body decoded, of entries that can refer to others.
        timing: None where the archive has no times.
        stated: What the recording says of its initiator.
        cached: Whether it came from the browser's cache or from a service worker.
    """

    url: str
    method: str
    status: int
    mime: str
    request_bytes: int
    header_bytes: int
    body_bytes: int
    headers: Headers = ()
    redirect: str = ""
    referer: str = ""
    kind: Kind | None = None
    body: Path | None = None
    text: Path | None = None
    timing: Timing | None = None
    stated: Stated = Stated()
    cached: bool = False

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
        """Whether the browser had content after it: no redirect, no 204. After a 304, what it had before."""
        return not self.redirect and self.status not in _WITHOUT_CONTENT

    @property
    def clock(self) -> Timing:
        """Its times; all zero where there are none."""
        return self.timing or Timing(0.0, 0.0, 0.0)

    def exchange(self) -> Exchange:
        """What the scanners of the mirror importer need of it."""
        clock = self.clock
        mime = "text/css" if self.is_style else self.mime
        return Exchange(self.url, clock.start_ms, clock.end_ms, self.status, mime, self.redirect, self.text)


def needs_text(mime: str, url: str) -> bool:
    """Whether a body of this type can refer to other resources."""
    return (
        mime in HTML
        or mime.endswith(("xml", "json"))
        or kind_of_mime(mime, url) in ("script", "style", "xhr")
    )
