"""What `firstflight record` writes beside the WARC: a HAR of each page, with initiators and times.

An entry of the HAR names its answer in the WARC (`_warcRecordId`), which has bodies, fields and sizes.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from firstflight.errors import PageInputError
from firstflight.pages.archives.assemble import check_count
from firstflight.pages.archives.budget import Budget
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.har_entry import Dropped, read_entry
from firstflight.pages.archives.har_fields import Node, moment_ms, node, nodes, positive, text
from firstflight.pages.archives.har_file import MOST_BYTES
from firstflight.pages.archives.store import BodyStore


@dataclass(frozen=True, slots=True)
class Timed:
    """A page of the archive with its times.

    Attributes:
        entries: In order of their start.
        on_load_ms: The load event after the page began; None if there was none.
    """

    entries: list[Entry]
    on_load_ms: float | None


def read_timed(
    archive: zipfile.ZipFile,
    place: str,
    member: str,
    answers: Mapping[str, Entry],
    *,
    store: BodyStore,
    notes: Counter[str],
) -> Timed:
    """Reads the HAR `member` of a WACZ.

    Args:
        archive: The WACZ.
        place: The WACZ, named in errors.
        member: The HAR's name in it.
        answers: What the WARC holds, by record.
        store: That of the archive.
        notes: Counts what is left out, by reason.

    Raises:
        PageInputError: The HAR is damaged, too long, or names no answer.
    """
    log = _log(archive, place, member, store.budget)
    pages = nodes(log, "pages")
    page: Node = pages[0] if pages else {}
    check_count(len(nodes(log, "entries")), f"{place}: {member}")
    began = moment_ms(page, "startedDateTime") or 0.0
    entries: list[Entry] = []
    for raw in nodes(log, "entries"):
        answer, told = answers.get(text(raw, "_warcRecordId")), read_entry(raw, began, store)
        if answer is None or isinstance(told, Dropped):
            notes["requests whose answer the archive does not hold"] += 1
        else:
            entries.append(_both(answer, told))
    if not entries:
        raise PageInputError(f"{place}: {member}: none of its answers is in the archive", "record it again")
    entries.sort(key=lambda entry: entry.clock.start_ms)
    return Timed(entries, positive(node(page, "pageTimings"), "onLoad"))


def _both(answer: Entry, told: Entry) -> Entry:
    """The answer with what the browser told of it; of a redirect's body only the length is recorded."""
    known = replace(answer, timing=told.timing, stated=told.stated, kind=told.kind or answer.kind)
    if answer.body_bytes or not told.body_bytes or not answer.redirect:
        return known
    return replace(known, body=None, text=None, body_bytes=told.body_bytes)


def _log(archive: zipfile.ZipFile, place: str, member: str, budget: Budget) -> Node:
    with archive.open(member) as file:
        data = file.read(MOST_BYTES + 1)
    budget.spend(len(data))
    try:
        document = json.loads(data) if len(data) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise PageInputError(f"{place}: {member} is no HAR", "record the pages again")
    return node(document, "log")
