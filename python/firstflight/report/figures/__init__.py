"""Figures of a run, each as SVG and PNG.

One module per figure; `theme` is how they look, `draw` makes the files.
"""
