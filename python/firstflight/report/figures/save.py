"""One figure to one file, its form by the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import vl_convert

from firstflight.errors import UsageError
from firstflight.report.figures.theme import Spec
from firstflight.results import write_whole

PNG_SCALE = 2.0
"""Pixels per point: sharp on a slide and in print."""

_FORMS: dict[str, Callable[[Spec], bytes]] = {
    ".svg": lambda spec: vl_convert.vegalite_to_svg(spec).encode(),
    ".png": lambda spec: vl_convert.vegalite_to_png(spec, scale=PNG_SCALE),
    ".pdf": vl_convert.vegalite_to_pdf,
    ".html": lambda spec: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
}


def save_figure(spec: Spec, file: Path) -> Path:
    """Draws a figure.

    Args:
        spec: A Vega-Lite document.
        file: Where to; its suffix is the form.

    Raises:
        UsageError: The form is unknown, or the file cannot be written.
    """
    form = _FORMS.get(file.suffix.lower())
    if form is None:
        raise UsageError(
            f"{file}: cannot draw {file.suffix or 'a file without suffix'}", f"use {', '.join(_FORMS)}"
        )
    return write_whole(file, form(spec))
