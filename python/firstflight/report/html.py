"""``report.html``: the whole result on one page that needs no network and runs no script but its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import firstflight
from firstflight.analysis import words
from firstflight.analysis.explanation import Explanation
from firstflight.course.questions import Evidence, answers
from firstflight.published import PAPER, published_table
from firstflight.report.explained import heading, lines
from firstflight.report.figures import theme
from firstflight.report.figures.overviews import CRITICAL_PATH, overviews
from firstflight.report.figures.panel import axis, panel
from firstflight.report.figures.phases import PHASE_NAMES
from firstflight.report.glance import at_a_glance, compared
from firstflight.report.provenance import read_provenance
from firstflight.report.script import digest, script
from firstflight.report.waterfalls import waterfalls
from firstflight.visible import visible_lines

_TEMPLATE = "report.html.j2"


def render_html(folder: Path, evidence: Evidence) -> str:
    """The page.

    Args:
        folder: The results folder; ``plan.toml`` and ``environment.json`` are shown as they are.
        evidence: The cell pairs, their summary, and the explanations of those that can be explained.
    """
    cells, explanations = evidence.summary["cells"], evidence.explanations
    labels, drawn = waterfalls(evidence.pairs, cells, explanations)
    figures = dict(overviews(evidence))
    code = script() if figures or drawn else ""
    return (
        _environment()
        .get_template(_TEMPLATE)
        .render(
            compared=compared(cells),
            name=folder.resolve().name,
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version=firstflight.__version__,
            cells=cells,
            facts=at_a_glance(cells),
            sections=_sections(waterfalls=bool(drawn), explained=bool(explanations)),
            settings=_settings(cells),
            question=_question(cells),
            paper=_paper(cells),
            warnings=evidence.summary["warnings"],
            critical_path=figures.pop(CRITICAL_PATH, None),
            figures=figures,
            answers=answers(evidence),
            explained=[(found, list(lines(found))) for found in explanations],
            labels=labels,
            waterfalls=drawn,
            drawing=_drawing() if drawn else None,
            script=Markup(code),
            script_digest=digest(code),
            provenance=read_provenance(folder),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("firstflight.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.globals.update(
        words=words, theme=theme, paper_source=PAPER, heading=heading, explained_path=_path
    )
    return environment


def _sections(*, waterfalls: bool, explained: bool) -> list[tuple[str, str, bool]]:
    """Identifier and name of each part of the page, and whether this page has it."""
    return [
        ("result", "Result", True),
        ("waterfalls", "Waterfalls", waterfalls),
        ("explanation", "Why", explained),
        ("answers", "In words", True),
        ("proof", "Proof", True),
        ("calibration", "What was asked and measured", True),
        ("again", "Run it again", True),
    ]


def _seen(value: object) -> object:
    """What the template shows: text of a stranger's has nothing in it that cannot be seen."""
    return visible_lines(value) if type(value) is str else value


def _drawing() -> dict[str, Any]:
    """What the script needs to draw any waterfall."""
    return {
        "panel": panel(),
        "axis": axis(),
        "phases": list(PHASE_NAMES.values()),
        "path": "critical path",
    }


def _question(cells: Sequence[Mapping[str, Any]]) -> str:
    """What the page answers, under its title."""
    return f"How much sooner does the page load {words.treated(cells) if cells else ''}".strip() + "?"


def _settings(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Cells by path and client, as the page's tables show them."""
    settings: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        settings.setdefault(words.setting(cell), []).append(cell)
    return settings


def _path(found: Explanation) -> str:
    return words.setting(found.pair.setting)


def _paper(cells: Sequence[Mapping[str, Any]]) -> dict[tuple[str, float], float]:
    """The paper's improvements of the cells that it has, by page and RTT."""
    known = {(cell["page"], cell["rtt_ms"]) for cell in cells}
    printed = {(cell.page, cell.rtt_ms): cell.improvement for cell in published_table("paper").cells}
    return {key: improvement for key, improvement in printed.items() if key in known}
