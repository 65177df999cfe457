"""A WACZ (version 1.1.1) of recorded pages, written to a temporary file and renamed when it is complete.

Its index by URL is CDXJ (pywb's format): players look answers up in it, a line each, sorted.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, cast
from urllib.parse import unquote_to_bytes, urlsplit

from firstflight.errors import UsageError
from firstflight.pages.record.browse import Visit
from firstflight.pages.record.har import har_of, iso_time
from firstflight.pages.record.warc import Indexed, Warc
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
        UsageError: The place cannot be written to.
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


def _write_warc(package: _Package, visits: Sequence[Visit]) -> list[list[Indexed]]:
    with package.member(f"archive/{_WARC}") as file:
        warc = Warc(file)
        warc.add_info("{name} {version}".format(**software()))
        return [[warc.add(pair, visit.epoch_ms) for pair in visit.pairs] for visit in visits]


def _write_page(package: _Package, name: str, visit: Visit, answers: list[Indexed]) -> dict[str, object]:
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
        """Adds a file; what is not compressed already is."""
        with self.member(path, stored=path.endswith((".gz", ".png"))) as file:
            file.write(content)

    @contextmanager
    def member(self, path: str, *, stored: bool = True) -> Iterator[IO[bytes]]:
        """Adds a file piece by piece. Players jump into what is `stored`."""
        info = zipfile.ZipInfo(path, datetime.now(UTC).timetuple()[:6])
        info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with self._archive.open(info, "w", force_zip64=True) as inner:
            file = _Hashed(inner)
            yield cast("IO[bytes]", file)
        name, digest = path.rpartition("/")[2], f"sha256:{file.digest.hexdigest()}"
        self._resources.append({"name": name, "path": path, "hash": digest, "bytes": file.tell()})

    def close(self, first: Visit) -> None:
        """Adds the list of all files."""
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
    """A file that is only written, with its length and its hash."""

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
        """Nothing waits here."""


def _cdxj(answers: Iterable[Indexed], warc: str) -> bytes:
    """The index of `answers`, which stand in the file `warc`."""
    return "".join(sorted(_line(answer, warc) for answer in answers)).encode()


def surt(url: str) -> str:
    """The URL as a key to sort by, as pywb makes it: in Sort-friendly URI Reordering Transform.

    Host reversed, without `www.`; escapes undone where they can be; no slash at the end; parameters in order,
    without the identifiers of sessions; all in lower case. pywb takes the package `surt`, whose rules are
    those of the Wayback Machine and of Google's Safe Browsing API.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", re.sub(r"\.{2,}", ".", parts.hostname or "").strip("."))
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    path, query = _path(_unescaped(parts.path)), _query(_unescaped(parts.query))
    return f"{','.join(reversed(host.split('.')))}{port}){path}{'?' * bool(query)}{query}".lower()


def _unescaped(text: str) -> str:
    """`text` with only those escapes that it needs."""
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return "".join(chr(c) if 0x20 < c < 0x7F and c not in b"#%" else f"%{c:02x}" for c in data)


def _path(path: str) -> str:
    """`path` without empty and dotted segments, slash at its end, and session of ASP.NET."""
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
    # By name, then by value: a name may go on with a character that comes before '='.
    return "&".join(
        "=".join(pair) for pair in sorted(part.split("=", 1) for part in query.lower().split("&"))
    )


def _line(answer: Indexed, warc: str) -> str:
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
    # Players look for other methods under a key of their own (pywb's append_post_query).
    key = surt(answer.url if answer.method == "GET" else _with_method(answer.url, answer.method))
    return f"{key} {stamp} {json.dumps(fields)}\n"


def _with_method(url: str, method: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}__wb_method={method}"
