"""The paper's and others' tables, as data with their sources."""

from firstflight.published.paper import PAPER, PaperCell, paper_table

__all__ = ["PAPER", "PaperCell", "paper_table"]
