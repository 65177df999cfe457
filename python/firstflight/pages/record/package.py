"""A WACZ (version 1.1.1) of recorded pages, written to a temporary file and renamed when it is complete.

Its index by URL is CDXJ (pywb's format): sorted lines, one per response, in which players look URLs up.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote_to_bytes, urlsplit

from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from firstflight.errors import UsageError
from firstflight.pages.record.browse import Visit
from firstflight.pages.record.har import har_of, iso_time
from firstflight.pages.record.wire import Head, Pair, WireExchange
from firstflight.results.files import whole

_WARC = "data.warc.gz"
_PORTS = {"http": 80, "https": 443}
_SESSIONS = [
    re.compile(rf"^{parameter}(?:&(.*))?$", re.IGNORECASE)
    for parameter in (
        "(.*?)jsessionid=[0-9a-z]{32}",
        "(.*?)phpsessid=[0-9a-z]{32}",
        "(.*?)sid=[0-9a-z]{32}",
        "(.*?)aspsessionid[a-z]{8}=[a-z]{24}",
        "(.*)cfid=[^&]+&cftoken=[^&]+",
    )
]
_SESSION_IN_PATH = re.compile(
    r"/\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)/(?=[^?]+\.aspx)", re.IGNORECASE
)


def write_wacz(path: Path, visits: Sequence[Visit]) -> None:
    """Writes the pages to `path`.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
            _fill(_Package(archive), visits)
    except OSError as error:
        problem = f"{path}: cannot be written: {error.strerror or error}"
        raise UsageError(problem, "name a file in a folder that exists, is yours and has room") from error


def software() -> dict[str, str]:
    """Name and version of this program."""
    return {"name": "firstflight", "version": version("firstflight")}


def _fill(package: _Package, visits: Sequence[Visit]) -> None:
    indexed = _write_warc(package, visits)
    index = _cdxj([answer for page in indexed for answer in page], _WARC)
    package.put("indexes/index.cdx.gz", gzip.compress(index, mtime=0))
    lines: list[dict[str, object]] = [{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}]
    for number, (visit, answers) in enumerate(zip(visits, indexed, strict=True), start=1):
        lines.append(_write_page(package, str(number), visit, answers))
    package.put("pages/pages.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    package.close(visits[0])


def _write_warc(package: _Package, visits: Sequence[Visit]) -> list[list[_Indexed]]:
    with package.member(f"archive/{_WARC}") as file:
        warc = _Warc(file)
        warc.add_info("{name} {version}".format(**software()))
        return [[warc.add(pair, visit.epoch_ms) for pair in visit.pairs] for visit in visits]


def _write_page(package: _Package, name: str, visit: Visit, answers: list[_Indexed]) -> dict[str, object]:
    pairs = zip(visit.pairs, [answer.record for answer in answers], strict=True)
    har = har_of(pairs, visit.drive, url=visit.url, epoch_ms=visit.epoch_ms, creator=software())
    package.put(f"har/{name}.har", json.dumps(har, separators=(",", ":")).encode())
    page: dict[str, object] = {
        "id": name,
        "url": visit.url,
        "ts": iso_time(visit.epoch_ms + visit.began_ms),
        "size": sum(pair.exchange.body_bytes for pair in visit.pairs),
        "har": f"har/{name}.har",
    }
    if visit.screenshot.is_file():
        page["screenshot"] = picture = f"screenshots/{name}.png"
        package.put(picture, visit.screenshot.read_bytes())
    return page


class _Package:
    """The files in a WACZ, with their hashes."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._resources: list[dict[str, object]] = []

    def put(self, path: str, content: bytes) -> None:
        """Adds a file, compressed unless its content is compressed already."""
        with self.member(path, stored=path.endswith((".gz", ".png"))) as file:
            file.write(content)

    @contextmanager
    def member(self, path: str, *, stored: bool = True) -> Iterator[IO[bytes]]:
        """Adds a file piece by piece. Players need random access to files that are `stored`."""
        info = zipfile.ZipInfo(path, datetime.now(UTC).timetuple()[:6])
        info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=True) as inner:
            file = _Hashed(inner)
            yield cast("IO[bytes]", file)
        name, digest = path.rpartition("/")[2], f"sha256:{file.digest.hexdigest()}"
        self._resources.append({"name": name, "path": path, "hash": digest, "bytes": file.tell()})

    def close(self, first: Visit) -> None:
        """Adds the list of all files, and closes the package."""
        package = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "software": "{name} {version}".format(**software()),
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "mainPageUrl": first.url,
            "mainPageDate": iso_time(first.epoch_ms + first.began_ms),
            "resources": self._resources,
        }
        content = json.dumps(package, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}
        self.put("datapackage.json", content)
        self.put("datapackage-digest.json", json.dumps(digest).encode())


class _Hashed:
    """A write-only file that computes its length and hash."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._bytes = 0
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._bytes += len(data)
        self.digest.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        """Does nothing: there is no buffer."""


@dataclass(frozen=True, slots=True)
class _Indexed:
    """The position of a response in the WARC.

    Attributes:
        url: The requested URL.
        date: ISO 8601.
        record: Its `WARC-Record-ID`.
        digest: Digest of its payload.
        offset: First byte of its gzip member.
        length: Bytes of its gzip member.
    """

    url: str
    method: str
    date: str
    mime: str
    status: int
    record: str
    digest: str
    offset: int
    length: int


class _RawFields(StatusAndHeaders):  # type: ignore[misc]
    """Header fields as received: warcio would rewrite characters other than ASCII."""

    def to_ascii_bytes(self, filter_func: Any = None) -> bytes:  # noqa: ANN401
        """The header with one byte per character."""
        found: bytes = self.to_bytes(filter_func, "latin-1")
        return found


class _Warc:
    """Writes one WARC (ISO 28500) with warcio: a gzip member per record, so that readers have random access.

    Args:
        file: The file to write to.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer = WARCWriter(file, gzip=True, warc_version="1.1")

    def add_info(self, software: str) -> None:
        """Writes a record with the name of this program."""
        info = {"software": software, "format": "WARC File Format 1.1"}
        self._writer.write_record(self._writer.create_warcinfo_record("data.warc.gz", info))

    def add(self, pair: Pair, epoch_ms: float) -> _Indexed:
        """Writes a response and its request.

        Args:
            pair: Both; there must be a response.
            epoch_ms: Difference of ms since 1970 and the monotonic clock, ms.
        """
        exchange, posted = pair.exchange, _posted(pair)
        fields = {"WARC-Date": iso_time(epoch_ms + exchange.sent_ms)}
        if pair.fetch and pair.fetch.protocol:
            fields["WARC-Protocol"] = pair.fetch.protocol
        offset = self._file.tell()
        with _payload(exchange) as payload:
            size = exchange.body.stat().st_size if exchange.body_bytes else 0
            stated = {**fields, **_truncated(exchange)}
            answer = self._write(exchange, "response", exchange.answer, payload, size, stated)
        length = self._file.tell() - offset
        record = answer.get_header("WARC-Record-ID")
        linked = {**fields, "WARC-Concurrent-To": record}
        self._write(exchange, "request", exchange.request, BytesIO(posted), len(posted), linked)
        mime = exchange.answer.value("content-type").partition(";")[0].strip() if exchange.answer else ""
        digest = answer.get_header("WARC-Payload-Digest")
        return _Indexed(
            exchange.url,
            exchange.method,
            fields["WARC-Date"],
            mime,
            exchange.status,
            record,
            digest,
            offset,
            length,
        )

    def _write(  # noqa: PLR0917
        self,
        exchange: WireExchange,
        kind: str,
        head: Head | None,
        payload: IO[bytes],
        size: int,
        fields: dict[str, str],
    ) -> StatusAndHeaders:
        found = head or Head("", [])
        first, _, rest = found.first_line.partition(" ")
        headers = _RawFields(rest, found.fields, protocol=first)
        record = self._writer.create_warc_record(
            exchange.url, kind, payload=payload, length=size, warc_headers_dict=fields, http_headers=headers
        )
        self._writer.write_record(record)
        return record.rec_headers


def _truncated(exchange: WireExchange) -> dict[str, str]:
    if not exchange.whole:
        return {"WARC-Truncated": "disconnect"}
    return {"WARC-Truncated": "unspecified"} if exchange.location and exchange.stated_bytes else {}


def _posted(pair: Pair) -> bytes:
    pieces = pair.fetch.posted if pair.fetch else []
    return b"".join(base64.b64decode(piece) for piece in pieces)


@contextmanager
def _payload(exchange: WireExchange) -> Iterator[IO[bytes]]:
    with exchange.body.open("rb") if exchange.body_bytes else BytesIO() as file:
        yield file


def _cdxj(answers: Iterable[_Indexed], warc: str) -> bytes:
    """The CDXJ index of `answers`, which are in the file `warc`."""
    return "".join(sorted(_line(answer, warc) for answer in answers)).encode()


def surt(url: str) -> str:
    """The URL as a sort key, as pywb makes it: in Sort-friendly URI Reordering Transform.

    The host is reversed, without `www.`. Escapes are undone if possible. A slash at the end is removed.
    Parameters are sorted, and session identifiers removed. All is lower case. pywb uses the package `surt`,
    whose rules are those of the Wayback Machine and of Google's Safe Browsing API.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", re.sub(r"\.{2,}", ".", parts.hostname or "").strip("."))
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    path, query = _path(_unescaped(parts.path)), _query(_unescaped(parts.query))
    return f"{','.join(reversed(host.split('.')))}{port}){path}{'?' * bool(query)}{query}".lower()


def _unescaped(text: str) -> str:
    """`text` with only those escapes that are necessary."""
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return "".join(chr(c) if 0x20 < c < 0x7F and c not in b"#%" else f"%{c:02x}" for c in data)


def _path(path: str) -> str:
    """`path` without empty and dotted segments, final slash, and ASP.NET session."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return _SESSION_IN_PATH.sub("/", "/" + "/".join(kept))


def _query(query: str) -> str:
    for session in _SESSIONS:
        query = session.sub(lambda found: found[1] + (found[2] or ""), query)
    # Sort by name, then by value: a name may continue with a character that sorts before '='.
    return "&".join(
        "=".join(pair) for pair in sorted(part.split("=", 1) for part in query.lower().split("&"))
    )


def _line(answer: _Indexed, warc: str) -> str:
    fields = {
        "url": answer.url,
        "mime": answer.mime,
        "status": answer.status,
        "digest": answer.digest,
        "length": answer.length,
        "offset": answer.offset,
        "filename": warc,
        **({} if answer.method == "GET" else {"method": answer.method}),
    }
    stamp = re.sub(r"\D", "", answer.date)[:14]
    # Players use a different key for other methods (pywb's append_post_query).
    key = surt(answer.url if answer.method == "GET" else _with_method(answer.url, answer.method))
    return f"{key} {stamp} {json.dumps(fields)}\n"


def _with_method(url: str, method: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}__wb_method={method}"
