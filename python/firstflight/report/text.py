"""What views say of a cell, on top of the words that sentences use too (`analysis.words`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.analysis.words import (
    DASH,
    ELLIPSIS,
    MINUS,
    interval,
    path,
    percent,
    plural,
    rtt,
    seconds,
    short_url,
    variant,
    varying,
)

__all__ = [
    "DASH",
    "ELLIPSIS",
    "MINUS",
    "MODE_NAMES",
    "blocks",
    "effect",
    "interval",
    "path",
    "percent",
    "plural",
    "proved",
    "rtt",
    "seconds",
    "short_url",
    "spread",
    "variant",
    "varying",
    "verdict",
]

MODE_NAMES = {"tcp": "without TFO", "tfo": "with TFO"}
"""Modes as views name them."""


def spread(estimate: Mapping[str, float | None]) -> str:
    """The interval of a median in seconds, ``3.41\N{EN DASH}3.52``; empty for none."""
    low, high = estimate["low"], estimate["high"]
    return "" if low is None or high is None else f"{seconds(low)[:-2]}{DASH}{seconds(high)[:-2]}"


def effect(fraction: float | None) -> str:
    """An improvement in words, so that no reader has to know the sign's meaning: ``16.3 % faster``."""
    if fraction is None:
        return "nothing to compare"
    text = percent(fraction)
    word = "slower" if text.startswith(MINUS) else "faster" if text.startswith("+") else "different"
    return f"{text.lstrip('+' + MINUS)} {word}"


def verdict(cell: Mapping[str, Any]) -> str:
    """A cell's verdict, or ``not proved``: without proof there is no result to show."""
    return str(cell["verdict"]) if cell["proof"]["ok"] else "not proved"


def proved(cells: Sequence[Any]) -> list[Any]:
    """The cells whose proof holds."""
    return [cell for cell in cells if cell["proof"]["ok"]]


def blocks(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many paired blocks the cells stand on: ``5 paired blocks``, ``3 to 5 paired blocks``."""
    counts = sorted({int(cell["n"]) for cell in cells})
    return (
        plural(counts[0], "paired block")
        if len(counts) == 1
        else f"{counts[0]} to {counts[-1]} paired blocks"
    )
