"""What a results folder holds, read once: its table needs no more, and its report is made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from firstflight.analysis.cells import CellPair, cell_pairs
from firstflight.analysis.critical_path.explanation import Explanation, explain
from firstflight.analysis.records import Summary
from firstflight.analysis.summary import summarize_folder
from firstflight.results import Journal, LoadRecord, journal_path
from firstflight.results.profiles import read_profile

MOST_EXPLAINED = 48
"""With more cells than this the figure of critical paths is too long to read, and is left out."""


@dataclass(frozen=True)
class Evidence:
    """What answers are made from.

    Attributes:
        pairs: From `cell_pairs`.
        summary: Of these pairs, from `summarize_pairs`.
        explanations: Of those that can be explained, from `explain`; without them less is said about causes.
    """

    pairs: Sequence[CellPair]
    summary: Summary
    explanations: Sequence[Explanation] = ()


@dataclass(frozen=True)
class Measured:
    """A results folder, as it was read.

    Attributes:
        folder: The results folder.
        records: Its loads.
        pairs: Their cell pairs.
        summary: As ``summary.json`` has it.
    """

    folder: Path
    records: Sequence[LoadRecord]
    pairs: Sequence[CellPair]
    summary: Summary

    @cached_property
    def explanations(self) -> list[Explanation]:
        """Of the pairs that can be explained.

        Raises:
            UsageError: A page's profile cannot be read.
        """
        return explain(self.pairs, partial(read_profile, self.folder))

    @property
    def evidence(self) -> Evidence:
        """What answers and the report are made from; without explanations where the cells are many."""
        return Evidence(
            self.pairs, self.summary, self.explanations if len(self.pairs) <= MOST_EXPLAINED else []
        )


def read_measured(folder: Path) -> Measured:
    """Reads a results folder.

    Raises:
        UsageError: The folder has no readable journal or no load.
    """
    journal = Journal(journal_path(folder))
    records = journal.records()
    pairs = cell_pairs(records)
    summary = summarize_folder(folder, pairs, torn=journal.torn, failures=journal.instrument_failures)
    return Measured(folder, records, pairs, summary)
