"""Every figure of a run to files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from firstflight.analysis import words
from firstflight.course.questions import Evidence
from firstflight.report.figures.forms import OF_SVG, svg
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


def waterfall_name(cell: Mapping[str, Any], variant: str = "") -> str:
    """File name of a waterfall without its ending: ``waterfall-<page>-<rtt>ms`` and what else is special.

    A page's name comes from outside: what could lead out of the folder is replaced.
    """
    parts = ["waterfall", cell["page"], f"{words.rtt(cell['rtt_ms'])}ms", *variant.split()]
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part))[:80] for part in parts)


def _write(file: Path, drawn: bytes) -> Path:
    return write_whole(file, OF_SVG[file.suffix.removeprefix(".")](drawn))
