"""The page's one script: Vega and what the report does with it, in one piece that needs no network."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from firstflight.report.elsewhere import elsewhere

_PARTS = ("report.js", "waterfall.js")


def script() -> str:
    """Vega-Lite, Vega and Vega-Embed, of which vl-convert has copies for its own use, and our own parts."""
    folder = files("firstflight.report").joinpath("templates")
    parts = "\n".join(folder.joinpath(name).read_text("utf-8") for name in _PARTS)
    return elsewhere("javascript_bundle", parts.encode()).decode()


def digest(content: str) -> str:
    """Names a script in a Content-Security-Policy: no other is run, whatever a hostile page smuggles in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
