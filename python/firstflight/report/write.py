"""Everything a report consists of, from a results folder alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from firstflight.analysis import CellPair, cell_pairs, write_summary
from firstflight.analysis.explanation import Explanation, explain
from firstflight.analysis.questions import Evidence, answers
from firstflight.report.answers import render_answers
from firstflight.report.course import observations
from firstflight.report.script import script
from firstflight.results import Journal, LoadRecord, journal_path, write_whole
from firstflight.results.profiles import read_profile
from firstflight.results.tables import write_tables

MOST_EXPLAINED = 48
"""With more cells than this nobody looks at critical paths one by one: the figure is left out."""


@dataclass(frozen=True)
class Measured:
    """What a results folder holds, read once: what the table shows, and the report is made from.

    Attributes:
        folder: The results folder.
        records: Its loads.
        pairs: Their cell pairs.
        summary: As ``summary.json`` has it.
    """

    folder: Path
    records: Sequence[LoadRecord]
    pairs: Sequence[CellPair]
    summary: dict[str, Any]

    @cached_property
    def explanations(self) -> list[Explanation]:
        """Of the pairs that can be explained.

        Raises:
            UsageError: A page's profile cannot be read.
        """
        return explain(self.pairs, partial(read_profile, self.folder))


def read_measured(folder: Path) -> Measured:
    """Reads a results folder, and writes its ``summary.json``.

    Raises:
        UsageError: The folder has no readable journal or no load, or cannot be written to.
    """
    journal = Journal(journal_path(folder))
    records = journal.records()
    pairs = cell_pairs(records)
    summary = write_summary(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)
    return Measured(folder, records, pairs, summary)


def write_report(
    measured: Measured, *, figures: bool = True, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Write tables, ``observations.txt``, ``analysis.md``, figures and ``report.html``.

    Args:
        measured: What was measured; its folder's plan and environment are read too.
        figures: Whether to draw figures; the page then has none.
        progress: Told, in a few words, what is made next.

    Returns:
        The files written, ``summary.json`` among them, in the order they were made.

    Raises:
        UsageError: The folder cannot be written to, or a page's profile cannot be read.
    """
    say = progress or (lambda _: None)
    folder, pairs, summary = measured.folder, measured.pairs, measured.summary
    say("tables")
    with ThreadPoolExecutor(max_workers=1) as pool:
        code = pool.submit(script) if figures else None
        paths = [*write_tables(folder, measured.records), folder / "summary.json"]
        paths.append(write_whole(folder / "observations.txt", observations(summary).encode()))
        explanations = measured.explanations if len(pairs) <= MOST_EXPLAINED else []
        evidence = Evidence(pairs, summary, explanations)
        paths.append(write_whole(folder / "analysis.md", render_answers(answers(evidence)).encode()))
        drawn = _draw(folder, evidence, progress) if figures else []
        say("page")
        page = _page(folder, evidence, drawn, code.result() if code else "")
    return [*paths, *drawn, write_whole(folder / "report.html", page.encode())]


def _draw(folder: Path, evidence: Evidence, progress: Callable[[str], None] | None) -> list[Path]:
    from firstflight.report.figures.draw import draw_figures  # noqa: PLC0415 (altair takes a second)

    return draw_figures(folder, evidence.pairs, evidence.summary, progress, evidence.explanations)


def _page(folder: Path, evidence: Evidence, drawn: Sequence[Path], code: str) -> str:
    from firstflight.report.html import render_html  # noqa: PLC0415 (altair takes a second)

    return render_html(folder, evidence, [path for path in drawn if path.suffix == ".svg"], code)
