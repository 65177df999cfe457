"""Archives without times become pages: what WARC, WACZ and Mahimahi recordings have in common."""

from __future__ import annotations

from collections import Counter

from firstflight.pages.archives.assemble import assemble, check_count
from firstflight.pages.archives.entry import Entry
from firstflight.pages.archives.untimed import discover_untimed
from firstflight.pages.loaded import LoadedPage
from firstflight.pages.times import Times


def still_page(entries: list[Entry], start: int, source: str, notes: Counter[str]) -> LoadedPage:
    """The page that begins with `entries[start]`; its server, processing and waiting times are zero.

    Raises:
        PageInputError: The page cannot be loaded.
    """
    check_count(len(entries), source)
    ordered = discover_untimed(entries, start)
    notes["answers that the page does not ask for"] += ordered.left_out
    found = len(ordered.entries)
    times = Times([0.0] * found, [0.0] * found, [0.0] * found, [True] * found)
    return assemble(ordered.entries, ordered.discovered, times, ordered.missing, source=source, notes=notes)
