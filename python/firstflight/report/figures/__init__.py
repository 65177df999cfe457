"""Figures of a run, each as SVG and PNG.

One module per figure. `theme` has their common style, `draw` makes the files.
"""
