"""Text of a stranger's, for a terminal."""

from __future__ import annotations

from rich.text import Text

_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], "\N{REPLACEMENT CHARACTER}")


def plain(content: str, style: str = "") -> Text:
    """Text as it is: no markup, and no control character of a hostile page reaches the terminal."""
    safe = "\n".join(line.translate(_CONTROL) for line in content.rstrip("\n").split("\n"))
    return Text(safe, style=style)
