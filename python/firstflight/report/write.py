"""Everything a report consists of, from a results folder alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from firstflight.analysis import words
from firstflight.analysis.summary import Measured
from firstflight.course.observations import observations
from firstflight.course.questions import answers, render_answers
from firstflight.report.html import render_html
from firstflight.results import write_whole
from firstflight.results.tables import write_tables


def write_report(measured: Measured) -> list[Path]:
    """Write tables, ``summary.json``, ``observations.txt``, ``analysis.md`` and ``report.html``.

    Args:
        measured: What was measured; its folder's plan and environment are read too.

    Returns:
        The files written, in the order they were made.

    Raises:
        UsageError: The folder cannot be written to, or a page's profile cannot be read.
    """
    folder, evidence = measured.folder, measured.evidence
    told = render_answers(answers(evidence), words.subject(measured.summary["cells"]))
    summary = json.dumps(measured.summary, indent=2, ensure_ascii=False) + "\n"
    return [
        *write_tables(folder, measured.records),
        write_whole(folder / "summary.json", summary.encode()),
        write_whole(folder / "observations.txt", observations(measured.summary).encode()),
        write_whole(folder / "analysis.md", told.encode()),
        write_whole(folder / "report.html", render_html(folder, evidence).encode()),
    ]


def write_figures(
    measured: Measured, forms: Sequence[str], progress: Callable[[str], None] | None = None
) -> list[Path]:
    """Draw every figure, the waterfalls too, into ``figures/``.

    Args:
        measured: What was measured.
        forms: Of `svg`, `png` and `pdf`.
        progress: Told what is drawn next.

    Raises:
        UsageError: The folder cannot be written to.
    """
    from firstflight.report.figures.draw import draw_figures  # noqa: PLC0415 (altair takes a second)

    return draw_figures(measured.folder, measured.evidence, forms, progress)
