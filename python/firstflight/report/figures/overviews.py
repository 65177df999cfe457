"""The figures that show all of a run: those of the report, which its script draws: no library is needed."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.analysis import words
from firstflight.analysis.summary import Evidence
from firstflight.report.figures.critical_path import critical_paths
from firstflight.report.figures.curves import improvement_by_rate, improvement_by_rtt, plt_by_rtt
from firstflight.report.figures.distribution import plt_distribution
from firstflight.report.figures.theme import Spec

CRITICAL_PATH = "critical-path"
"""Name of the figure that shows what page load times were spent on."""


def overviews(evidence: Evidence) -> Iterator[tuple[str, Spec]]:
    """Name and Vega-Lite document of each that this run has.

    Args:
        evidence: The cell pairs, their summary, and the explanations of those that can be explained.
    """
    cells = evidence.summary["cells"]
    compared = words.proved([cell for cell in cells if cell["n"]])
    loaded = [cell for cell in cells if cell["baseline_ms"]["median"] or cell["treatment_ms"]["median"]]
    limited = [cell for cell in compared if cell["down_mbps"] is not None]
    if compared:
        yield "improvement-by-rtt", improvement_by_rtt(compared)
    if len({cell["down_mbps"] for cell in limited}) > 1:
        yield "improvement-by-rate", improvement_by_rate(limited)
    if loaded:
        yield "plt-by-rtt", plt_by_rtt(loaded)
    if any(cell["n"] for cell in cells):
        yield "plt-distribution", plt_distribution(evidence.pairs, cells)
    if evidence.explanations:
        yield CRITICAL_PATH, critical_paths(evidence.explanations)
