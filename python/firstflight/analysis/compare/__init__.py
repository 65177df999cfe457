"""Two results, or a result and a published table, beside each other."""

from firstflight.analysis.compare.comparison import Comparison, Pair, compare
from firstflight.analysis.compare.sides import Side, SideCell, open_side

__all__ = ["Comparison", "Pair", "Side", "SideCell", "compare", "open_side"]
