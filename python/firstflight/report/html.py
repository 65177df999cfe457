"""``report.html``: the whole result on one page that needs no network and runs no script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from firstflight.analysis.explanation import Explanation
from firstflight.report import text
from firstflight.report.explained import heading, lines

_TEMPLATE = "report.html.j2"


def render_html(
    folder: Path,
    summary: Mapping[str, Any],
    figures: Sequence[Path],
    explanations: Sequence[Explanation] = (),
) -> str:
    """The page.

    Args:
        folder: The results folder; ``plan.toml`` and ``environment.json`` are shown as they are.
        summary: As `firstflight.analysis.summarize` gives it.
        figures: SVG files to put in, in order. Their names group them: waterfalls fold.
        explanations: Of the cells that can be explained.
    """
    environment = Environment(
        loader=PackageLoader("firstflight.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals["text"] = text
    machine = _environment(folder)
    calibration = machine.pop("calibration", None)
    paths = [path for path in figures if path.name.startswith("critical-path")]
    waterfalls = [path for path in figures if path.name.startswith("waterfall-")]
    return environment.get_template(_TEMPLATE).render(
        name=folder.resolve().name,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=_version(),
        settings=_settings(summary["cells"]),
        warnings=summary["warnings"],
        overviews=[_inline(path) for path in figures if path not in (*waterfalls, *paths)],
        critical_paths=[_inline(path) for path in paths],
        explained=[(heading(found), list(lines(found))) for found in explanations],
        waterfalls=[(path.stem.removeprefix("waterfall-"), _inline(path)) for path in waterfalls],
        calibration=_records(calibration),
        environment=list(_flat(machine)),
        plan=_plan(folder),
    )


def _settings(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Cells by path and client, as the page's tables show them."""
    settings: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        settings.setdefault(text.path(cell), []).append(cell)
    return settings


def _inline(svg: Path) -> Markup:
    """A figure of ours as markup. What came from outside (URLs, names) was escaped when the SVG was made."""
    content = svg.read_text("utf-8")
    return Markup(re.sub(r"^\s*(<\?xml.*?\?>\s*)?(<!DOCTYPE.*?>\s*)?", "", content))


def _environment(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "environment.json").read_bytes())
    except FileNotFoundError:
        return {"environment.json": "missing: the machine and the calibration are not known"}
    except (OSError, ValueError, RecursionError) as error:
        return {"environment.json": f"cannot be read: {error}"}
    return found if isinstance(found, dict) else {"environment.json": found}


def _plan(folder: Path) -> str:
    try:
        return (folder / "plan.toml").read_text("utf-8", "replace")
    except OSError as error:
        return f"# plan.toml: {error.strerror}"


def _records(found: object) -> tuple[list[str], list[list[str]]]:
    """A list of records as a table: columns in order of appearance, then rows."""
    records = [dict(_flat(record)) for record in found] if isinstance(found, list) else []
    columns = list(dict.fromkeys(name for record in records for name in record))
    return columns, [[record.get(name, "") for name in columns] for record in records]


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested data as dotted names and text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{number}")
    elif isinstance(value, list):
        yield name, ", ".join(map(_scalar, value))
    else:
        yield name, _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return text.DASH if value is None else str(value)


def _version() -> str:
    try:
        return version("firstflight")
    except PackageNotFoundError:
        return "(not installed)"
