"""Every figure of a run to files: SVG and, from it, PNG."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from firstflight.analysis import CellPair, words
from firstflight.analysis.explanation import Explanation
from firstflight.report.figures.critical_path import critical_paths
from firstflight.report.figures.curves import improvement_by_rate, improvement_by_rtt, plt_by_rtt
from firstflight.report.figures.distribution import plt_distribution
from firstflight.report.figures.forms import png, svg
from firstflight.report.figures.theme import Spec
from firstflight.report.figures.waterfall import waterfall
from firstflight.results import write_whole

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
    files: list[Path | Future[Path]] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, draw in _figures(pairs, summary["cells"], explanations):
            if progress:
                progress(f"figure {name}")
            drawn = svg(draw())
            files.append(write_whole(folder / "figures" / f"{name}.svg", drawn))
            files.append(pool.submit(_write_png, folder / "figures" / f"{name}.png", drawn))
        return [file if isinstance(file, Path) else file.result() for file in files]


def _figures(
    pairs: Sequence[CellPair], cells: Sequence[dict[str, Any]], explanations: Sequence[Explanation]
) -> Iterator[tuple[str, Draw]]:
    compared = words.proved([cell for cell in cells if cell["n"]])
    loaded = [cell for cell in cells if cell["tcp_ms"]["median"] or cell["tfo_ms"]["median"]]
    limited = [cell for cell in compared if cell["down_mbps"] is not None]
    if compared:
        yield "improvement-by-rtt", partial(improvement_by_rtt, compared)
    if len({cell["down_mbps"] for cell in limited}) > 1:
        yield "improvement-by-rate", partial(improvement_by_rate, limited)
    if loaded:
        yield "plt-by-rtt", partial(plt_by_rtt, loaded)
    if any(cell["n"] for cell in cells):
        yield "plt-distribution", partial(plt_distribution, pairs, cells)
    if explanations:
        yield "critical-path", partial(critical_paths, explanations)
    varying = words.varying(cells)
    for pair, cell in zip(pairs, cells, strict=True):
        if cell["n"]:
            variant = words.variant(cell, varying)
            yield waterfall_name(cell, variant), partial(waterfall, pair, cell, variant)


def waterfall_name(cell: Mapping[str, Any], variant: str = "") -> str:
    """File name of a waterfall without its ending: ``waterfall-<page>-<rtt>ms`` and what else is special.

    A page's name comes from outside: what could lead out of the folder is replaced.
    """
    parts = ["waterfall", cell["page"], f"{words.rtt(cell['rtt_ms'])}ms", *variant.split()]
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part))[:80] for part in parts)


def _write_png(file: Path, drawn: bytes) -> Path:
    return write_whole(file, png(drawn))
