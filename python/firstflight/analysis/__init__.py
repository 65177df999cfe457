"""Evaluates loads: cell pairs, statistics, proofs, critical paths and warnings."""

from firstflight.analysis.cells import SIDES, CellKey, CellPair, cell_pairs
from firstflight.analysis.summary import summarize, summarize_pairs

__all__ = ["SIDES", "CellKey", "CellPair", "cell_pairs", "summarize", "summarize_pairs"]
