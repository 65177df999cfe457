"""A WACZ (version 1.1.1) of recorded pages, written beside its place and moved there whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, cast

from firstflight.errors import UsageError
from firstflight.record.cdxj import cdxj
from firstflight.record.har import har_of, iso_time
from firstflight.record.visit import Visit
from firstflight.record.warc import Indexed, Warc
from firstflight.results.files import whole

_WARC = "data.warc.gz"


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
    index = cdxj([answer for page in indexed for answer in page], _WARC)
    package.put("indexes/index.cdx.gz", gzip.compress(index, mtime=0))
    lines: list[dict[str, Any]] = [{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}]
    for number, (visit, answers) in enumerate(zip(visits, indexed, strict=True), start=1):
        lines.append(_write_page(package, str(number), visit, answers))
    package.put("pages/pages.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    package.close(visits[0])


def _write_warc(package: _Package, visits: Sequence[Visit]) -> list[list[Indexed]]:
    with package.member(f"archive/{_WARC}") as file:
        warc = Warc(file)
        warc.add_info("{name} {version}".format(**software()))
        return [[warc.add(pair, visit.epoch_ms) for pair in visit.pairs] for visit in visits]


def _write_page(package: _Package, name: str, visit: Visit, answers: list[Indexed]) -> dict[str, Any]:
    pairs = zip(visit.pairs, [answer.record for answer in answers], strict=True)
    har = har_of(pairs, visit.drive, url=visit.url, epoch_ms=visit.epoch_ms, creator=software())
    package.put(f"har/{name}.har", json.dumps(har, separators=(",", ":")).encode())
    page: dict[str, Any] = {
        "id": name,
        "url": visit.url,
        "ts": iso_time(visit.epoch_ms + visit.began_ms),
        "size": sum(pair.exchange.body_bytes for pair in visit.pairs),
        "har": f"har/{name}.har",
    }
    if visit.screenshot.is_file():
        page["screenshot"] = f"screenshots/{name}.png"
        package.put(page["screenshot"], visit.screenshot.read_bytes())
    return page


class _Package:
    """The files in a WACZ, with their hashes."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._resources: list[dict[str, Any]] = []

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
