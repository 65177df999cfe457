"""Makes recordings in the laboratory and reads them back with warcio, a reader that is not our own."""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from program import COMMAND
from synth_site import program as installed
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from firstflight.engines.exec import ExecRecord, Surroundings, run_inside
from firstflight.model.path import Path as Route
from firstflight.model.path import Queue
from firstflight.pages import LoadedPage, load_page, under


@dataclass(frozen=True)
class Answer:
    """One recorded answer; `body` in its content coding."""

    method: str
    url: str
    status: int
    mime: str
    coding: str
    body: bytes


@dataclass(frozen=True)
class Recording:
    """What `firstflight record` printed (`said`) and wrote (`file`), and the record of its laboratory."""

    file: Path
    said: dict[str, Any]
    ledger: ExecRecord

    def answers(self) -> list[Answer]:
        """Every answer in the archive."""
        with zipfile.ZipFile(self.file) as archive, archive.open("archive/data.warc.gz") as warc:
            methods: dict[str, str] = {}
            found = []
            for record in ArchiveIterator(warc):
                fields = record.rec_headers
                if record.rec_type == "response":
                    http = record.http_headers
                    found.append(
                        (
                            fields.get_header("WARC-Record-ID"),
                            fields.get_header("WARC-Target-URI"),
                            int(http.get_statuscode()),
                            http.get_header("Content-Type", ""),
                            http.get_header("Content-Encoding", ""),
                            _plain(record.raw_stream.read(), http.get_header("Transfer-Encoding", "")),
                        )
                    )
                elif record.rec_type == "request":
                    methods[fields.get_header("WARC-Concurrent-To")] = record.http_headers.protocol
        return [Answer(methods[name], *rest) for name, *rest in found]

    def gist(self) -> list[tuple[str, str, int, str, str, int, str]]:
        """The properties in which two recordings of the same page must agree."""
        return sorted(
            (a.method, a.url, a.status, a.mime, a.coding, len(a.body), hashlib.sha256(a.body).hexdigest())
            for a in self.answers()
        )


def record(pages: Sequence[LoadedPage], urls: Sequence[str], file: Path, scheme: str = "http") -> Recording:
    """Records `urls` in a laboratory that serves `pages`."""
    installed("chromium")
    served = [under(scheme, page) for page in pages]
    route = Route("access", 10.0, None, None, Queue(packets=1000), 0.0)
    said = file.with_suffix(".json")
    words = [*COMMAND, "record", *urls, "-o", str(file), "--json", "--retries", "0"]
    script = f'exec "$@" > {said}'
    ledger = run_inside(
        Surroundings(route, "tcp", "warm", True, 1, scheme, served), ["sh", "-c", script, "sh", *words]
    )
    return Recording(file, json.loads(said.read_text()), ledger)


def again(first: Recording, urls: list[str], scheme: str = "http") -> Recording:
    """Makes a second recording, of the pages that the laboratory serves from the first one."""
    return record(load_page(str(first.file)), urls, first.file.with_name("again.wacz"), scheme)


def _plain(body: bytes, coding: str) -> bytes:
    """The body without chunked transfer coding."""
    if coding != "chunked":
        return body
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return whole
