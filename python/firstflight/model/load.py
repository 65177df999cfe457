"""One planned load: the page, the path, and everything else that defines it."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.model.path import Path
from firstflight.model.treatment import PLAIN
from firstflight.model.what_if import TODAY, WhatIf


@dataclass(frozen=True)
class Transport:
    """Settings of every TCP connection at both ends: initial window (segments) and congestion control."""

    initial_window: int = 10
    congestion_control: str = "cubic"

    def to_json(self) -> dict[str, object]:
        """The JSON form for an engine."""
        return {"initial_window": self.initial_window, "congestion_control": self.congestion_control}


@dataclass(frozen=True)
class PlannedLoad:
    """One load to be made: its identity, its position in the run (`order`), and everything that defines it.

    Loads of one block share `seed`, so that every treatment gets the same random numbers.

    Attributes:
        treatment: Name of its treatment; empty: only the mode names it.
        baseline: Name of the treatment that it is compared with; empty: the first of all modes.
        compared: Plan keys in which treatments differ. The load is checked against these in addition to its
            mode.
        version: The version of the page, if treatments load several; empty: there is one.
    """

    load_id: str
    block: int
    order: int
    repeat: int
    page: str
    path: Path
    mode: str
    seed: int
    client: str = "loader"
    browser: str = ""
    engine: str = "emulate"
    cookies: str = "warm"
    keep_alive: bool = True
    initial_window: int = 10
    congestion_control: str = "cubic"
    ip: str = "4"
    scheme: str = "recorded"
    post_quantum: bool = True
    certificate_bytes: int = 0
    http: str = "1.1"
    priorities: str = "none"
    origin_rtt: str = "path"
    lookups: bool = False
    server_time: bool = True
    processing: float = 1.0
    determinism: bool = True
    what_if: WhatIf = TODAY
    treatment: str = ""
    baseline: str = ""
    compared: tuple[str, ...] = ()
    version: str = ""

    @property
    def recording(self) -> str:
        """The name of the page that it loads: `page`, or a version of it."""
        return recording_name(self.page, self.version)

    @property
    def transport(self) -> Transport:
        """Settings of every connection."""
        return Transport(self.initial_window, self.congestion_control)

    def columns(self) -> dict[str, object]:
        """Its columns of the loads table (`firstflight.results.schema.LOADS`), except the results."""
        named = {name: getattr(self, name) for name in _COLUMNS_BY_NAME}
        treatment = {"treatment": self.treatment or self.mode, "baseline": self.baseline or PLAIN}
        return {**named, **self.path.columns(), **treatment, "what_if": str(self.what_if)}


_COLUMNS_BY_NAME = sorted(
    PlannedLoad.__dataclass_fields__.keys() - {"path", "what_if", "treatment", "compared"}
)


_LONGEST_NAME = 100
"""Longest name of a page, characters (`crates/page/src/validate.rs`)."""


def recording_name(page: str, version: str) -> str:
    """The name of a version of a page, as in its profile; without a version, the name of the page.

    Args:
        page: Name of the page.
        version: As in the loads table; empty: there is one.
    """
    return f"{page[: _LONGEST_NAME - len(version) - 2]}--{version}" if version else page
