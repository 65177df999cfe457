"""From the entries of an archive to a page with its bodies and header fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import zip_longest
from typing import Any

from firstflight.errors import PageInputError
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.fields import without
from firstflight.pages.archives.hosts import hosts_of
from firstflight.pages.archives.timed import Discovered
from firstflight.pages.loaded import Headers, LoadedPage
from firstflight.pages.mirror import page_name
from firstflight.pages.model import Initiator, Kind, Missing, Page
from firstflight.pages.times import Times

MOST_RESOURCES = 20_000


def assemble(
    entries: list[Entry],
    discovered: Discovered,
    times: Times,
    missing: list[Missing],
    *,
    source: str,
    notes: Counter[str],
    after: Sequence[int | None] = (),
) -> LoadedPage:
    """Makes the page; `source` also names the archive in errors, `after` is as `waits.Waits` has it.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    fields = {
        "name": page_name(entries[0].url),
        "source": source,
        "resources": [
            _resource(entry, initiator, kind, times, index)
            for index, (entry, initiator, kind) in enumerate(
                zip(entries, _initiators(discovered, times, after), discovered.kinds, strict=True)
            )
        ],
        "missing": [asdict(reference) for reference in missing],
        "hosts": [asdict(host) for host in hosts_of(entries)],
    }
    page = Page.from_fields(fields, place=source)
    bodies = {index: entry.body for index, entry in enumerate(entries) if entry.body}
    headers = {index: _served(entry) for index, entry in enumerate(entries) if entry.headers}
    return LoadedPage(page, bodies, _lines(entries, discovered, missing, notes), headers)


def check_count(requests: int, place: str) -> None:
    """Raises `PageInputError` where an archive holds more requests than a page may have."""
    if requests > MOST_RESOURCES:
        problem = f"{place}: {requests} requests are too many for one page"
        raise PageInputError(problem, f"a page has at most {MOST_RESOURCES}: split the archive")


def _initiators(
    discovered: Discovered, times: Times, after: Sequence[int | None]
) -> Iterator[Initiator | None]:
    for by, delay_ms, held_by in zip_longest(discovered.initiators, times.delay_ms, after):
        yield replace(by, delay_ms=delay_ms, after=held_by) if by else None


def _resource(
    entry: Entry, initiator: Initiator | None, kind: Kind, times: Times, index: int
) -> dict[str, Any]:
    return {
        "url": entry.url,
        "method": entry.method,
        "kind": kind,
        "mime": entry.mime,
        "status": entry.status,
        "request_bytes": entry.request_bytes,
        "header_bytes": entry.header_bytes,
        "body_bytes": entry.body_bytes,
        "server_ms": times.server_ms[index],
        "cpu_ms": times.cpu_ms[index],
        "blocks_load": times.blocks_load[index],
        "initiator": asdict(initiator) if initiator else None,
    }


def _served(entry: Entry) -> Headers:
    """A body that is synthesised is in no coding."""
    return entry.headers if entry.body else without(entry.headers, "content-encoding")


def _lines(
    entries: list[Entry], discovered: Discovered, missing: list[Missing], notes: Counter[str]
) -> list[str]:
    inferred = sum(bool(by and by.inferred) for by in discovered.initiators)
    bodiless = sum(entry.body is None and entry.body_bytes > 0 for entry in entries)
    counts = [
        *((f"left out: {text}", count) for text, count in sorted(notes.items())),
        ("bodies that the archive does not hold, synthesised", bodiless),
        ("references without an answer, listed and not requested", len(missing)),
        ("initiators inferred, not recorded", inferred),
    ]
    return [f"{text}: {count}" for text, count in counts if count]
