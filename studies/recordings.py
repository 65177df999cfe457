"""The recordings of a folder, for studies over many pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import firstflight as ff

EVERY = ("har/**/*.har", "warc/*.warc.gz", "mahimahi/sites/*")
"""Recordings of every kind in a folder of them."""


def pages(folder: Path, patterns: Sequence[str]) -> list[ff.Page]:
    """The pages of all files that fit, without bodies, each named after its file.

    A file that cannot be read, or that holds several pages, is left out; stderr says so.
    """
    found = []
    for file in sorted(file for pattern in patterns for file in folder.glob(pattern)):
        name = str(file.relative_to(folder)).replace("/", "-")
        try:
            found.append(replace(ff.load_page(file).page, name=name))
        except ff.FirstflightError as error:
            sys.stderr.write(f"left out: {name}: {error}\n")
    return found
