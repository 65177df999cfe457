"""Figures as files: each is drawn, written as SVG, PNG, PDF or HTML, and named after what it shows.

vl-convert works in a process of its own: it holds the interpreter's lock while it works.
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
    """Draw every figure of a run into ``figures/`` of its folder.

    Args:
        folder: The results folder.
        evidence: Its cell pairs, their summary, and the explanations of those that can be explained.
        forms: Of `svg`, `png` and `pdf`.
        progress: Told the name of each figure before it is drawn.

    Returns:
        The files, those of a figure together, overviews first.

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
    """File name of a waterfall without its ending: ``waterfall-<page>-<rtt>ms`` and what else is special.

    A page's name comes from outside: what could lead out of the folder is replaced.
    """
    parts = ["waterfall", cell["page"], f"{words.rtt(cell['rtt_ms'])}ms", *variant.split()]
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part))[:80] for part in parts)


def _write(file: Path, drawn: bytes) -> Path:
    return write_whole(file, OF_SVG[file.suffix.removeprefix(".")](drawn))


PNG_SCALE = 2.0
"""Pixels per point: sharp on a slide and in print."""


def svg(spec: Spec) -> bytes:
    """The figure as SVG."""
    return vl_convert.vegalite_to_svg(spec).encode()


def png(drawn: bytes) -> bytes:
    """An SVG as PNG, so that the two are the same."""
    return elsewhere("svg_to_png", drawn, scale=PNG_SCALE)


def pdf(drawn: bytes) -> bytes:
    """An SVG as PDF, so that the two are the same."""
    return elsewhere("svg_to_pdf", drawn)


OF_SVG: dict[str, Callable[[bytes], bytes]] = {"svg": lambda drawn: drawn, "png": png, "pdf": pdf}
"""Makers of each form of a figure of a run, from its SVG."""

FORMS: dict[str, Callable[[Spec], bytes]] = {
    ".svg": svg,
    ".png": lambda spec: png(svg(spec)),
    ".pdf": lambda spec: pdf(svg(spec)),
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}
"""Makers of each form, by the suffix of its files."""


def save_figure(spec: Spec, file: Path) -> Path:
    """Draws a figure.

    Args:
        spec: A Vega-Lite document.
        file: Where to; its suffix is the form.

    Raises:
        UsageError: The form is unknown, or the file cannot be written.
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
        function: Its name.
        content: Its first argument, as UTF-8.
        options: The others.
    """
    command = [sys.executable, "-P", "-c", _CONVERT, function, json.dumps(options)]
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout
