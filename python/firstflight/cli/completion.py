"""What a shell offers for a page or a side of a comparison: names of what comes with firstflight."""

from firstflight.model.plan import PAPER_PAGES


def complete_page(incomplete: str) -> list[str]:
    """Embedded pages; where none fits, the shell offers files."""
    return [name for name in PAPER_PAGES if name.startswith(incomplete)]


def complete_side(incomplete: str) -> list[str]:
    """Published tables; where none fits, the shell offers files."""
    from firstflight.published import published_names  # noqa: PLC0415 (only a shell that completes)

    return [name for name in published_names() if name.startswith(incomplete)]
