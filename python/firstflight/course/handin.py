"""The files to hand in for the course: ``output-figures/`` and ``NAME_p3.zip``, from a results folder alone.

A figure is like that of the course's ``plot.py``, for the loads nearest the medians. Names, title, axes and
colours are the original's. Every request is a bar from its start to its end, in order of the ends, separately
for each side. So a bar and the one behind it are not the same request.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from firstflight.analysis import SIDES, CellPair, cell_pairs, summarize_pairs, words
from firstflight.analysis.critical_path.explanation import median_load
from firstflight.analysis.critical_path.stages import started_ms, times
from firstflight.analysis.records import Cell, Side
from firstflight.course.observations import observations, sanitize_file
from firstflight.deferred import altair as alt
from firstflight.deferred import vl_convert
from firstflight.errors import UsageError
from firstflight.model.treatment import FAST_OPEN, PLAIN
from firstflight.results import Journal, LoadRecord, journal_path, write_whole

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DAY = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip archive can store, so that the same results give the same archive."""


def course_zip_path(folder: Path, name: str) -> Path:
    """The path of the archive of that name.

    Raises:
        UsageError: The name is not valid for a file, or the file exists already.
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
        folder: The results folder with its report, whose ``analysis.md`` is read.
        name: The name of the student.
        progress: Called with a short description of what is made next.

    Returns:
        The files written, the archive last.

    Raises:
        UsageError: The name is invalid, no cell has a result, or the folder cannot be written to.
    """
    path = course_zip_path(folder, name)
    pairs = cell_pairs(Journal(journal_path(folder)).records())
    summary = summarize_pairs(pairs)
    table = observations(summary)
    if not table:
        raise UsageError(
            f"course-zip: {folder}: no page has a pair of loads with proof",
            f"run both modes (--mode {PLAIN},{FAST_OPEN}); the warnings of the report say what failed",
        )
    figures = draw_course_figures(folder, pairs, summary["cells"], progress)
    pages = write_whole(folder / f"{name}.pages", _pages(summary["cells"]).encode())
    table_file = write_whole(folder / "observations.txt", table.encode())
    return [
        *figures,
        pages,
        write_whole(path, _zip(folder, [table_file, folder / "analysis.md", pages, *figures])),
    ]


def _pages(cells: list[Cell]) -> str:
    """The URLs that were loaded, one per line, in the form of the course."""
    return "".join(f"{url}\n" for url in dict.fromkeys(cell["url"] for cell in cells if cell["url"]))


def _zip(folder: Path, files: list[Path]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DAY)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()


FOLDER = "output-figures"
"""Name of the folder in a results folder."""

_LONGEST_NAME = 150
_LEGEND = {"treatment": ("TFO Enabled", "red", 0.5), "baseline": ("TFO Disabled", "green", 1.0)}
"""Label, colour and width of a side; the bars in front are thin, so that those behind are visible."""


def draw_course_figures(
    folder: Path,
    pairs: Sequence[CellPair],
    cells: Sequence[Cell],
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Draws ``output-figures/timing-<page>-<RTT>.png`` for every cell that has a result.

    Args:
        folder: The results folder.
        pairs: Its cell pairs.
        cells: Their entries in the summary, in the same order.
        progress: Called with the name of each figure before it is drawn.

    Returns:
        The files.

    Raises:
        UsageError: The folder cannot be written to.
    """
    paths = []
    for name, pair, page in _named(pairs, cells):
        if progress:
            progress(f"figure {name}")
        png = vl_convert.vegalite_to_png(timing(pair, page).to_json(), scale=2)
        paths.append(write_whole(folder / FOLDER / f"{name}.png", png))
    return paths


def timing(pair: CellPair, page: str) -> alt.Chart:
    """The figure of a cell pair.

    Args:
        pair: The cell pair, with at least one paired block.
        page: The page's name in the original.
    """
    bars = [bar for side in SIDES for bar in _bars(side, median_load(pair.loads(side)))]
    names, colors, _ = zip(*_LEGEND.values(), strict=True)
    color = alt.Color("mode:N", sort=None).scale(domain=list(names), range=list(colors))
    chart = (
        alt.Chart(alt.InlineData(bars))
        .mark_rect()
        .encode(
            x=alt.X("start:Q", title="Time (ms)"),
            x2="end:Q",
            y=alt.Y("low:Q", title="Request Index"),
            y2="high:Q",
            color=color.legend(orient="bottom-right", title=None, fillColor="white", strokeColor="black"),
        )
    )
    heading = f"TFO Timing Breakdown: {words.short_url(page, 60)} at {words.rtt(pair.key.rtt_ms)} ms RTT"
    title = alt.TitleParams(heading, subtitle=words.caption_lines(pair.setting))
    figure: alt.Chart = chart.properties(width=500, height=370, title=title, background="white", padding=12)
    return figure


def course_page(cell: Cell) -> str:
    """A page's name in the original's figures: its sanitised URL without the scheme."""
    name = sanitize_file(cell["url"] or cell["page"])
    return name.removeprefix("https" if (cell["url"] or "").startswith("https:") else "http")


def _named(pairs: Sequence[CellPair], cells: Sequence[Cell]) -> Iterator[tuple[str, CellPair, str]]:
    """Distinct file names without suffix: sanitising may give several URLs the same name."""
    taken: set[str] = set()
    varying = words.varying(cells)
    for pair, cell in zip(pairs, cells, strict=True):
        if cell["n"] and cell["proof"]["ok"] and words.is_of_fast_open(cell):
            page = course_page(cell)
            parts = ["timing", page[:_LONGEST_NAME], words.rtt(cell["rtt_ms"])]
            name = base = "-".join([*parts, *words.variant(cell, varying).split()])
            number = 1
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
            yield name, pair, page


def _bars(side: Side, load: LoadRecord) -> list[dict[str, object]]:
    ended = [(row["end_ms"], row) for row in load["requests"] if row["end_ms"] is not None and times(row)]
    name, _, height = _LEGEND[side]
    return [
        {
            "mode": name,
            "start": started_ms(row),
            "end": float(end_ms),
            "low": index + 0.5 - height / 2,
            "high": index + 0.5 + height / 2,
        }
        for index, (end_ms, row) in enumerate(sorted(ended, key=itemgetter(0)))
    ]
