"""What the loads say: cell pairs, statistics, proof and doubts."""

from firstflight.analysis.cells import MODES, CellKey, CellPair, cell_pairs
from firstflight.analysis.summary import summarize, summarize_pairs, write_summary

__all__ = ["MODES", "CellKey", "CellPair", "cell_pairs", "summarize", "summarize_pairs", "write_summary"]
