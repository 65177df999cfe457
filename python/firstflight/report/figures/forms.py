"""A figure in its forms."""

from __future__ import annotations

from collections.abc import Callable

import vl_convert

from firstflight.report.elsewhere import elsewhere
from firstflight.report.figures.theme import Spec

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
    ".pdf": vl_convert.vegalite_to_pdf,
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}
"""Makers of each form, by the suffix of its files."""
