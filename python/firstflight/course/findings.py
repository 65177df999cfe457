"""What an audit says: one thing that is wrong, and the line it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KINDS = {
    "lost sign": "printed as a gain, was a loss",
    "arithmetic": "the printed improvement does not follow from the printed times",
    "another measure": "the column is not (without - with) / without",
    "unit": "milliseconds under seconds",
    "unmatched runs": "the first run without is compared with the second run with",
    "null effect": "the same change without TFO: the effect of warming up alone",
    "crashed load": "the browser died; what it left is no load",
    "truncated load": "the browser fetched less than elsewhere, or quit before its requests had ended",
    "other requests": "the loads that are compared did not fetch the same",
    "https stall": "https requests to a server without https decide the time",
    "start-up": "the browser's start is inside the page load time",
    "missing logs": "rows without a log",
    "path": "the round-trip time was not what the column says",
    "types": "style sheets served as text/html are refused",
    "missing files": "the servers lacked files that the page requested",
    "no proof": "nothing shows that TFO was used",
    "design": "how the loads were made",
}
"""Every kind of finding, with what it means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: One of `KINDS`.
        subject: The page and path it is about; empty where it is about all.
        message: What is wrong, with the numbers.
        file: Where it shows.
        line: Line in the file; None where it is about the whole.
    """

    kind: str
    subject: str
    message: str
    file: Path
    line: int | None = None

    @property
    def place(self) -> str:
        """File and line, as compilers print them."""
        return str(self.file) if self.line is None else f"{self.file}:{self.line}"
