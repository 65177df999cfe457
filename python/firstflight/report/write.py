"""Everything a report consists of, from a results folder alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from firstflight.analysis import cell_pairs, write_summary
from firstflight.analysis.explanation import explain
from firstflight.analysis.questions import Evidence, answers
from firstflight.report.answers import render_answers
from firstflight.report.course import observations
from firstflight.report.script import script
from firstflight.results import Journal, journal_path, write_tables, write_whole
from firstflight.results.profiles import read_profile

MOST_EXPLAINED = 48
"""With more cells than this nobody looks at critical paths one by one: the figure is left out."""


def write_report(
    folder: Path, *, figures: bool = True, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Write tables, ``summary.json``, ``observations.txt``, ``analysis.md``, figures and ``report.html``.

    Args:
        folder: The results folder; its journal, plan and environment are read.
        figures: Whether to draw figures; the page then has none.
        progress: Told, in a few words, what is made next.

    Returns:
        The files written, in the order they were made.

    Raises:
        UsageError: The folder has no readable journal or no load, or cannot be written to.
    """
    say = progress or (lambda _: None)
    say("tables")
    with ThreadPoolExecutor(max_workers=1) as pool:
        code = pool.submit(script) if figures else None
        journal = Journal(journal_path(folder))
        records = journal.records()
        pairs = cell_pairs(records)
        summary = write_summary(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)
        paths = [*write_tables(folder, records), folder / "summary.json"]
        paths.append(write_whole(folder / "observations.txt", observations(summary).encode()))
        explanations = explain(pairs, partial(read_profile, folder)) if len(pairs) <= MOST_EXPLAINED else []
        evidence = Evidence(pairs, summary, explanations)
        paths.append(write_whole(folder / "analysis.md", render_answers(answers(evidence)).encode()))
        drawn = _draw(folder, evidence, progress) if figures else []
        say("page")
        page = _page(folder, evidence, drawn, code.result() if code else "")
    return [*paths, *drawn, write_whole(folder / "report.html", page.encode())]


def _draw(folder: Path, evidence: Evidence, progress: Callable[[str], None] | None) -> list[Path]:
    from firstflight.report.figures import draw_figures  # noqa: PLC0415 (altair takes a second)

    return draw_figures(folder, evidence.pairs, evidence.summary, progress, evidence.explanations)


def _page(folder: Path, evidence: Evidence, drawn: Sequence[Path], code: str) -> str:
    from firstflight.report.html import render_html  # noqa: PLC0415 (altair takes a second)

    return render_html(folder, evidence, [path for path in drawn if path.suffix == ".svg"], code)
