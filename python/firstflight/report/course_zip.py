"""``NAME_p3.zip``: what the course has handed in, from a results folder alone."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from firstflight.analysis import cell_pairs, summarize_pairs
from firstflight.errors import UsageError
from firstflight.model.treatment import MODES
from firstflight.report.course import observations
from firstflight.results import Journal, journal_path, write_whole

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DAY = (1980, 1, 1, 0, 0, 0)
"""The first day that a zip archive knows: the same results give the same archive."""


def course_zip_path(folder: Path, name: str) -> Path:
    """Where the archive of that name goes.

    Raises:
        UsageError: The name cannot be a file's, or there is such a file.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"course-zip: '{name[:60]}' cannot be part of a file's name",
            "use letters, digits, dots, - and _, such as your user name",
        )
    path = folder / f"{name}_p3.zip"
    if path.exists():
        raise UsageError(f"course-zip: {path} is there already", "delete it, or take another name")
    return path


def write_course_zip(folder: Path, name: str, progress: Callable[[str], None] | None = None) -> list[Path]:
    """Writes ``output-figures/``, ``NAME.pages``, and ``NAME_p3.zip`` with them, the table and the answers.

    Args:
        folder: The results folder, its report made: ``analysis.md`` is read.
        name: Whose work it is.
        progress: Told, in a few words, what is made next.

    Returns:
        The files written, the archive last.

    Raises:
        UsageError: The name will not do, no cell has a result to show, or the folder cannot be written to.
    """
    from firstflight.report.course_figures import draw_course_figures  # noqa: PLC0415 (altair takes a second)

    path = course_zip_path(folder, name)
    pairs = cell_pairs(Journal(journal_path(folder)).records())
    summary = summarize_pairs(pairs)
    table = observations(summary)
    if not table:
        raise UsageError(
            f"course-zip: {folder}: no page has a pair of loads with proof",
            f"run both modes (--mode {','.join(MODES)}); the warnings of the report say what failed",
        )
    figures = draw_course_figures(folder, pairs, summary["cells"], progress)
    pages = write_whole(folder / f"{name}.pages", _pages(summary["cells"]).encode())
    table_file = write_whole(folder / "observations.txt", table.encode())
    return [
        *figures,
        pages,
        write_whole(path, _zip(folder, [table_file, folder / "analysis.md", pages, *figures])),
    ]


def _pages(cells: list[Mapping[str, Any]]) -> str:
    """The URLs that were loaded, one on a line, as the course lists them."""
    return "".join(f"{url}\n" for url in dict.fromkeys(cell["url"] for cell in cells if cell["url"]))


def _zip(folder: Path, files: list[Path]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DAY)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()
