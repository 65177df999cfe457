"""``report.html``: the whole result on one page that needs no network and runs no script but its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import firstflight
from firstflight.analysis import words
from firstflight.analysis.cells import SIDES
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.records import Cell, known, loads_of
from firstflight.analysis.summary import Evidence
from firstflight.course.questions import answers
from firstflight.model.treatment import MODES, phrase
from firstflight.plural import plural
from firstflight.published import PAPER, published_table
from firstflight.report.console import explanation_heading, explanation_lines
from firstflight.report.figures import theme
from firstflight.report.figures.draw import CRITICAL_PATH, overviews
from firstflight.report.figures.waterfall import PHASE_NAMES
from firstflight.report.provenance import read_provenance
from firstflight.report.script import digest, script
from firstflight.report.waterfalls import axis, panel, waterfalls
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
            explained=[(found, list(explanation_lines(found))) for found in explanations],
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
        words=words, theme=theme, paper_source=PAPER, heading=explanation_heading, explained_path=_path
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
    """What the template shows: no control characters of a recorded page."""
    return visible_lines(value) if type(value) is str else value


def _drawing() -> dict[str, object]:
    """What the script needs to draw any waterfall."""
    return {
        "panel": panel(),
        "axis": axis(),
        "phases": list(PHASE_NAMES.values()),
        "path": "critical path",
    }


def _question(cells: Sequence[Cell]) -> str:
    """What the page answers, under its title."""
    return f"How much sooner does the page load {words.treated(cells) if cells else ''}".strip() + "?"


def _settings(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by path and client, as the page's tables show them."""
    settings: dict[str, list[Cell]] = {}
    for cell in cells:
        settings.setdefault(words.setting(cell), []).append(cell)
    return settings


def _path(found: Explanation) -> str:
    return words.setting(found.pair.setting)


def _paper(cells: Sequence[Cell]) -> dict[tuple[str, float], float]:
    """The paper's improvements of the cells that it has, by page and RTT."""
    known = {(cell["page"], cell["rtt_ms"]) for cell in cells}
    printed = {(cell.page, cell.rtt_ms): cell.improvement for cell in published_table("paper").cells}
    return {key: improvement for key, improvement in printed.items() if key in known}


_MOST_NAMED = 5
"""More pages, or RTTs, than these are not named one by one."""


class Fact(NamedTuple):
    """One fact: its name, its value, and what goes with it in small print."""

    name: str
    value: str
    note: str


def at_a_glance(cells: Sequence[Cell]) -> list[Fact]:
    """The facts of a run, those first that are looked for first.

    Args:
        cells: All cells of the summary.
    """
    return [*_verdicts(cells), *_range(words.proved([cell for cell in cells if cell["n"]])), _proof(cells)]


def compared(cells: Sequence[Cell]) -> str:
    """What a run compared, in a line: pages, RTTs and treatments.

    Args:
        cells: All cells of the summary.
    """
    pages = list(dict.fromkeys(cell["page"] for cell in cells))
    rtts = [words.rtt(rtt_ms) for rtt_ms in sorted({cell["rtt_ms"] for cell in cells})]
    where = words.listed(pages) if len(pages) <= _MOST_NAMED else plural(len(pages), "page")
    far = words.listed(rtts) if len(rtts) <= _MOST_NAMED else f"{rtts[0]} to {rtts[-1]}"
    return f"{where} at {far} ms RTT, {_treatments(cells)}"


def _treatments(cells: Sequence[Cell]) -> str:
    """How sentences name those that have loads: ``without and with TFO``, ``with a and with b``."""
    made = (cell[side] for side in SIDES for cell in cells if any(loads_of(cell, side).values()))
    phrases = [phrase(name) for name in dict.fromkeys(made)]
    (how, _, what), (_, _, last) = (phrases[place].rpartition(" ") for place in (0, -1))
    is_one = len(phrases) == 2 and what == last
    return f"{how} and {phrases[-1]}" if is_one else words.listed(phrases)


def _verdicts(cells: Sequence[Cell]) -> Iterator[Fact]:
    counts = Counter(words.verdict(cell) for cell in cells)
    (verdict, count), *rest = counts.most_common()
    others = ", ".join(f"{plural(count, 'cell')}: {verdict}" for verdict, count in rest)
    yield Fact(
        "verdict",
        verdict,
        f"{count} of {plural(len(cells), 'cell')}" + (f"; {others}" if others else ""),
    )


def _range(cells: Sequence[Cell]) -> Iterator[Fact]:
    if not cells:
        return
    ordered = sorted(cells, key=lambda cell: known(cell["improvement"]["point"]))
    named = {"smallest improvement": ordered[0], "largest improvement": ordered[-1]}
    for name, cell in named.items():
        point = words.percent(cell["improvement"]["point"])
        yield Fact(name, point, f"{cell['page']} at {words.rtt(cell['rtt_ms'])} ms RTT{_compared(cell)}")


def _compared(cell: Cell) -> str:
    return "" if cell["treatment"] in ("", *MODES) else f", {cell['treatment']}"


def _proof(cells: Sequence[Cell]) -> Fact:
    accepted, connections = (
        sum(cell["proof"]["treatment"][name] for cell in cells) for name in ("accepted", "connections")
    )
    loads = words.listed(list(dict.fromkeys(cell["treatment"] for cell in cells if cell["treatment"])))
    return Fact(
        "proof",
        f"{len(words.proved(cells))} of {plural(len(cells), 'cell')}",
        f"{accepted} of {connections} connections of {loads} loads had the data of their SYN accepted",
    )
