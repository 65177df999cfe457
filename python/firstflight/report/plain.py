"""Text of a stranger's, for a terminal."""

from __future__ import annotations

from rich.text import Text

from firstflight.visible import visible_lines


def plain(content: str, style: str = "") -> Text:
    """Text as it is: no markup, and no control character of a hostile page reaches the terminal."""
    return Text(visible_lines(content), style=style)
