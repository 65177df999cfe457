"""Figures of a run, each as SVG and PNG.

One module per figure; `theme` is how they look, `draw` makes the files.
"""

from firstflight.report.figures.draw import draw_figures

__all__ = ["draw_figures"]
