"""What a recording holds of one request and its response, before it is known who discovered it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firstflight.pages.archives.bodies import scannable
from firstflight.pages.archives.urls import normal_url
from firstflight.pages.fetchlog import FetchLog, Response, Transaction
from firstflight.pages.mirror_files import MirrorFiles
from firstflight.pages.model import Kind

_DATA = ("application/json", "text/json", "text/plain", "text/xml", "application/xml")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response, as recorded.

    Attributes:
        url: Absolute URL without fragment.
        start_ms: When the browser asked for it; 0 without a log.
        end_ms: When its last byte had been read; 0 without a log.
        status: HTTP status.
        mime: MIME type, may be empty.
        redirect: Where a redirect leads, or empty.
        file: The recorded body, if there is one.
        charset: The character encoding that came with the type, or empty.
    """

    url: str
    start_ms: float
    end_ms: float
    status: int
    mime: str
    redirect: str
    file: Path | None
    charset: str = ""

    @property
    def host(self) -> str:
        """Host name, lower case."""
        return urlsplit(self.url).hostname or ""

    @property
    def body_bytes(self) -> int:
        """Length of the recorded body, 0 without one."""
        return self.file.stat().st_size if self.file else 0

    def read(self) -> bytes:
        """The recorded body, empty without one, or if it is too long to be scanned."""
        return scannable(self.file) if self.file else b""

    @property
    def is_html(self) -> bool:
        """Whether its body is scanned as HTML."""
        return self.file is not None and self.mime in ("text/html", "application/xhtml+xml")

    @property
    def is_css(self) -> bool:
        """Whether its body is scanned as a style sheet."""
        return self.file is not None and self.mime == "text/css"

    @property
    def is_script(self) -> bool:
        """Whether its body can be executed."""
        return self.file is not None and kind_of_mime(self.mime, self.url) == "script"

    @property
    def is_data(self) -> bool:
        """Whether its body is text that a script reads."""
        return self.file is not None and self.mime in _DATA


def is_script_mime(mime: str) -> bool:
    """Whether browsers execute `mime`."""
    return mime.endswith(("javascript", "ecmascript"))


def kind_of_mime(mime: str, url: str) -> Kind:
    """What a resource is taken for when only its type is known."""
    if is_script_mime(mime) or (mime == "application/json" and "callback=" in url):
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


def exchanges_of_log(log: FetchLog, files: MirrorFiles) -> list[Exchange]:
    """The log's transactions in order of their start, each with its response and recorded body.

    The browser saves the body at the end of redirects under the URL that it first asked for.
    """
    answers = _answers(log)
    order = sorted(range(len(log.transactions)), key=lambda index: log.transactions[index].start_ms)
    heads = {index: index for index in order}
    for index in order:
        if (target := _redirect_target(index, order, log.transactions, answers)) is not None:
            heads[target] = heads[index]
    exchanges = []
    for index in order:
        entry, answer = log.transactions[index], answers[index]
        head = log.transactions[heads[index]].url
        exchanges.append(
            Exchange(
                url=normal_url(entry.url),
                start_ms=entry.start_ms,
                end_ms=entry.end_ms,
                status=answer.status,
                mime=answer.mime.lower(),
                redirect=normal_url(answer.redirect),
                file=None if answer.redirect else files.find(head) or files.find(entry.url),
                charset=answer.charset.lower(),
            )
        )
    return exchanges


def _answers(log: FetchLog) -> list[Response]:
    """The response of each transaction: the next unused one of the same URL."""
    waiting: dict[str, list[Response]] = {}
    for response in log.responses:
        waiting.setdefault(response.url, []).append(response)
    nothing = Response(200, "", "", "", "")
    return [(waiting.get(entry.url) or [nothing]).pop(0) for entry in log.transactions]


def _redirect_target(
    index: int, order: list[int], entries: list[Transaction], answers: list[Response]
) -> int | None:
    target, end = normal_url(answers[index].redirect), entries[index].end_ms
    if not target:
        return None
    later = (other for other in order if entries[other].start_ms >= end - 1)
    return next((other for other in later if normal_url(entries[other].url) == target), None)
