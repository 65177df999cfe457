"""Checks the inference of initiators from times: hides recorded initiators, infers them, and compares.

    python tests/validation/inference_check.py FOLDER

It uses the HARs of each folder in which at least 30 % of the initiators are recorded. It prints how many of
these the rules 4 and 5 of `pages.discovery` find, which need neither recorded initiators nor bodies. It also
prints the longest chains of both.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from firstflight.errors import PageInputError
from firstflight.model.page import Initiator
from firstflight.pages.discovery import discover_recorded
from firstflight.pages.exchange import Stated
from firstflight.pages.mentions import Mentions, RecordedFiles
from firstflight.pages.readers.har import entries_of_har

_LEAST_RECORDED = 0.3


def main() -> int:
    """Prints one Markdown row per folder."""
    parser = argparse.ArgumentParser(description="Compare inferred with recorded initiators.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.stdout.write(
        "| recordings | HARs | initiators | found again | longest chain, recorded | inferred |\n"
    )
    sys.stdout.write("|---|---|---|---|---|---|\n")
    for group in sorted({path.parent for path in folder.rglob("*.har")}):
        results = [result for path in sorted(group.glob("*.har")) if (result := compare(path))]
        if results:
            sums = [sum(column) for column in zip(*results, strict=True)]
            known, found, recorded, inferred = sums
            chains = f"{recorded / len(results):.1f} | {inferred / len(results):.1f}"
            row = f"| {group.name} | {len(results)} | {known:,} | {found / known:.0%} | {chains} |\n"
            sys.stdout.write(row)
    return 0


def compare(path: Path) -> tuple[int, int, int, int] | None:
    """Counts for one HAR: recorded initiators, those inferred correctly, longest chain of each kind.

    `None` if too few initiators are recorded.
    """
    try:
        entries, _ = entries_of_har(path, Counter())
    except PageInputError:
        return None
    plain = [replace(entry, text=None) for entry in entries]
    hidden = [replace(entry, stated=Stated()) for entry in plain]
    files = RecordedFiles(plain)
    truth = discover_recorded(plain, Mentions(), files).initiators
    guess = discover_recorded(hidden, Mentions(), files).initiators
    known = [
        (said, found)
        for said, found in zip(truth, guess, strict=True)
        if said and found and not said.inferred and said.via != "redirect"
    ]
    if len(known) < _LEAST_RECORDED * len(entries):
        return None
    same = sum(said.resource == found.resource for said, found in known)
    return len(known), same, longest(truth), longest(guess)


def longest(initiators: list[Initiator | None]) -> int:
    """The number of requests on the longest chain of initiators."""
    depths: list[int] = []
    for initiator in initiators:
        depths.append(depths[initiator.resource] + 1 if initiator else 1)
    return max(depths)


if __name__ == "__main__":
    sys.exit(main())
