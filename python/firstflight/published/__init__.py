"""The paper's and others' tables, as data with their sources."""

from firstflight.published.tables import PublishedCell, PublishedTable, published_names, published_table

PAPER = "Radhakrishnan et al., CoNEXT 2011, Table 1"
"""How a figure names the source."""

__all__ = ["PAPER", "PublishedCell", "PublishedTable", "published_names", "published_table"]
