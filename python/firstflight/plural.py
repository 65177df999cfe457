"""Counted things in sentences."""


def plural(count: int, noun: str) -> str:
    """``1 load``, ``2 loads``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
