"""``report.html``: the whole result on one page, which needs no network and runs only its own script.

How the run was made (machine, calibration, plan) comes from files in the results folder. The page names those
that are missing.

The script is Vega and the report's own code. `python -m firstflight.report.html` prints Vega as
``templates/vega.js``. It changes only with vl-convert, and bundling it takes a second, so reports use the
file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

import firstflight
from firstflight.analysis import words
from firstflight.analysis.cells import SIDES
from firstflight.analysis.critical_path.explanation import Explanation
from firstflight.analysis.records import Cell, known, loads_of
from firstflight.analysis.summary import Evidence
from firstflight.course.answers import answers
from firstflight.deferred import jinja2, vl_convert
from firstflight.model.treatment import FAST_OPEN, phrase
from firstflight.published import PAPER, published_table
from firstflight.report.console import explanation_heading, explanation_lines
from firstflight.report.figures import theme
from firstflight.report.figures.overviews import CRITICAL_PATH, overviews
from firstflight.report.side_by_side import beside
from firstflight.report.waterfalls import PHASE_NAMES, axis, panel, waterfalls
from firstflight.results.files import PLAN
from firstflight.text import plural, visible, visible_lines

_TEMPLATE = "report.html.j2"


def render_html(folder: Path, evidence: Evidence) -> str:
    """The HTML page.

    Args:
        folder: The results folder; its ``plan.toml`` and ``environment.json`` are shown unchanged.
        evidence: The cell pairs, their summary, and the explanations of those that can be explained.
    """
    cells, explanations = evidence.summary["cells"], evidence.explanations
    labels, drawn = waterfalls(evidence.pairs, cells, explanations)
    figures = dict(overviews(evidence))
    code = script() if figures or drawn else ""
    sides = beside(evidence.pairs, cells, explanations)
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
            sections=_sections(beside=bool(sides), waterfalls=bool(drawn), explained=bool(explanations)),
            settings=words.by_setting(cells),
            question=_question(cells),
            sides=sides,
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


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("firstflight.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.globals.update(
        words=words, theme=theme, paper_source=PAPER, heading=explanation_heading, explained_path=_path
    )
    return environment


def _sections(*, beside: bool, waterfalls: bool, explained: bool) -> list[tuple[str, str, bool]]:
    """Identifier and name of each section, and whether this page has it."""
    return [
        ("result", "Result", True),
        ("sides", "Side by side", beside),
        ("waterfalls", "Waterfalls", waterfalls),
        ("explanation", "Why", explained),
        ("answers", "In words", True),
        ("proof", "Proof", True),
        ("calibration", "What was asked and measured", True),
        ("again", "Run it again", True),
    ]


def _seen(value: object) -> object:
    """A value for the template, without control characters of recorded pages."""
    return visible_lines(value) if type(value) is str else value


def _drawing() -> dict[str, object]:
    """What the script needs to draw a waterfall."""
    return {
        "panel": panel(),
        "axis": axis(),
        "phases": list(PHASE_NAMES.values()),
        "path": "critical path",
    }


def _question(cells: Sequence[Cell]) -> str:
    """The question that the page answers, shown under its title."""
    return f"How much sooner does the page load {words.treated(cells) if cells else ''}".strip() + "?"


def _path(found: Explanation) -> str:
    return words.setting(found.pair.setting)


def _paper(cells: Sequence[Cell]) -> dict[tuple[str, float], float]:
    """The paper's improvements by page and RTT, for the Fast Open cells that it has too."""
    known = {(cell["page"], cell["rtt_ms"]) for cell in cells if words.is_of_fast_open(cell)}
    printed = {(cell.page, cell.rtt_ms): cell.improvement for cell in published_table("paper").cells}
    return {key: improvement for key, improvement in printed.items() if key in known}


_MOST_NAMED = 5
"""If there are more pages or RTTs than this, their number is shown instead of their names."""


class Fact(NamedTuple):
    """One fact: its name, its value, and a note in small print."""

    name: str
    value: str
    note: str


def at_a_glance(cells: Sequence[Cell]) -> list[Fact]:
    """The facts of a run, the most important first.

    Args:
        cells: All cells of the summary.
    """
    return [*_verdicts(cells), *_range(words.proved([cell for cell in cells if cell["n"]])), _proof(cells)]


def compared(cells: Sequence[Cell]) -> str:
    """What a run compared, on one line: pages, RTTs and treatments.

    Args:
        cells: All cells of the summary.
    """
    pages = list(dict.fromkeys(cell["page"] for cell in cells))
    rtts = [words.rtt(rtt_ms) for rtt_ms in sorted({cell["rtt_ms"] for cell in cells})]
    where = words.listed(pages) if len(pages) <= _MOST_NAMED else plural(len(pages), "page")
    far = words.listed(rtts) if len(rtts) <= _MOST_NAMED else f"{rtts[0]} to {rtts[-1]}"
    return f"{where} at {far} ms RTT, {_treatments(cells)}"


def _treatments(cells: Sequence[Cell]) -> str:
    """The treatments that have loads, in a sentence: ``without and with TFO``, ``with a and with b``."""
    made = (cell[side] for side in SIDES for cell in cells if any(loads_of(cell, side).values()))
    phrases = [phrase(name) for name in dict.fromkeys(made)]
    (how, _, what), (_, _, last) = (phrases[place].rpartition(" ") for place in (0, -1))
    is_one = len(phrases) == 2 and what == last
    return f"{how} and {phrases[-1]}" if is_one else words.listed(phrases)


def _verdicts(cells: Sequence[Cell]) -> Iterator[Fact]:
    counts = Counter(words.short_verdict(cell) for cell in cells)
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
    return "" if cell["treatment"] in ("", FAST_OPEN) else f", {cell['treatment']}"


def _proof(cells: Sequence[Cell]) -> Fact:
    accepted, early, connections = (
        sum(cell["proof"]["treatment"][name] for cell in cells)
        for name in ("accepted", "early_accepted", "connections")
    )
    loads = words.listed(list(dict.fromkeys(cell["treatment"] for cell in cells if cell["treatment"])))
    syn = f"{accepted} of {connections} connections of {loads} loads had the data of their SYN accepted"
    return Fact(
        "proof",
        f"{len(words.proved(cells))} of {plural(len(cells), 'cell')}",
        f"{syn}, {early} their early data" if early else syn,
    )


@dataclass(frozen=True)
class Grid:
    """A table: names of its columns, and rows of text."""

    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Provenance:
    """How a run was made.

    Attributes:
        environment: Names and values: kernel, CPU, versions.
        measured: The requested and the measured values of each path.
        calibration: All values of the calibration.
        plan: The contents of ``plan.toml``.
    """

    environment: list[tuple[str, str]]
    measured: Grid
    calibration: Grid
    plan: str


_MEASURED = (
    ("path.topology", "topology"),
    ("path.rtt_ms", "RTT asked, ms"),
    ("rtt_ms.expected", "expected"),
    ("rtt_ms.p50", "median"),
    ("rtt_ms.p99", "99 %"),
    ("bias_ms", "relay adds, ms"),
    ("relay.taken_out_ms", "taken out"),
    ("down_mbps.asked", "down asked, Mbit/s"),
    ("down_mbps.expected", "expected"),
    ("down_mbps.measured", "measured"),
    ("up_mbps.asked", "up asked, Mbit/s"),
    ("up_mbps.expected", "expected"),
    ("up_mbps.measured", "measured"),
    ("relay.late_p99_ms", "relay late, 99 %, ms"),
    ("relay.late_max_ms", "at most"),
)
"""Columns of the calibration and their titles."""


def read_provenance(folder: Path) -> Provenance:
    """Reads ``environment.json`` and ``plan.toml`` of a results folder; both are optional."""
    machine = _machine(folder)
    calibration = _records(machine.pop("calibration", None))
    if not machine.get("earlier"):
        machine.pop("earlier", None)
    return Provenance(list(_flat(machine)), _measured(calibration), calibration, _plan(folder))


def _machine(folder: Path) -> dict[str, object]:
    try:
        found = json.loads((folder / "environment.json").read_bytes())
    except FileNotFoundError:
        return {"environment.json": "missing: the machine and the calibration are not known"}
    except (OSError, ValueError, RecursionError) as error:
        return {"environment.json": f"cannot be read: {error}"}
    return found if isinstance(found, dict) else {"environment.json": found}


def _plan(folder: Path) -> str:
    try:
        return visible_lines((folder / PLAN).read_text("utf-8", "replace"))
    except OSError as error:
        return f"# plan.toml: {error.strerror}"


def _records(found: object) -> Grid:
    """A list of records as a table: columns in the order of their first appearance, then rows."""
    records = [dict(_flat(record)) for record in found] if isinstance(found, list) else []
    columns = list(dict.fromkeys(name for record in records for name in record))
    return Grid(columns, [[record.get(name, "") for name in columns] for record in records])


def _measured(calibration: Grid) -> Grid:
    """The columns that show whether paths matched the plan, with titles for people."""
    places = [(calibration.columns.index(key), name) for key, name in _MEASURED if key in calibration.columns]
    return Grid([name for _, name in places], [[row[at] for at, _ in places] for row in calibration.rows])


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested data as pairs of dotted name and text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{number}")
    elif isinstance(value, list):
        yield visible(name), ", ".join(map(_scalar, value))
    else:
        yield visible(name), _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return words.DASH if value is None else visible(str(value))


_TEMPLATES = Path(__file__).parent / "templates"
_PARTS = ("vega.js", "report.js", "waterfall.js")
_VEGA_HEAD = """\
/*! Vega, Vega-Lite, Vega-Embed and what they need, bundled by vl-convert.
Made by `make reference`; a test checks that it is current.

{licences}*/
"""


def script() -> str:
    """Vega-Lite, Vega and Vega-Embed, which vl-convert contains, and the report's own code."""
    return "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _PARTS)


def digest(content: str) -> str:
    """The script's digest for the Content-Security-Policy, so that no script of a hostile page runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def bundle_vega() -> str:
    """The contents of ``vega.js``, which sets `vegaEmbed` and no other global name."""
    bundled = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # The licences require their texts in every copy, so they are part of the script.
    licences = (_TEMPLATES / "vega.LICENSES").read_text("utf-8")
    return f"{_VEGA_HEAD.format(licences=licences)}(() => {{{bundled}}})();\n"


if __name__ == "__main__":
    sys.stdout.write(bundle_vega())
