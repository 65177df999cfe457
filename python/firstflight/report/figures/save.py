"""One figure to one file, its form by the file's name."""

from __future__ import annotations

from pathlib import Path

from firstflight.errors import UsageError
from firstflight.report.figures.forms import FORMS
from firstflight.report.figures.theme import Spec
from firstflight.results import write_whole


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
