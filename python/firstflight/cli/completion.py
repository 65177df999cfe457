"""What a shell offers for a page or a side of a comparison: names of what comes with firstflight."""

from firstflight.pages import embedded_names
from firstflight.published import published_names


def complete_page(incomplete: str) -> list[str]:
    """Embedded pages; where none fits, the shell offers files."""
    return [name for name in embedded_names() if name.startswith(incomplete)]


def complete_side(incomplete: str) -> list[str]:
    """Published tables; where none fits, the shell offers files."""
    return [name for name in published_names() if name.startswith(incomplete)]
