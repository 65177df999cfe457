"""Mirror directories: a folder per host, as the course's `fetch.py` and `wget -m` make them.

Beside the directory `Paper` may stand `Paper.fetchlog/`, the browser's log of each page; then the page is
what the browser asked for. Without it the page is what the files refer to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.pages.archives.urls import normal_url
from firstflight.pages.crawl import crawl
from firstflight.pages.discovery import discover
from firstflight.pages.exchanges import Exchange, exchanges_of_log
from firstflight.pages.fetchlog import FetchLog, read_fetchlog
from firstflight.pages.loaded import LoadedPage
from firstflight.pages.mentions import collect_mentions
from firstflight.pages.mirror_bodies import MirrorBodies, unspoken_charset
from firstflight.pages.mirror_files import MirrorFiles
from firstflight.pages.mirror_start import start_hint, start_url
from firstflight.pages.pages_list import shorten
from firstflight.pages.recording import Recording, page_of
from firstflight.pages.sizes import TYPICAL_HEADER, Sizes, request_sizes
from firstflight.pages.times import derive_times

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def open_mirror(root: Path, url: str = "") -> LoadedPage:
    """Reads the page at `url` from the mirror directory `root`, with its bodies as served: not encoded.

    Without `url`, the page that `mirror_start.start_url` finds.

    Raises:
        PageInputError: The mirror has no such page, or its log is damaged.
    """
    if not url:
        root, url = start_url(root)
    try:
        recording, files = _read(root, url)
        exchanges = [_as_served(e, logged=recording.log is not None) for e in recording.exchanges]
        served = replace(recording, exchanges=exchanges)
        page = page_of(served, _identity_sizes(served), name=page_name(url), source=f"mirror {root.name}")
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror or error}"
        raise PageInputError(problem, "check the mirror's files and their permissions") from None
    mirror = MirrorBodies(root)
    bodies = {index: mirror.serve(e.file, e.mime) for index, e in enumerate(exchanges) if e.file}
    spare = mirror.spare(files, {e.url for e in exchanges})
    return LoadedPage(page, bodies, _notes(recording), spare=spare)


def read_recording(root: Path, url: str) -> Recording:
    """Reads the page at `url` from `root`: by the browser's log if there is one, else by its references."""
    return _read(root, url)[0]


def _read(root: Path, url: str) -> tuple[Recording, MirrorFiles]:
    log_path = root.with_name(f"{root.name}.fetchlog") / log_name(url)
    log = read_fetchlog(log_path) if log_path.is_file() else None
    files = MirrorFiles(root, log.renames if log else None)
    if log is not None:
        return _by_log(files, log), files
    path = files.find(url)
    if path is None:
        raise PageInputError(f"{root}: no file for the start page {shorten(url)}", start_hint(root))
    return crawl(files, normal_url(url), path), files


def log_name(url: str) -> str:
    """The name that the course's `sanitize_file` gives the log of `url`."""
    return "".join(c for c in url if c.isascii() and (c.isalnum() or c in "-_.() "))


def page_name(url: str) -> str:
    """A short name for the page at `url`: host and path in the letters that names may have."""
    plain = _NAME.sub("-", re.sub(r"^https?://", "", url)).strip("-")
    return plain[:100].rstrip("-") or "page"


def _as_served(exchange: Exchange, *, logged: bool) -> Exchange:
    """A file is served whole, and its type with the charset: that of the log, or what its bytes show."""
    if exchange.file is None:
        return exchange
    charset = exchange.charset if logged else unspoken_charset(exchange)
    mime = f"{exchange.mime}; charset={charset}" if exchange.mime and charset else exchange.mime
    return replace(exchange, mime=mime, status=200 if exchange.status == 304 else exchange.status)


def _by_log(files: MirrorFiles, log: FetchLog) -> Recording:
    exchanges = exchanges_of_log(log, files)
    mentions = collect_mentions(exchanges, files)
    discovery = discover(exchanges, mentions, files)
    return Recording(exchanges, discovery, derive_times(exchanges, discovery, log), log, len(mentions.cached))


def _identity_sizes(recording: Recording) -> Sizes:
    total = recording.log.stats.get("tcp.write_bytes", 0) if recording.log else 0
    return Sizes(
        request_sizes([exchange.url for exchange in recording.exchanges], total),
        [TYPICAL_HEADER] * len(recording.exchanges),
        [exchange.body_bytes for exchange in recording.exchanges],
    )


def _notes(recording: Recording) -> list[str]:
    exchanges, initiators = recording.exchanges, recording.discovery.initiators
    counts = {
        "answers 'Not Modified', whose files are served in full": sum(
            e.status == 304 and e.file is not None for e in exchanges
        ),
        "answers without a file, served empty": sum(
            e.file is None and e.status == 200 and not e.redirect for e in exchanges
        ),
        "files from the browser's cache, left out": recording.cached,
        "references without an answer, listed and not requested": len(recording.discovery.missing),
        "initiators inferred from times or from names in scripts": sum(
            bool(i and i.inferred) for i in initiators
        ),
    }
    return [f"{text}: {count}" for text, count in counts.items() if count]
