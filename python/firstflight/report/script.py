"""The page's one script: Vega and what the report does with it, in one piece that needs no network.

`python -m firstflight.report.script` prints ``templates/vega.js``. It changes with vl-convert only, and to
bundle it takes a second, which no report should wait for.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path

_TEMPLATES = Path(__file__).parent / "templates"
_PARTS = ("vega.js", "report.js", "waterfall.js")
_VEGA_HEAD = """\
/*! Vega, Vega-Lite, Vega-Embed and what they need, bundled by vl-convert; licences: vega.LICENSES.
Made by `make reference`; a test checks that it is current. */
"""


def script() -> str:
    """Vega-Lite, Vega and Vega-Embed, of which vl-convert has copies for its own use, and our own parts."""
    return "\n".join((_TEMPLATES / name).read_text("utf-8") for name in _PARTS)


def digest(content: str) -> str:
    """Names a script in a Content-Security-Policy: no other is run, whatever a hostile page smuggles in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def bundle_vega() -> str:
    """``vega.js``: sets `vegaEmbed`, and no other global name."""
    import vl_convert  # noqa: PLC0415 (the report does without)

    bundled = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"{_VEGA_HEAD}(() => {{{bundled}}})();\n"


if __name__ == "__main__":
    sys.stdout.write(bundle_vega())
