"""Figures to files: Vega-Lite makes the SVG, and the PNG comes from it, so that the two are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import vl_convert

from firstflight.analysis import CellPair
from firstflight.analysis.explanation import Explanation
from firstflight.report import text
from firstflight.report.figures.by_rtt import improvement_by_rtt, plt_by_rtt
from firstflight.report.figures.critical_path import critical_paths
from firstflight.report.figures.theme import Spec
from firstflight.report.figures.waterfall import waterfall
from firstflight.results import write_whole

PNG_SCALE = 2.0
"""Pixels per point: sharp on a slide and in print."""

Draw = Callable[[], Spec]


def draw_figures(
    folder: Path,
    pairs: Sequence[CellPair],
    summary: Mapping[str, Any],
    progress: Callable[[str], None] | None = None,
    explanations: Sequence[Explanation] = (),
) -> list[Path]:
    """Draw every figure of a run into ``figures/`` of its folder.

    Args:
        folder: The results folder.
        pairs: Its cell pairs.
        summary: Their summary, cells in the same order.
        progress: Told the name of each figure before it is drawn.
        explanations: Of the pairs that can be explained.

    Returns:
        The files, SVG and PNG of a figure together, overviews first.

    Raises:
        UsageError: The folder cannot be written to.
    """
    drawn: list[Future[list[Path]]] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, draw in _figures(pairs, summary["cells"], explanations):
            if progress:
                progress(f"figure {name}")
            drawn.append(pool.submit(_write, folder / "figures", name, draw()))
        return [path for paths in drawn for path in paths.result()]


def _figures(
    pairs: Sequence[CellPair], cells: Sequence[dict[str, Any]], explanations: Sequence[Explanation]
) -> Iterator[tuple[str, Draw]]:
    compared = text.proved([cell for cell in cells if cell["n"]])
    loaded = [cell for cell in cells if cell["tcp_ms"]["median"] or cell["tfo_ms"]["median"]]
    if compared:
        yield "improvement-by-rtt", partial(improvement_by_rtt, compared)
    if loaded:
        yield "plt-by-rtt", partial(plt_by_rtt, loaded)
    if explanations:
        yield "critical-path", partial(critical_paths, explanations)
    varying = text.varying(cells)
    for pair, cell in zip(pairs, cells, strict=True):
        if cell["n"]:
            variant = text.variant(cell, varying)
            yield waterfall_name(cell, variant), partial(waterfall, pair, cell, variant)


def waterfall_name(cell: Mapping[str, Any], variant: str = "") -> str:
    """File name of a waterfall without its ending: ``waterfall-<page>-<rtt>ms`` and what else is special.

    A page's name comes from outside: what could lead out of the folder is replaced.
    """
    parts = ["waterfall", cell["page"], f"{text.rtt(cell['rtt_ms'])}ms", *variant.split()]
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part))[:80] for part in parts)


def _write(folder: Path, name: str, spec: Spec) -> list[Path]:
    svg = vl_convert.vegalite_to_svg(spec)
    png = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return [write_whole(folder / f"{name}.svg", svg.encode()), write_whole(folder / f"{name}.png", png)]
