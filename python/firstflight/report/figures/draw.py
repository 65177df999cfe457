"""Draws figures as files: SVG, PNG, PDF or HTML, named after what they show.

vl-convert runs in a process of its own, since it holds the interpreter's lock while it works.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from firstflight.analysis import words
from firstflight.analysis.records import Cell
from firstflight.analysis.summary import Evidence
from firstflight.deferred import vl_convert
from firstflight.errors import UsageError
from firstflight.report.figures.overviews import overviews
from firstflight.report.figures.theme import Spec
from firstflight.report.figures.waterfall import waterfall
from firstflight.results import write_whole


def draw_figures(
    folder: Path,
    evidence: Evidence,
    forms: Sequence[str] = ("svg", "png"),
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Draws every figure of a run into ``figures/`` of its folder.

    Args:
        folder: The results folder.
        evidence: Its cell pairs, their summary, and the explanations of those that can be explained.
        forms: File types: `svg`, `png`, `pdf`.
        progress: Called with the name of each figure before it is drawn.

    Returns:
        The files, grouped by figure, overviews first.

    Raises:
        UsageError: The folder cannot be written to.
    """
    files: list[Future[Path]] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, spec in _figures(evidence):
            if progress:
                progress(f"figure {name}")
            drawn = svg(spec)
            files += [pool.submit(_write, folder / "figures" / f"{name}.{form}", drawn) for form in forms]
        return [file.result() for file in files]


def _figures(evidence: Evidence) -> Iterator[tuple[str, Spec]]:
    cells = evidence.summary["cells"]
    yield from overviews(evidence)
    varying = words.varying(cells)
    for pair, cell in zip(evidence.pairs, cells, strict=True):
        if cell["n"]:
            variant = words.variant(cell, varying)
            yield waterfall_name(cell, variant), waterfall(pair, cell, variant)


def waterfall_name(cell: Cell, variant: str = "") -> str:
    """File name of a waterfall without suffix: ``waterfall-<page>-<rtt>ms``, then `variant`.

    A page's name is untrusted: characters that could lead out of the folder are replaced.
    """
    parts = ["waterfall", cell["page"], f"{words.rtt(cell['rtt_ms'])}ms", *variant.split()]
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part))[:80] for part in parts)


def _write(file: Path, drawn: bytes) -> Path:
    return write_whole(file, OF_SVG[file.suffix.removeprefix(".")](drawn))


PNG_SCALE = 2.0
"""Pixels per point, enough for slides and print."""


def svg(spec: Spec) -> bytes:
    """The figure as SVG."""
    return vl_convert.vegalite_to_svg(spec).encode()


def png(drawn: bytes) -> bytes:
    """Converts an SVG to PNG, so that both look the same."""
    return elsewhere("svg_to_png", drawn, scale=PNG_SCALE)


def pdf(drawn: bytes) -> bytes:
    """Converts an SVG to PDF, so that both look the same."""
    return elsewhere("svg_to_pdf", drawn)


OF_SVG: dict[str, Callable[[bytes], bytes]] = {"svg": lambda drawn: drawn, "png": png, "pdf": pdf}
"""Functions that convert the SVG of a run's figure to each file type."""

FORMS: dict[str, Callable[[Spec], bytes]] = {
    ".svg": svg,
    ".png": lambda spec: png(svg(spec)),
    ".pdf": lambda spec: pdf(svg(spec)),
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}
"""Functions that draw a figure, by the suffix of the file."""


def save_figure(spec: Spec, file: Path) -> Path:
    """Draws a figure.

    Args:
        spec: A Vega-Lite document.
        file: The file to write; its suffix is the type.

    Raises:
        UsageError: The type is unknown, or the file cannot be written.
    """
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise UsageError(
            f"{file}: cannot draw {file.suffix or 'a file without suffix'}", f"use {', '.join(FORMS)}"
        )
    return write_whole(file, form(spec))


_CONVERT = """
import json, sys, vl_convert
name, options = sys.argv[1:]
made = getattr(vl_convert, name)(sys.stdin.read(), **json.loads(options))
sys.stdout.buffer.write(made if isinstance(made, bytes) else made.encode())
"""


def elsewhere(function: str, content: bytes, **options: float) -> bytes:
    """Calls a function of vl-convert in another process.

    Args:
        function: The name of the function.
        content: Its first argument, as UTF-8.
        options: Its other arguments.
    """
    command = [sys.executable, "-P", "-c", _CONVERT, function, json.dumps(options)]
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout
