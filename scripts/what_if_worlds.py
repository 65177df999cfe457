"""The worlds of the study of what if: under which conditions, and what is otherwise in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Keys = Mapping[str, object]


@dataclass(frozen=True)
class Condition:
    """What a world has in common with today's, which it is held against.

    Attributes:
        name: In words.
        keys: Of the plan.
        worlds: What is otherwise, by its name: keys of the plan.
        draws: Loads of each page, where chance decides.
    """

    name: str
    keys: Keys
    worlds: Mapping[str, Keys]
    draws: int = 1


def _worlds(*what_ifs: str, windows: tuple[int, ...] = ()) -> dict[str, Keys]:
    named: dict[str, Keys] = {name: {"what_if": name} for name in what_ifs}
    return named | {f"initial window {segments}": {"initial_window": str(segments)} for segments in windows}


TLS = {"scheme": "https"}
CONDITIONS = (
    Condition(
        "in the clear, warm cookies",
        {},
        _worlds("one-time-cookies=1", "one-time-cookies=6", "syn-payload=4", windows=(3, 32)),
    ),
    Condition(
        "in the clear, cold cookies",
        {"cookies": "cold"},
        _worlds("unproven=1460", "unproven=4380", "unproven=14600"),
    ),
    Condition(
        "in the clear, behind a NAT whose address has changed", {"cookies": "nat"}, _worlds("client-cookies")
    ),
    Condition(
        "in the clear, 6 % of the paths drop SYNs with data",
        {"middlebox": "drop-data:0.06"},
        _worlds("negative-cache", "negative-cache=visit"),
        draws=10,
    ),
    Condition(
        "in the clear, 1 % loss",
        {"loss": "0.01"},
        _worlds("negative-cache", "one-time-cookies=6"),
        draws=10,
    ),
    Condition(
        "TLS with the post-quantum share",
        TLS,
        _worlds("early-data=0", "early-data", "syn-payload=2", "syn-payload=2,early-data", windows=(32,)),
    ),
    Condition(
        "TLS with it, cold cookies",
        {**TLS, "cookies": "cold"},
        _worlds("early-data", "unproven=4380,syn-payload=2", "unproven=4380,syn-payload=2,early-data"),
    ),
    Condition(
        "TLS without it",
        {**TLS, "post_quantum": False},
        _worlds("early-data=0", "early-data"),
    ),
)
